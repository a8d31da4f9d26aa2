//! `evenkeel route`: who would get a connection, and why not each other endpoint. Nothing is connected or counted.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use evenkeel_proxy::control::protocol::Request;
use evenkeel_proxy::control::report::RouteReport;

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
        Ok(report) => output::print(&render(&report, arguments.from)),
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

/// The answer in words.
pub fn render(report: &RouteReport, from: IpAddr) -> String {
    let gets = match &report.chosen {
        Some(endpoint) => format!(
            "goes to {}/{}",
            printable(&report.cluster),
            printable(endpoint)
        ),
        None => format!("goes to no endpoint of {}", printable(&report.cluster)),
    };
    let mut table = Table::new([
        ("ENDPOINT", Align::Left),
        ("VERDICT", Align::Left),
        ("WHY", Align::Left),
    ]);
    for verdict in &report.verdicts {
        table.push([&verdict.endpoint, &verdict.verdict, &verdict.why].map(|cell| printable(cell)));
    }
    format!(
        "a connection from {from} to {} {gets}\n\n{}",
        printable(&report.listener),
        table.render("")
    )
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

    /// The whole answer, as people see it.
    #[test]
    fn the_answer() {
        let report = RouteReport {
            listener: "mysql".to_owned(),
            cluster: "databases".to_owned(),
            chosen: Some("db2".to_owned()),
            verdicts: vec![
                verdict("db1", "full", "has 8 of at most 8 sessions"),
                verdict("db2", "chosen", "gets it"),
            ],
        };

        assert_eq!(
            render(&report, "192.0.2.7".parse().unwrap()),
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
