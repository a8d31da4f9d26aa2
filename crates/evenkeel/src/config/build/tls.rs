//! `tls` as settings, with the defaults.

use std::path::Path;

use evenkeel_proxy::settings::{CertificateFiles, EndpointTls, Trust};

use super::{or, within};
use crate::config::file;

pub(super) fn endpoint_tls(written: &file::EndpointTls, folder: &Path) -> EndpointTls {
    let ca = written.ca.as_ref().map(|path| within(folder, &path.value));
    let trust = if or(&written.verify, true) {
        ca.map_or(Trust::System, Trust::Authorities)
    } else {
        Trust::Anybody
    };
    let name = written.server_name.as_ref();
    let files = written.certificate.as_ref().zip(written.key.as_ref());
    EndpointTls {
        trust,
        server_name: name.map(|name| name.value.clone()),
        identity: files.map(|(certificate, key)| CertificateFiles {
            certificate: within(folder, &certificate.value),
            key: within(folder, &key.value),
        }),
    }
}
