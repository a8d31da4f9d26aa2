//! nginx, with its stream module or for HTTP: a master and one worker, the access log buffered, as an operator would have it.

use std::fmt::Write;

use rustix::process::Signal;

use super::{Buffers, Launch, Setting, config_file, pinned};

/// Where Debian keeps the stream module.
pub(crate) const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

const ACCESS_LOG: &str = "access.log";

/// Exchanges for which a connection is kept: at its default of 1,000 it would end the load's connections.
const EXCHANGES_MAX: u32 = 1_000_000_000;

/// Idle connections to the endpoints that are kept: as many as a load may have.
const IDLE_MAX: u32 = 512;

pub(super) fn tcp(setting: &Setting<'_>) -> Launch {
    let stream = format!(
        "stream {{
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
        access_log = setting.file(ACCESS_LOG).display(),
        endpoints = endpoints(setting),
        listen = setting.listen,
    );
    launch(setting, &format!("load_module {STREAM_MODULE};\n"), &stream)
}

/// What it takes to keep connections to endpoints is no tuning here: all peers do.
pub(super) fn http(setting: &Setting<'_>, buffers: Buffers) -> Launch {
    let buffers = match buffers {
        Buffers::Default => "",
        Buffers::Large => {
            "  proxy_buffer_size 64k;
  proxy_buffers 8 64k;
  proxy_busy_buffers_size 128k;
  client_body_buffer_size 64k;
"
        }
    };
    let http = format!(
        "http {{
  access_log {access_log} combined buffer=64k flush=1s;
  client_body_temp_path {folder}/client;
  proxy_temp_path {folder}/proxy;
  keepalive_requests {EXCHANGES_MAX};
  keepalive_timeout 1h;
{buffers}  upstream bench {{
{endpoints}    keepalive {IDLE_MAX};
    keepalive_requests {EXCHANGES_MAX};
  }}
  server {{
    listen {listen} backlog=4096{secured};
{certificate}    location / {{
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }}
  }}
}}
",
        access_log = setting.file(ACCESS_LOG).display(),
        folder = setting.folder.display(),
        endpoints = endpoints(setting),
        listen = setting.listen,
        secured = if setting.certificate.is_some() {
            " ssl"
        } else {
            ""
        },
        certificate = certificate(setting),
    );
    launch(setting, "user root;\n", &http)
}

/// At its defaults, 1.22 speaks no TLS 1.3.
fn certificate(setting: &Setting<'_>) -> String {
    setting.certificate.map_or_else(String::new, |files| {
        format!(
            "    ssl_certificate {};
    ssl_certificate_key {};
    ssl_protocols TLSv1.2 TLSv1.3;
",
            files.certificate.display(),
            files.key.display(),
        )
    })
}

/// `first` stands at the top, `section` is what listens.
fn launch(setting: &Setting<'_>, first: &str, section: &str) -> Launch {
    let config = format!(
        "{first}daemon off;
worker_processes 1;
pid {pid};
error_log {errors} warn;
events {{
  worker_connections 16000;
}}
{section}",
        pid = setting.file("nginx.pid").display(),
        errors = setting.file("error.log").display(),
    );
    let mut command = pinned("nginx");
    command.arg("-c").arg(config_file(setting));
    Launch {
        config,
        command,
        access_log: setting.file(ACCESS_LOG),
        processes: 2,
        end: Signal::QUIT,
        statistics: None,
    }
}

fn endpoints(setting: &Setting<'_>) -> String {
    let mut list = String::new();
    for endpoint in setting.endpoints {
        let _ = writeln!(list, "    server {endpoint};");
    }
    list
}
