//! nginx with its stream module: a master and one worker, the access log buffered, as an operator would have it.

use std::fmt::Write;

use rustix::process::Signal;

use super::{Launch, Setting, config_file, pinned};

/// Where Debian keeps the stream module.
pub(crate) const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

pub(super) fn launch(setting: &Setting<'_>) -> Launch {
    let access_log = setting.file("access.log");
    let endpoints = setting
        .endpoints
        .iter()
        .fold(String::new(), |mut list, endpoint| {
            let _ = writeln!(list, "    server {endpoint};");
            list
        });
    let config = format!(
        "load_module {STREAM_MODULE};
daemon off;
worker_processes 1;
pid {pid};
error_log {errors} warn;
events {{
  worker_connections 16000;
}}
stream {{
  log_format session '$remote_addr [$time_local] $protocol $status $bytes_sent $bytes_received $session_time $upstream_addr';
  access_log {access_log} session buffer=64k flush=1s;
  upstream bench {{
{endpoints}  }}
  server {{
    listen {listen} backlog=4096;
    proxy_pass bench;
  }}
}}
",
        pid = setting.file("nginx.pid").display(),
        errors = setting.file("error.log").display(),
        access_log = access_log.display(),
        listen = setting.listen,
    );
    let mut command = pinned("nginx");
    command.arg("-c").arg(config_file(setting));
    Launch {
        config,
        command,
        access_log,
        processes: 2,
        end: Signal::QUIT,
        statistics: None,
    }
}
