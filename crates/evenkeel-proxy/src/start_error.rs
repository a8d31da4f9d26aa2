//! Why a proxy could not be started, and what to do about it.

use std::io;
use std::sync::Arc;

use evenkeel_core::units::Address;
use rustix::io::Errno;

use crate::listener::Holder;

/// Why a proxy could not be started. Nothing is left behind: no socket, no thread.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener's target does not exist.
    #[error("listener \"{listener}\" sends to \"{to}\", which is not a cluster: check its \"to\"")]
    UnknownTarget {
        /// The listener.
        listener: Arc<str>,
        /// What it names.
        to: Arc<str>,
    },
    /// A listener leads nowhere.
    #[error("listener \"{listener}\" leads nowhere: give it a \"to\" or \"routes\"")]
    NoTarget {
        /// The listener.
        listener: Arc<str>,
    },
    /// Somebody listens on the address already.
    #[error(
        "listener \"{listener}\" cannot listen on {address}: {}",
        holder_text(.holder.as_ref(), .address)
    )]
    AddressInUse {
        /// The listener.
        listener: Arc<str>,
        /// The address it was to have.
        address: Address,
        /// Who holds it, if that can be found out.
        holder: Option<Holder>,
    },
    /// The kernel refuses the address.
    #[error(
        "listener \"{listener}\" cannot listen on {address}: {}",
        refusal_text(.address, .source)
    )]
    Bind {
        /// The listener.
        listener: Arc<str>,
        /// The address it was to have.
        address: Address,
        /// What the kernel says.
        source: io::Error,
    },
    /// Something lies on the path that is not ours to remove.
    #[error(
        "listener \"{listener}\" cannot listen on {address}: something lies there that is not a socket; it is left alone: remove it, or choose another path"
    )]
    NotASocket {
        /// The listener.
        listener: Arc<str>,
        /// The path it was to have.
        address: Address,
    },
    /// A worker cannot be set up.
    #[error(
        "worker {number} cannot be started: check the limits on descriptors, threads and memory"
    )]
    Worker {
        /// Which one, from 0.
        number: usize,
        /// What the kernel says.
        source: io::Error,
    },
}

/// A port may be in use without a listener: an outgoing connection has it, even one that has ended and only times out.
fn holder_text(holder: Option<&Holder>, address: &Address) -> String {
    match (holder, address) {
        (Some(holder), _) => {
            format!("{holder} listens there already; stop it, or choose another address")
        }
        (None, Address::Ip(address)) => format!(
            "the address is in use, by another user's process or by an outgoing connection (`ss -tanp sport = :{}` shows it); \
             wait, or choose a port outside net.ipv4.ip_local_port_range",
            address.port()
        ),
        (None, Address::Unix(path)) => format!(
            "another user's process listens there already (`ss -xlp src {}` shows it); stop it, or choose another path",
            path.display()
        ),
    }
}

fn refusal_text(address: &Address, source: &io::Error) -> &'static str {
    match (source.raw_os_error().map(Errno::from_raw_os_error), address) {
        (Some(Errno::MFILE), _) => {
            "the process has no descriptor left: raise its limit (`LimitNOFILE=`, `ulimit -Hn`), or have fewer listeners and workers"
        }
        (Some(Errno::NFILE), _) => "the machine has no descriptor left: raise fs.file-max",
        (_, Address::Ip(_)) => {
            "check that the address is this machine's, and the right to use the port"
        }
        (_, Address::Unix(_)) => {
            "check that its directory exists, and the right to make files in it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where descriptors are what is missing, the address is not what to look at.
    #[test]
    fn a_lack_of_descriptors_is_named() {
        let told = |errno: Errno| {
            let error = StartError::Bind {
                listener: "front".into(),
                address: Address::Ip(([127, 0, 0, 1], 80).into()),
                source: errno.into(),
            };
            error.to_string()
        };
        assert!(told(Errno::MFILE).contains("LimitNOFILE="));
        assert!(told(Errno::NFILE).contains("fs.file-max"));
        assert!(told(Errno::ACCESS).contains("the right to use the port"));
    }
}
