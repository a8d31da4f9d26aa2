//! `evenkeel status`: what runs, as tables or as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use evenkeel_proxy::control::protocol::Request;
use evenkeel_proxy::control::report::{
    AccessLogReport, ClusterReport, EndpointReport, ListenerReport, NameReport, Phase,
    SpliceReport, StateFileReport, StatusReport,
};
use evenkeel_proxy::control::upgrade_report::PredecessorReport;

use super::running::{Refused, Which};
use crate::exit::Exit;
use crate::output;
use crate::span::{bytes, span};
use crate::table::{Align, Table, printable};

/// What `status` takes.
#[derive(Args, Clone, Debug)]
pub struct StatusArguments {
    #[command(flatten)]
    which: Which,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Asks the running process, and prints what it says.
pub fn status(arguments: &StatusArguments) -> Exit {
    match ask(&arguments.which) {
        Ok(report) if arguments.json => output::print_json(&report),
        Ok(report) => output::print(&render(&report)),
        Err(refused) => refused.report(),
    }
}

fn ask(which: &Which) -> Result<StatusReport, Refused> {
    Ok(which.connect()?.ask(&Request::Status)?)
}

/// The tables.
pub fn render(report: &StatusReport) -> String {
    let mut text = headline(report);
    if let Some(predecessor) = &report.predecessor {
        text.push_str(&remainder(predecessor));
    }
    text.push('\n');
    text.push_str(&listeners(&report.listeners));
    for cluster in &report.clusters {
        text.push('\n');
        text.push_str(&cluster_headline(cluster));
        text.push_str(&endpoints(&cluster.endpoints));
    }
    if !report.names.is_empty() {
        text.push('\n');
        text.push_str(&names(&report.names));
    }
    text.push('\n');
    text.push_str(&spliced(report.splice));
    if let Some(log) = report.access_log {
        text.push_str(&access_log(log));
    }
    if let Some(file) = &report.state_file {
        text.push_str(&state_file(file));
    }
    text
}

fn headline(report: &StatusReport) -> String {
    let phase = match report.phase {
        Phase::Running => "running for",
        Phase::Stopping => "stopping, up",
    };
    format!(
        "evenkeel {}: pid {}, {phase} {}, workers: {}\n",
        printable(&report.program),
        report.pid,
        span(report.uptime_ms),
        report.workers.len()
    )
}

fn place(listener: &ListenerReport) -> String {
    let address = printable(&listener.address);
    if listener.has_lost_its_file {
        format!("{address} (removed: reload)")
    } else {
        address
    }
}

fn remainder(predecessor: &PredecessorReport) -> String {
    let sessions = predecessor.sessions;
    let sessions = sessions.map_or_else(|| "?".to_owned(), |sessions| sessions.to_string());
    format!(
        "pid {}, which it has taken over from, lets its sessions finish: {sessions}\n",
        predecessor.pid
    )
}

fn spliced(splice: SpliceReport) -> String {
    format!(
        "spliced: {} through pipes, {} of at most {} open; no pipe: {} times over the limit, {} refused by the kernel\n",
        bytes(splice.bytes),
        splice.pipes,
        splice.pipes_max,
        splice.over_budget,
        splice.refused
    )
}

fn listeners(listeners: &[ListenerReport]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("LISTENER", Left),
        ("ADDRESS", Left),
        ("TO", Left),
        ("OPEN", Right),
        ("ACCEPTED", Right),
        ("BYTES-UP", Right),
        ("BYTES-DOWN", Right),
        ("ENDED", Left),
    ]);
    for listener in listeners {
        table.push([
            printable(&listener.name),
            place(listener),
            printable(&targets(listener)),
            listener.sessions.to_string(),
            listener.accepted.to_string(),
            bytes(listener.ended.bytes_up),
            bytes(listener.ended.bytes_down),
            reasons(&listener.ended.by_reason),
        ]);
    }
    table.render("")
}

