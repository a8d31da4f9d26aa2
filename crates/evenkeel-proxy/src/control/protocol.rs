//! Lines on the control socket: what may be asked, and how an answer or a fault looks. Text and values only, no IO.
//!
//! ```text
//! {"version":1,"command":"status"}
//! {"version":1,"result":{"program":"0.1.0","pid":4711, …}}
//! {"version":1,"error":{"kind":"unknown_listener","message":"there is no listener \"mysq\""}}
//! ```

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::operator::{EndpointAct, EndpointAnswer, FailbackAnswer};
use super::reload_report::ReloadReport;
use super::report::{RouteReport, StatusReport, StopReport};
use super::upgrade_report::UpgradeReport;

/// The version of the protocol. It changes when an old client could misunderstand an answer, not when a field is added.
pub const VERSION: u32 = 1;
/// The longest request, with its line feed.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// The longest answer, with its line feed: about 200,000 endpoints.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What may be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Request {
    /// How are you? Answered by a [`StatusReport`].
    Status,
    /// Who would get this connection? Answered by a [`RouteReport`].
    Route {
        /// The listener's name.
        listener: String,
        /// Where the connection would come from; `None` is a Unix socket.
        #[serde(default)]
        from: Option<IpAddr>,
        /// The client's first line, for clusters that hash it.
        #[serde(default)]
        first_line: Option<String>,
        /// The name that the client asks for in its TLS handshake, for listeners that go by it.
        #[serde(default)]
        server_name: Option<String>,
    },
    /// Do something with an endpoint. Answered by an [`EndpointAnswer`] when it is in force.
    Endpoint {
        /// `CLUSTER/NAME`.
        endpoint: String,
        /// What.
        act: EndpointAct,
    },
    /// Give the work back to a cluster's primaries. Answered by a [`FailbackAnswer`].
    Failback {
        /// The cluster's name.
        cluster: String,
    },
    /// Let another program take over. Answered by an [`UpgradeReport`] when it serves, or has failed to.
    Upgrade {
        /// Its path; otherwise whatever lies at the running one's path by now.
        #[serde(default)]
        binary: Option<PathBuf>,
        /// How long it may take until it serves.
        wait_ms: u64,
    },
    /// Read the configuration again and go over to it. Answered by a [`ReloadReport`] when it is done.
    Reload {
        /// For whose eyes the errors are, if there are any.
        #[serde(default)]
        appearance: Appearance,
    },
    /// End. Answered by a [`StopReport`] before it is done.
    Stop {
        /// How.
        mode: StopMode,
    },
}

/// How text in an answer looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Appearance {
    /// For files and pipes.
    #[default]
    Plain,
    /// For a terminal.
    Coloured,
}

/// How a process is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopMode {
    /// Accept nothing new; let sessions finish until the stop deadline.
    Graceful,
    /// Close everything at once.
    Now,
}

/// An answer to a request that could be carried out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// To [`Request::Status`].
    Status(StatusReport),
    /// To [`Request::Route`].
    Route(RouteReport),
    /// To [`Request::Endpoint`].
    Endpoint(EndpointAnswer),
    /// To [`Request::Failback`].
    Failback(FailbackAnswer),
    /// To [`Request::Upgrade`].
    Upgrade(UpgradeReport),
    /// To [`Request::Reload`].
    Reload(ReloadReport),
    /// To [`Request::Stop`].
    Stop(StopReport),
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// For programs.
    pub kind: FaultKind,
    /// For people.
    pub message: String,
}

/// The closed list of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Not a JSON object, or not of this shape.
    BadRequest,
    /// A protocol version that this process does not speak.
    UnknownVersion,
    /// Longer than [`REQUEST_BYTES_MAX`].
    TooLong,
    /// The request did not arrive in time.
    TimedOut,
    /// No listener has this name.
    UnknownListener,
    /// No cluster has this name.
    UnknownCluster,
    /// No endpoint of the cluster has this name.
    UnknownEndpoint,
    /// It cannot be done as things are.
    NotPossible,
    /// Not now, or not by this process; the message says why.
    Refused,
    /// The process itself is at fault.
    Internal,
}

