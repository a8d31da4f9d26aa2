//! `evenkeel route`: who would get a connection, and why not each other endpoint. Nothing is connected or counted.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use evenkeel_proxy::control::protocol::Request;
use evenkeel_proxy::control::report::{Phase, RouteReport};

use super::running::{Refused, Which};
use crate::exit::Exit;
use crate::output;
use crate::table::{Align, Table, printable};

/// What `route` takes.
#[derive(Args, Clone, Debug)]
pub struct RouteArguments {
    /// The listener that the connection would come to
    listener: String,
    /// The client's address, with or without a port
    #[arg(value_name = "FROM-ADDRESS", value_parser = address)]
    from: IpAddr,
    /// The client's first line, for a cluster that hashes it
    #[arg(long, value_name = "TEXT")]
    first_line: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Asks the running process, and prints what it says.
pub fn route(arguments: &RouteArguments) -> Exit {
    match ask(arguments) {
        Ok(report) if arguments.json => output::print_json(&report),
        Ok(report) => output::print(&render(&report, &client_of(arguments))),
        Err(refused) => refused.report(),
    }
}

fn ask(arguments: &RouteArguments) -> Result<RouteReport, Refused> {
    let request = Request::Route {
        listener: arguments.listener.clone(),
        from: arguments.from,
        first_line: arguments.first_line.clone(),
    };
    Ok(arguments.which.connect()?.ask(&request)?)
}

fn address(text: &str) -> Result<IpAddr, String> {
    let with_port = text.parse::<SocketAddr>().map(|address| address.ip());
    with_port
        .or_else(|_| text.parse())
        .map_err(|_| "an IP address is needed, as 192.0.2.7 or [2001:db8::7]:5000".to_owned())
}

/// Who is asked about.
pub struct AskedClient {
    /// Where it connects from.
    pub from: IpAddr,
    /// Whether it was said what it sends first.
    pub has_first_line: bool,
}

fn client_of(arguments: &RouteArguments) -> AskedClient {
    AskedClient {
        from: arguments.from,
        has_first_line: arguments.first_line.is_some(),
    }
}

/// The answer in words.
pub fn render(report: &RouteReport, client: &AskedClient) -> String {
    let (from, listener) = (client.from, printable(&report.listener));
    let assumed = if report.by_first_line && !client.has_first_line {
        " (for an empty first line; give --first-line)"
    } else {
        ""
    };
    format!(
        "a connection from {from} to {listener} {}{assumed}\n\n{}",
        fate(report),
        verdicts(report)
    )
}

/// What becomes of the connection.
fn fate(report: &RouteReport) -> String {
    let cluster = printable(&report.cluster);
    let has = |code| report.verdicts.iter().any(|known| known.verdict == code);
    match &report.chosen {
        _ if report.phase == Phase::Stopping => "is not accepted: stopping".to_owned(),
        Some(endpoint) => format!("goes to {cluster}/{}", printable(endpoint)),
        None if has("usable") => format!("goes to an endpoint of {cluster} as chance decides"),
        None if has("full") => waits(report),
        None => format!("goes to no endpoint of {cluster}"),
    }
}

fn waits(report: &RouteReport) -> String {
    let (waiting, max) = (report.waiting, report.queue_max);
    let queue = format!(
        "{} ({waiting} of at most {max} waiting)",
        printable(&report.cluster)
    );
    if waiting < max {
        format!("waits for a free slot of {queue}")
    } else {
        format!("finds every slot and the queue full at {queue}")
    }
}

fn verdicts(report: &RouteReport) -> String {
    let mut table = Table::new([
        ("ENDPOINT", Align::Left),
        ("VERDICT", Align::Left),
        ("WHY", Align::Left),
    ]);
    for verdict in &report.verdicts {
        table.push([&verdict.endpoint, &verdict.verdict, &verdict.why].map(|cell| printable(cell)));
    }
    table.render("")
}

#[cfg(test)]
mod tests {
    use evenkeel_proxy::control::report::VerdictReport;

    use super::*;

    fn verdict(endpoint: &str, verdict: &str, why: &str) -> VerdictReport {
        VerdictReport {
            endpoint: endpoint.to_owned(),
            verdict: verdict.to_owned(),
            why: why.to_owned(),
        }
    }

    fn answer() -> RouteReport {
        RouteReport {
            listener: "mysql".to_owned(),
            cluster: "databases".to_owned(),
            phase: Phase::Running,
            by_first_line: false,
            waiting: 0,
            queue_max: 1,
            chosen: Some("db2".to_owned()),
            verdicts: vec![
                verdict("db1", "full", "has 8 of at most 8 sessions"),
                verdict("db2", "chosen", "gets it"),
            ],
        }
    }

    fn client() -> AskedClient {
        AskedClient {
            from: IpAddr::from([192, 0, 2, 7]),
            has_first_line: false,
        }
    }

    /// Where no endpoint takes it now, the first line says what happens instead.
    #[test]
    fn a_connection_that_nobody_takes_now_has_a_fate() {
        let full = || vec![verdict("db1", "full", "")];
        let waits = RouteReport {
            chosen: None,
            verdicts: full(),
            ..answer()
        };
        let refused = RouteReport {
            waiting: 1,
            ..waits.clone()
        };
        let random = RouteReport {
            verdicts: vec![verdict("db1", "usable", "")],
            ..waits.clone()
        };
        let stopping = RouteReport {
            phase: Phase::Stopping,
            ..answer()
        };

        for (report, words) in [
            (
                waits,
                "waits for a free slot of databases (0 of at most 1 waiting)",
            ),
            (
                refused,
                "finds every slot and the queue full at databases (1 of at most 1 waiting)",
            ),
            (random, "goes to an endpoint of databases as chance decides"),
            (stopping, "is not accepted: stopping"),
        ] {
            assert_eq!(fate(&report), words);
        }
    }

    /// An answer for a first line that was not given says so.
    #[test]
    fn a_missing_first_line_is_told() {
        let hashed = RouteReport {
            by_first_line: true,
            ..answer()
        };
        let given = AskedClient {
            has_first_line: true,
            ..client()
        };

        assert!(render(&hashed, &client()).contains("give --first-line"));
        assert!(!render(&hashed, &given).contains("give --first-line"));
    }

    /// The whole answer, as people see it.
    #[test]
    fn the_answer() {
        assert_eq!(
            render(&answer(), &client()),
            "a connection from 192.0.2.7 to mysql goes to databases/db2\n\
             \n\
             ENDPOINT  VERDICT  WHY\n\
             db1       full     has 8 of at most 8 sessions\n\
             db2       chosen   gets it\n"
        );
    }

    /// A port does no harm, and a name is refused with an example.
    #[test]
    fn addresses_come_with_and_without_a_port() {
        for text in ["192.0.2.7", "192.0.2.7:50312"] {
            assert_eq!(address(text), Ok(IpAddr::from([192, 0, 2, 7])));
        }
        assert_eq!(address("[::1]:9"), address("::1"));
        assert!(address("localhost").unwrap_err().contains("192.0.2.7"));
    }
}