/// The clusters that its sessions go to, each once.
fn targets(listener: &ListenerReport) -> String {
    let routes = listener.routes.iter().map(|rule| &rule.to);
    let mut targets: Vec<&str> = Vec::new();
    for target in listener.to.iter().chain(routes) {
        if !targets.contains(&target.as_str()) {
            targets.push(target);
        }
    }
    targets.join(", ")
}

fn cluster_headline(cluster: &ClusterReport) -> String {
    let name = printable(&cluster.name);
    let duty = match (cluster.on_duty.as_str(), cluster.awaits_failback) {
        ("backups", true) => {
            format!("; the backups keep the work until `evenkeel failback {name}`")
        }
        ("backups", false) => "; the backups have the work".to_owned(),
        _ => String::new(),
    };
    format!(
        "CLUSTER {name}: {} of at most {} waiting{duty}\n",
        cluster.waiting, cluster.queue_max
    )
}

fn endpoints(endpoints: &[EndpointReport]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("ENDPOINT", Left),
        ("ADDRESS", Left),
        ("STATE", Left),
        ("WEIGHT", Right),
        ("EFFECTIVE", Right),
        ("IN-FLIGHT", Right),
        ("ATTEMPTS", Right),
        ("ESTABLISHED", Right),
        ("FAILURES", Right),
        ("LAST FAILURE", Left),
        ("PROBE", Left),
    ]);
    for endpoint in endpoints {
        table.push([
            printable(&endpoint.name),
            printable(&endpoint.address),
            state(endpoint),
            weight(endpoint),
            endpoint.effective_weight.to_string(),
            in_flight(endpoint),
            endpoint.sessions.to_string(),
            endpoint.established.to_string(),
            endpoint.failures.to_string(),
            last_failure(endpoint),
            probe(endpoint),
        ]);
    }
    table.render("  ")
}

fn state(endpoint: &EndpointReport) -> String {
    let mut state = printable(&endpoint.state);
    if let Some(millis) = endpoint.ejected_for_ms {
        state = format!("{state} for {}", span(millis));
    }
    if let Some(percent) = endpoint.slow_start_percent {
        state = format!("{state} at {percent} %");
    }
    if endpoint.backup {
        state.push_str(", backup");
    }
    if let Some(service) = &endpoint.overrides.service {
        state = format!("{state} (configured {})", printable(&service.configured));
    }
    state
}

/// What an operator has set is marked by what it stands in for.
fn weight(endpoint: &EndpointReport) -> String {
    match &endpoint.overrides.weight {
        Some(weight) => format!("{} (configured {})", endpoint.weight, weight.configured),
        None => endpoint.weight.to_string(),
    }
}

fn in_flight(endpoint: &EndpointReport) -> String {
    match endpoint.max_connections {
        Some(max) => format!("{}/{max}", endpoint.in_flight),
        None => endpoint.in_flight.to_string(),
    }
}

fn last_failure(endpoint: &EndpointReport) -> String {
    match &endpoint.last_failure {
        Some(failure) => format!("{}, {} ago", printable(&failure.kind), span(failure.age_ms)),
        None => "-".to_owned(),
    }
}

fn probe(endpoint: &EndpointReport) -> String {
    let Some(probe) = &endpoint.probe else {
        return "-".to_owned();
    };
    let result = printable(&probe.result).replace('_', " ");
    let ago = span(probe.age_ms);
    match &probe.reason {
        None => format!("{result} in {}, {ago} ago", micros(probe.took_us)),
        Some(reason) => format!("{result} {ago} ago: {}", printable(reason)),
    }
}

/// A probe takes less than a millisecond where all is well.
fn micros(micros: u64) -> String {
    match micros {
        0..10_000 => format!(
            "{:.1}ms",
            Duration::from_micros(micros).as_secs_f64() * 1000.0
        ),
        _ => span(micros / 1000),
    }
}

