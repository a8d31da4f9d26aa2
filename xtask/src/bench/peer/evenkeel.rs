//! evenkeel as a peer of its peers: with probes, limits and the admin listener, as it is run where it matters. Its control and
//! log threads share the core with its worker, and count.

use anyhow::{Result, bail};
use rustix::process::Signal;

use super::{Launch, Setting, config_file, pinned};

pub(super) fn tcp(setting: &Setting<'_>) -> Launch {
    launch(setting, "")
}

pub(super) fn http(setting: &Setting<'_>) -> Result<Launch> {
    if setting.certificate.is_some() {
        bail!("its listeners do not speak TLS yet");
    }
    Ok(launch(setting, "protocol = \"http\"\n"))
}

/// `protocol` is a line of the listener.
fn launch(setting: &Setting<'_>, protocol: &str) -> Launch {
    let access_log = setting.file("access.log");
    let endpoints: Vec<String> = setting
        .endpoints
        .iter()
        .map(|endpoint| format!(r#"{{ address = "{endpoint}", max_connections = 100000 }}"#))
        .collect();
    let config = format!(
        r#"[process]
workers = 1
control_socket = {:?}

[admin]
bind = "unix:{}"

[log]
access = {access_log:?}

[listener.bench]
bind = "{}"
to = "bench"
{protocol}max_connections = 100000

[cluster.bench]
endpoints = [{}]
health = {{ check = "tcp", every = "1s", rise = 1 }}
"#,
        setting.file("control.sock"),
        setting.file("admin.sock").display(),
        setting.listen,
        endpoints.join(", "),
    );
    let mut command = pinned(&setting.programs.evenkeel);
    command.arg("run").arg(config_file(setting));
    Launch {
        config,
        command,
        access_log,
        processes: 1,
        end: Signal::TERM,
        statistics: None,
    }
}
