//! Where an endpoint is, as the user writes it: an address, or a name that leads to some.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use evenkeel_core::units::Address;
use evenkeel_proxy::discovery::{DnsName, NameError};

use super::units::{address_help, parse_address};

/// The value of `address` in an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EndpointAddress {
    /// One that stays.
    Fixed(Address),
    /// A host that has to be found, and the port there.
    Host(DnsName, u16),
}

impl fmt::Display for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(address) => address.fmt(f),
            Self::Host(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// `"10.0.0.11:3306"`, `"unix:/run/app.sock"`, `"db.internal:3306"`.
pub(super) fn parse_endpoint_address(text: &str) -> Result<EndpointAddress, String> {
    let parsed = match host_and_port(text) {
        Some((host, port)) => parse_host(text, host, port)?,
        None => EndpointAddress::Fixed(parse_address(text)?),
    };
    match &parsed {
        EndpointAddress::Fixed(Address::Ip(ip)) => check_endpoint(*ip).map(|_| parsed),
        EndpointAddress::Host(_, 0) => Err(no_port()),
        EndpointAddress::Fixed(Address::Unix(_)) | EndpointAddress::Host(..) => Ok(parsed),
    }
}

/// Whether it can be connected to.
pub(super) fn check_endpoint(ip: SocketAddr) -> Result<SocketAddr, String> {
    match ip.port() {
        0 => Err(no_port()),
        _ if ip.ip().is_unspecified() => {
            Err("that is every address and none; this machine is \"127.0.0.1\"".to_owned())
        }
        _ => Ok(ip),
    }
}

/// What has the look of a name and a port.
fn host_and_port(text: &str) -> Option<(&str, &str)> {
    if text.starts_with("unix:") {
        return None;
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let is_name = host.contains(|c: char| c.is_ascii_alphabetic()) && !host.contains([':', '/']);
    is_name.then_some((host, port))
}

fn parse_host(text: &str, host: &str, port: &str) -> Result<EndpointAddress, String> {
    let name = DnsName::parse(host).map_err(|error| match error {
        NameError::EndsWithNumber => format!("\"{host}\" is neither a name nor an IP address"),
        other => other.to_string(),
    })?;
    match port.parse() {
        Ok(port) => Ok(EndpointAddress::Host(name, port)),
        Err(_) if text.contains(':') => Err(address_help(text)),
        Err(_) => Err(format!("add a port, as in \"{name}:3306\"")),
    }
}

fn no_port() -> String {
    "no endpoint listens on port 0".to_owned()
}

/// `"_mysql._tcp.db.internal"`
pub(super) fn parse_service(text: &str) -> Result<DnsName, String> {
    match DnsName::parse(text) {
        Err(NameError::Stray(':')) => {
            Err("leave the port out: the SRV records bring it".to_owned())
        }
        Err(NameError::EndsWithNumber) => {
            Err("an address needs no SRV record: write it as `address`".to_owned())
        }
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// `"10.0.0.53"`, `"10.0.0.53:53"`, `"[2001:db8::53]:53"`.
pub(super) fn parse_name_server(text: &str) -> Result<SocketAddr, String> {
    const PORT: u16 = 53;
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, PORT));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() == 0 => Err("no name server listens on port 0".to_owned()),
        Ok(address) => Ok(address),
        Err(_) => Err("write IP addresses, as in \"10.0.0.53\" or \"10.0.0.53:5353\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A name is told from an address, and printed as it is written.
    #[test]
    fn names_and_addresses_are_told_apart() {
        for text in ["db.internal:3306", "localhost:1", "db:80", "my_app:65535"] {
            let parsed = parse_endpoint_address(text).unwrap();
            assert!(matches!(parsed, EndpointAddress::Host(..)), "{text}");
            assert_eq!(parsed.to_string(), text);
        }
        for text in ["10.0.0.1:3306", "[::1]:3306", "unix:/run/app.sock"] {
            let parsed = parse_endpoint_address(text).unwrap();
            assert!(matches!(parsed, EndpointAddress::Fixed(_)), "{text}");
            assert_eq!(parsed.to_string(), text);
        }
    }

    // Each common mistake is told apart.
    #[test]
    fn a_refused_endpoint_says_what_to_write() {
        for (text, part) in [
            ("db.internal", "\"db.internal:3306\""),
            ("db.internal:", "the port must be a number"),
            ("db.internal:99999", "from 0 to 65535"),
            ("db.internal:0", "port 0"),
            ("db..internal:80", "nothing between two dots"),
            ("-db:80", "first nor last"),
            ("d b:80", "no ` `"),
            ("10.0.0.300:80", "no IP address"),
            ("db.300:80", "neither a name nor an IP address"),
            ("10.0.0.11", "add a port"),
            ("http://db:80", "no IP address"),
            ("/run/app.sock", "unix:/run/app.sock"),
            ("0.0.0.0:80", "every address and none"),
            ("fe80::1:2:3:4:5:6:80", "in brackets"),
            ("3306", "an IP address and a port"),
        ] {
            let refused = parse_endpoint_address(text).expect_err(text);
            assert!(refused.contains(part), "{text}: {refused}");
        }
    }

    // A service has no port of its own.
    #[test]
    fn a_service_is_a_name() {
        assert!(parse_service("_mysql._tcp.db.internal").is_ok());
        let refused = parse_service("_mysql._tcp.db.internal:3306").unwrap_err();
        assert!(refused.contains("leave the port out"), "{refused}");
        assert!(parse_service("10.0.0.1").unwrap_err().contains("`address`"));
    }

    // The usual port need not be written.
    #[test]
    fn a_name_server_is_an_address() {
        assert_eq!(
            parse_name_server("10.0.0.53"),
            parse_name_server("10.0.0.53:53")
        );
        assert_eq!(parse_name_server("::1"), parse_name_server("[::1]:53"));
        for text in ["ns.internal", "10.0.0.53:0", ""] {
            assert!(parse_name_server(text).is_err(), "{text}");
        }
    }
}
