//! A real nginx with its stream module, with servers of the test's own.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;

use tempfile::TempDir;

use super::process::{self, Process};
use super::{client, wait};

/// Where Debian keeps the stream module.
const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

/// A running nginx; killed when dropped. It is a single process, so that none outlives the test.
pub(crate) struct NginxStream {
    _directory: TempDir,
    _process: Process,
}

impl NginxStream {
    /// Starts it with what its `stream` block holds, and waits until it listens on all these addresses.
    pub(crate) fn start(stream: &str, addresses: &[SocketAddr]) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let (config, here) = (directory.path().join("nginx.conf"), directory.path());
        let text = format!(
            "load_module {STREAM_MODULE};\ndaemon off;\nmaster_process off;\npid {here}/pid;\nerror_log {here}/log;\n\
             events {{ worker_connections 64; }}\nstream {{\n{stream}\n}}\n",
            here = here.display(),
        );
        fs::write(&config, text).expect("the directory is ours");
        let mut command = process::command("/usr/sbin/nginx");
        command
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let process = Process::start(command);
        for address in addresses {
            wait::until_so("nginx listens", || client::try_connect(*address).is_ok());
        }
        Self {
            _directory: directory,
            _process: process,
        }
    }
}
