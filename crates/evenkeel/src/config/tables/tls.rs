//! `tls` toward endpoints.

use super::super::keys::{Absent, Form, Key, Table};
use super::PATH_BYTES_MAX;

const FILE: Form = Form::File {
    bytes_max: PATH_BYTES_MAX,
};

pub(in crate::config) static ENDPOINT_TLS: Table = Table {
    title: "tls toward endpoints",
    about: "Whom to believe, and as whom to come.",
    keys: &[
        Key::new(
            "ca",
            FILE,
            Absent::Means("the system's authorities"),
            "A file with the certificates, in PEM, of the authorities that are believed.",
        )
        .elsewhere(&["ca_file", "ca-file", "cafile", "trusted_ca", "root_ca"]),
        Key::new(
            "server_name",
            Form::HostName,
            Absent::Means("the address that is connected to"),
            "The name that is asked for, and that the endpoint's certificate must have.",
        )
        .elsewhere(&["sni", "hostname", "verifyhost", "check-sni"]),
        Key::new(
            "verify",
            Form::Flag,
            Absent::Value("true"),
            "Whether the certificate is verified. Without that, anybody in between can pretend to be the endpoint.",
        )
        .elsewhere(&["insecure_skip_verify", "skip_verify", "verify_mode"]),
        Key::new(
            "certificate",
            FILE,
            Absent::Means("none is shown"),
            "A file with the certificate, in PEM, that is shown to an endpoint that asks for one. With `key`.",
        )
        .elsewhere(&["cert", "crt", "certificate_file"]),
        Key::new(
            "key",
            FILE,
            Absent::Means("required with `certificate`"),
            "A file with its private key, in PEM.",
        )
        .elsewhere(&["private_key", "key_file"]),
    ],
};
