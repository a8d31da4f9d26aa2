//! File descriptors: each session takes two, so their limit is the limit of sessions. The proxy raises it as far as it may.

use rustix::process::{Resource, getrlimit};

/// Below this, about 4,000 sessions are all there can be, and an operator should know.
const FEW: u64 = 8192;

/// Says in the log when this process may open few files.
pub(crate) fn warn_if_few() {
    let limit = getrlimit(Resource::Nofile).current;
    if let Some(limit) = limit.filter(|limit| *limit < FEW) {
        tracing::warn!(
            limit,
            "few files may be open, and each session takes two; raise the hard limit (LimitNOFILE=, ulimit -Hn)"
        );
    }
}
