//! `tls` as TOML: names of files, never what is in them.

use evenkeel_proxy::settings::{EndpointTls, Trust};

use super::{inline, path, quoted};

pub(super) fn endpoint_tls(tls: &EndpointTls) -> String {
    let ca = match &tls.trust {
        Trust::Authorities(file) => Some(("ca", path(file))),
        Trust::System | Trust::Anybody => None,
    };
    let name = tls.server_name.as_ref();
    let name = name.map(|name| ("server_name", quoted(name.as_str())));
    let verify = ("verify", (tls.trust != Trust::Anybody).to_string());
    let mut keys: Vec<_> = ca.into_iter().chain(name).chain([verify]).collect();
    if let Some(files) = &tls.identity {
        keys.push(("certificate", path(&files.certificate)));
        keys.push(("key", path(&files.key)));
    }
    inline(&keys)
}
