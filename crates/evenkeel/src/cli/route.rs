//! `evenkeel route`: who would get a connection, and why not each other endpoint. Nothing is connected or counted.

use std::fmt;
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
    /// The client's address, with or without a port, or `unix`
    #[arg(value_name = "FROM-ADDRESS", value_parser = origin)]
    from: From,
    /// The client's first line, for a cluster that hashes it
    #[arg(long, value_name = "TEXT")]
    first_line: Option<String>,
    /// The name that the client asks for in its TLS handshake, for a listener that goes by it
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Where a client connects from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// An IP address.
    Ip(IpAddr),
    /// A Unix socket of this machine.
    Unix,
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix => f.write_str("a Unix socket"),
        }
    }
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
        from: match arguments.from {
            From::Ip(address) => Some(address),
            From::Unix => None,
        },
        first_line: arguments.first_line.clone(),
        server_name: arguments.sni.clone(),
    };
    Ok(arguments.which.connect()?.ask(&request)?)
}

fn origin(text: &str) -> Result<From, String> {
    if text == "unix" {
        return Ok(From::Unix);
    }
    let with_port = text.parse::<SocketAddr>().map(|address| address.ip());
    let address = with_port.or_else(|_| text.parse());
    address.map(From::Ip).map_err(|_| {
        "an IP address is needed, as 192.0.2.7 or [2001:db8::7]:5000, or the word `unix`".to_owned()
    })
}

/// Who is asked about.
pub struct AskedClient {
    /// Where it connects from.
    pub from: From,
    /// Whether it was said what it sends first.
    pub has_first_line: bool,
    /// Whether it was said which name it asks for.
    pub has_server_name: bool,
}

fn client_of(arguments: &RouteArguments) -> AskedClient {
    AskedClient {
        from: arguments.from,
        has_first_line: arguments.first_line.is_some(),
        has_server_name: arguments.sni.is_some(),
    }
}

/// The answer in words.
pub fn render(report: &RouteReport, client: &AskedClient) -> String {
    let (from, listener) = (client.from, printable(&report.listener));
    format!(
        "a connection from {from} to {listener} {}{}{}\n{}",
        fate(report),
        by_rule(report),
        assumed(report, client),
        verdicts(report)
    )
}

/// The rule that leads there, if it is one.
fn by_rule(report: &RouteReport) -> String {
    match &report.rule {
        Some(rule) => format!(", by the route for {}", printable(&rule.sni)),
        None => String::new(),
    }
}

/// What was taken for granted because nothing was said of it.
const fn assumed(report: &RouteReport, client: &AskedClient) -> &'static str {
    if report.by_server_name && !client.has_server_name {
        " (for a client that asks for no name; give --sni)"
    } else if report.by_first_line && !client.has_first_line {
        " (for an empty first line; give --first-line)"
    } else {
        ""
    }
}

/// What becomes of the connection.
fn fate(report: &RouteReport) -> String {
    let Some(cluster) = report.cluster.as_deref().map(printable) else {
        return "is closed: no route is for it, and the listener has no `to`".to_owned();
    };
    let has = |code| report.verdicts.iter().any(|known| known.verdict == code);
    match &report.chosen {
        _ if report.phase == Phase::Stopping => "is not accepted: stopping".to_owned(),
        Some(endpoint) => format!("goes to {cluster}/{}", printable(endpoint)),
        None if has("usable") => format!("goes to an endpoint of {cluster} as chance decides"),
        None if has("full") => waits(report, &cluster),
        None => format!("goes to no endpoint of {cluster}"),
    }
}

fn waits(report: &RouteReport, cluster: &str) -> String {
    let (waiting, max) = (report.waiting, report.queue_max);
    let queue = format!("{cluster} ({waiting} of at most {max} waiting)");
    if waiting < max {
        format!("waits for a free slot of {queue}")
    } else {
        format!("finds every slot and the queue full at {queue}")
    }
}

fn verdicts(report: &RouteReport) -> String {
    if report.verdicts.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        ("ENDPOINT", Align::Left),
        ("VERDICT", Align::Left),
        ("WHY", Align::Left),
    ]);
    for verdict in &report.verdicts {
        table.push([&verdict.endpoint, &verdict.verdict, &verdict.why].map(|cell| printable(cell)));
    }
    format!("\n{}", table.render(""))
}

#[cfg(test)]
mod tests {
    use evenkeel_proxy::control::report::{RuleReport, VerdictReport};

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
            cluster: Some("databases".to_owned()),
            queue_max: 1,
            chosen: Some("db2".to_owned()),
            verdicts: vec![
                verdict("db1", "full", "has 8 of at most 8 sessions"),
                verdict("db2", "chosen", "gets it"),
            ],
            ..RouteReport::nowhere("mysql")
        }
    }

    fn client() -> AskedClient {
        AskedClient {
            from: From::Ip(IpAddr::from([192, 0, 2, 7])),
            has_first_line: false,
            has_server_name: false,
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

    /// The rule that led there is named, and so is a name that was not given.
    #[test]
    fn the_route_is_told() {
        let by_name = RouteReport {
            by_server_name: true,
            ..answer()
        };
        let rule = RuleReport {
            sni: "*.example.com".to_owned(),
            to: "databases".to_owned(),
        };
        let ruled = RouteReport {
            rule: Some(rule),
            ..by_name.clone()
        };
        let nowhere = RouteReport {
            by_server_name: true,
            ..RouteReport::nowhere("mysql")
        };
        let given = AskedClient {
            has_server_name: true,
            ..client()
        };

        assert!(render(&by_name, &client()).contains("give --sni"));
        assert!(
            render(&ruled, &given).contains("databases/db2, by the route for *.example.com\n\n")
        );
        assert_eq!(
            render(&nowhere, &given),
            "a connection from 192.0.2.7 to mysql is closed: no route is for it, and the listener has no `to`\n"
        );
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

    /// A port does no harm, a Unix socket has a word, and a name is refused with an example.
    #[test]
    fn addresses_come_with_and_without_a_port() {
        for text in ["192.0.2.7", "192.0.2.7:50312"] {
            assert_eq!(origin(text), Ok(From::Ip(IpAddr::from([192, 0, 2, 7]))));
        }
        assert_eq!(origin("[::1]:9"), origin("::1"));
        assert_eq!(origin("unix"), Ok(From::Unix));
        assert!(origin("localhost").unwrap_err().contains("192.0.2.7"));
    }
}