fn names(names: &[NameReport]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("NAME", Left),
        ("ADDRESSES", Right),
        ("RESOLVED", Left),
        ("TROUBLE", Left),
    ]);
    for name in names {
        let resolved = name.resolved_ago_ms;
        table.push([
            printable(&name.name),
            name.addresses.len().to_string(),
            resolved.map_or_else(|| "never".to_owned(), |ago| format!("{} ago", span(ago))),
            trouble(name),
        ]);
    }
    table.render("")
}

fn trouble(name: &NameReport) -> String {
    let since = name.trouble_for_ms.map_or_else(String::new, span);
    match &name.trouble {
        Some(trouble) => format!("{}, for {since}", printable(trouble)),
        None => "-".to_owned(),
    }
}

/// The most frequent first.
fn reasons(by_reason: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<_> = by_reason.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let words = counts
        .iter()
        .map(|(reason, count)| format!("{} {count}", printable(reason)));
    words.collect::<Vec<_>>().join(", ")
}

fn access_log(log: AccessLogReport) -> String {
    format!(
        "access log: {} lines written, {} dropped\n",
        log.written, log.dropped
    )
}

fn state_file(file: &StateFileReport) -> String {
    let path = printable(&file.path);
    match file.failed {
        0 => format!("state file: {path}\n"),
        failed => format!("state file: {path}, could not be written: {failed} times\n"),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_proxy::control::operator::{OverrideReport, OverridesReport};
    use evenkeel_proxy::control::report::WorkerReport;

    use evenkeel_proxy::control::report::{EndedReport, FailureReport, ProbeReport};

    use super::*;

    fn endpoint(name: &str, port: u16) -> EndpointReport {
        EndpointReport {
            name: name.to_owned(),
            address: format!("10.0.0.11:{port}"),
            state: "up".to_owned(),
            health: None,
            ejected_for_ms: None,
            slow_start_percent: None,
            backup: false,
            weight: 3,
            overrides: OverridesReport::default(),
            effective_weight: 3,
            in_flight: 2,
            max_connections: Some(8),
            sessions: 120,
            established: 118,
            failures: 0,
            last_failure: None,
            probe: None,
        }
    }

    fn ejected() -> EndpointReport {
        EndpointReport {
            state: "ejected".to_owned(),
            ejected_for_ms: Some(4_500),
            effective_weight: 0,
            in_flight: 0,
            max_connections: None,
            failures: 5,
            probe: Some(ProbeReport {
                result: "failed".to_owned(),
                reason: Some("connection refused".to_owned()),
                took_us: 90,
                age_ms: 1_200,
            }),
            last_failure: Some(FailureReport {
                kind: "refused".to_owned(),
                age_ms: 65_000,
            }),
            ..endpoint("db2", 3307)
        }
    }

    fn ended() -> EndedReport {
        EndedReport {
            by_reason: BTreeMap::from([("client_reset".to_owned(), 4), ("done".to_owned(), 110)]),
            bytes_up: 2_048,
            bytes_down: 5 << 20,
        }
    }

    fn world() -> StatusReport {
        StatusReport {
            program: "0.1.0".to_owned(),
            pid: 4711,
            phase: Phase::Running,
            uptime_ms: 133_000,
            workers: vec![WorkerReport { sessions: 1 }; 2],
            listeners: vec![ListenerReport {
                name: "mysql".to_owned(),
                address: "127.0.0.1:5555".to_owned(),
                to: Some("databases".to_owned()),
                routes: Vec::new(),
                sessions: 2,
                accepted: 116,
                has_lost_its_file: false,
                ended: ended(),
            }],
            clusters: vec![ClusterReport {
                name: "databases".to_owned(),
                waiting: 0,
                queue_max: 1024,
                failback: "auto".to_owned(),
                on_duty: "primaries".to_owned(),
                awaits_failback: false,
                ended: ended(),
                endpoints: vec![
                    EndpointReport {
                        probe: Some(ProbeReport {
                            result: "passed".to_owned(),
                            reason: None,
                            took_us: 812,
                            age_ms: 1_200,
                        }),
                        ..endpoint("db1", 3306)
                    },
                    ejected(),
                    EndpointReport {
                        backup: true,
                        ..endpoint("spare", 3308)
                    },
                ],
            }],
            names: vec![
                NameReport {
                    name: "db.internal:3306".to_owned(),
                    addresses: vec!["10.0.0.11:3306".to_owned()],
                    resolved_ago_ms: Some(12_000),
                    trouble: None,
                    trouble_for_ms: None,
                },
                NameReport {
                    name: "srv _mysql._tcp.db".to_owned(),
                    addresses: Vec::new(),
                    resolved_ago_ms: None,
                    trouble: Some("no such name (NXDOMAIN)".to_owned()),
                    trouble_for_ms: Some(65_000),
                },
            ],
            splice: SpliceReport {
                bytes: 3 << 30,
                pipes: 2,
                pipes_max: 256,
                ..SpliceReport::default()
            },
            access_log: Some(AccessLogReport {
                written: 114,
                dropped: 0,
            }),
            state_file: None,
            predecessor: Some(PredecessorReport {
                pid: 4710,
                sessions: Some(17),
            }),
        }
    }

    /// The whole page, as people see it.
    #[test]
    fn the_page() {
        let page = "\
evenkeel 0.1.0: pid 4711, running for 2m 13s, workers: 2
pid 4710, which it has taken over from, lets its sessions finish: 17

LISTENER  ADDRESS         TO         OPEN  ACCEPTED  BYTES-UP  BYTES-DOWN  ENDED
mysql     127.0.0.1:5555  databases     2       116   2.0 KiB     5.0 MiB  done 110, client_reset 4

CLUSTER databases: 0 of at most 1024 waiting
  ENDPOINT  ADDRESS         STATE             WEIGHT  EFFECTIVE  IN-FLIGHT  ATTEMPTS  ESTABLISHED  FAILURES  LAST FAILURE         PROBE
  db1       10.0.0.11:3306  up                     3          3        2/8       120          118         0  -                    passed in 0.8ms, 1.2s ago
  db2       10.0.0.11:3307  ejected for 4.5s       3          0          0       120          118         5  refused, 1m 05s ago  failed 1.2s ago: connection refused
  spare     10.0.0.11:3308  up, backup             3          3        2/8       120          118         0  -                    -

NAME                ADDRESSES  RESOLVED   TROUBLE
db.internal:3306            1  12.0s ago  -
srv _mysql._tcp.db          0  never      no such name (NXDOMAIN), for 1m 05s

spliced: 3.0 GiB through pipes, 2 of at most 256 open; no pipe: 0 times over the limit, 0 refused by the kernel
access log: 114 lines written, 0 dropped
";
        assert_eq!(render(&world()), page);
    }

    /// What an operator has set is told apart from what is configured.
    #[test]
    fn overrides_are_marked() {
        let mut report = world();
        report.clusters[0].awaits_failback = true;
        report.clusters[0].on_duty = "backups".to_owned();
        let endpoint = &mut report.clusters[0].endpoints[0];
        endpoint.state = "draining".to_owned();
        endpoint.overrides = OverridesReport {
            weight: Some(OverrideReport {
                configured: 1,
                value: 3,
            }),
            service: Some(OverrideReport {
                configured: "in-service".to_owned(),
                value: "draining".to_owned(),
            }),
        };

        let page = render(&report);

        assert!(
            page.contains("draining (configured in-service)  3 (configured 1)"),
            "{page}"
        );
        assert!(
            page.contains("until `evenkeel failback databases`"),
            "{page}"
        );
    }

    /// A name with terminal commands in it is shown, not obeyed.
    #[test]
    fn a_hostile_name_is_only_shown() {
        let mut report = world();
        report.listeners[0].name = "\u{1b}[2Jgone".to_owned();

        assert!(!render(&report).contains('\u{1b}'));
    }
}