impl Fault {
    /// A fault with its message.
    pub fn new(kind: FaultKind, message: impl fmt::Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[derive(Serialize)]
struct RequestLine<'a> {
    version: u32,
    #[serde(flatten)]
    request: &'a Request,
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Body<T> {
    Result(T),
    Error(Fault),
}

#[derive(Serialize, Deserialize)]
struct AnswerLine<T> {
    version: u32,
    #[serde(flatten)]
    body: Body<T>,
}

/// A request as a line, with its line feed.
///
/// # Errors
///
/// None in practice: every request can be written as JSON.
pub fn encode_request(request: &Request) -> serde_json::Result<Vec<u8>> {
    encode_line(&RequestLine {
        version: VERSION,
        request,
    })
}

/// Reads a request from a line. The line may hold any bytes.
///
/// # Errors
///
/// A fault to be sent back: not JSON, another version, or no such command. The version is judged first, so that a newer
/// client learns the real reason.
pub fn decode_request(line: &[u8]) -> Result<Request, Fault> {
    let bad = |error: serde_json::Error| Fault::new(FaultKind::BadRequest, error);
    let VersionOnly { version } = serde_json::from_slice(line).map_err(bad)?;
    if version != VERSION {
        return Err(Fault::new(
            FaultKind::UnknownVersion,
            format_args!("this process speaks version {VERSION}, not {version}"),
        ));
    }
    serde_json::from_slice(line).map_err(bad)
}

/// An answer or a fault as a line, with its line feed.
pub(super) fn encode_answer(answer: &Result<Answer, Fault>) -> Vec<u8> {
    let body = match answer {
        Ok(answer) => Body::Result(answer),
        Err(fault) => return encode_fault(fault),
    };
    let line = encode_line(&AnswerLine {
        version: VERSION,
        body,
    });
    line.unwrap_or_else(|error| encode_fault(&Fault::new(FaultKind::Internal, error)))
}

/// Two strings and a number: there is no way for this to fail, and an empty line is what it would be.
fn encode_fault(fault: &Fault) -> Vec<u8> {
    let body: Body<()> = Body::Error(fault.clone());
    encode_line(&AnswerLine {
        version: VERSION,
        body,
    })
    .unwrap_or_else(|_| b"\n".to_vec())
}

/// Reads an answer, or the fault that came instead.
///
/// # Errors
///
/// The line is not an answer of this shape.
pub fn decode_answer<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<Result<T, Fault>> {
    let AnswerLine { body, .. } = serde_json::from_slice(line)?;
    Ok(match body {
        Body::Result(answer) => Ok(answer),
        Body::Error(fault) => Err(fault),
    })
}

fn encode_line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words on the wire, as other programs may write them.
    #[test]
    fn requests_are_plain_json() {
        let route = Request::Route {
            listener: "mysql".to_owned(),
            from: Some(IpAddr::from([192, 0, 2, 7])),
            first_line: None,
            server_name: None,
        };
        let from_unix = Request::Route {
            listener: "mysql".to_owned(),
            from: None,
            first_line: None,
            server_name: None,
        };

        let status = br#"{"command":"status","version":1}"#;
        let stop = br#"{"version":1,"command":"stop","mode":"now"}"#;
        let asked = br#"{"version":1,"command":"route","listener":"mysql","from":"192.0.2.7"}"#;
        let asked_of_unix = br#"{"version":1,"command":"route","listener":"mysql"}"#;
        let drain = br#"{"version":1,"command":"endpoint","endpoint":"mysql/db1","act":"drain"}"#;
        let weigh =
            br#"{"version":1,"command":"endpoint","endpoint":"mysql/db1","act":{"weight":3}}"#;

        assert_eq!(decode_request(status), Ok(Request::Status));
        assert_eq!(
            decode_request(stop),
            Ok(Request::Stop {
                mode: StopMode::Now
            })
        );
        assert_eq!(decode_request(asked), Ok(route));
        assert_eq!(decode_request(asked_of_unix), Ok(from_unix));
        for (line, act) in [
            (&drain[..], EndpointAct::Drain),
            (&weigh[..], EndpointAct::Weight(3)),
        ] {
            let endpoint = "mysql/db1".to_owned();
            assert_eq!(
                decode_request(line),
                Ok(Request::Endpoint { endpoint, act })
            );
        }
    }

    /// What is encoded is decoded to the same request.
    #[test]
    fn requests_survive_the_wire() {
        let request = Request::Route {
            listener: "a\nb\"".to_owned(),
            from: Some(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])),
            first_line: Some("\u{0}größe".to_owned()),
            server_name: None,
        };

        let line = encode_request(&request).unwrap();

        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(decode_request(&line), Ok(request));
    }

    /// Bytes of any kind are a fault with a reason, never a panic.
    #[test]
    fn hostile_bytes_are_a_bad_request() {
        let deep = [b'['; REQUEST_BYTES_MAX];
        let hostile: [&[u8]; 10] = [
            b"",
            b"\n",
            b"\xff\xfe\x00",
            b"null",
            b"[]",
            b"{}",
            br#"{"version":-1}"#,
            br#"{"version":1}"#,
            br#"{"version":1,"command":"rm","path":"/"}"#,
            &deep,
        ];
        for line in hostile {
            let fault = decode_request(line).unwrap_err();
            assert_eq!(fault.kind, FaultKind::BadRequest, "{fault}");
            assert!(!fault.message.is_empty());
        }
    }

    /// A client of another version learns about the version, even if it asks for something unheard of.
    #[test]
    fn another_version_is_named() {
        let fault = decode_request(br#"{"version":7,"command":"dance"}"#).unwrap_err();

        assert_eq!(fault.kind, FaultKind::UnknownVersion);
        assert_eq!(fault.message, "this process speaks version 1, not 7");
    }

    /// A fault comes out of the client's end as it went into the server's.
    #[test]
    fn faults_survive_the_wire() {
        let fault = Fault::new(FaultKind::UnknownListener, "there is no listener \"x\"");

        let line = encode_answer(&Err(fault.clone()));

        assert_eq!(decode_answer::<StatusReport>(&line).unwrap(), Err(fault));
    }
}
