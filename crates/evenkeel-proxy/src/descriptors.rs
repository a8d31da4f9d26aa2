//! The limit on open descriptors: two for each session, so as many as the machine allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open descriptors to the hard one. If that fails the process runs on with what it has.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    ) {
        tracing::warn!(%error, ?current, ?maximum, "the limit on open descriptors cannot be raised");
    }
}
