//! A real nginx that serves the files of a folder.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;

use super::process::{self, Process};
use super::{client, ports, wait};

/// A running nginx; killed when dropped.
pub(crate) struct Nginx {
    pub(crate) address: SocketAddr,
    directory: TempDir,
    _process: Process,
}

impl Nginx {
    /// One process, without files outside of its folder.
    pub(crate) fn start() -> Self {
        let address = ports::free();
        let directory = TempDir::new().expect("a temporary directory");
        let config = directory.path().join("nginx.conf");
        fs::write(&config, configuration(&directory, address)).expect("it is ours");
        fs::create_dir(directory.path().join("files")).expect("it is ours");
        let mut command = process::command("/usr/sbin/nginx");
        command
            .arg("-p")
            .arg(directory.path())
            .arg("-c")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Process::start(command);
        wait::until_so("nginx listens", || client::try_connect(address).is_ok());
        Self {
            address,
            directory,
            _process: process,
        }
    }

    /// It answers 200 for the file from now on.
    pub(crate) fn add_file(&self, name: &str) {
        fs::write(self.file(name), "here\n").expect("it is ours");
    }

    /// It answers 404 for the file from now on.
    pub(crate) fn remove_file(&self, name: &str) {
        fs::remove_file(self.file(name)).expect("it is there");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join("files").join(name)
    }
}

fn configuration(directory: &TempDir, address: SocketAddr) -> String {
    let folder = directory.path().display();
    let is_root = rustix::process::geteuid().is_root();
    let user = if is_root { "user root;" } else { "" };
    format!(
        "daemon off; master_process off; {user} pid {folder}/pid; error_log {folder}/error.log;\n\
         events {{}}\n\
         http {{\n\
           access_log off;\n\
           client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n\
           uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n\
           server {{ listen {address}; root {folder}/files; }}\n\
         }}\n"
    )
}
