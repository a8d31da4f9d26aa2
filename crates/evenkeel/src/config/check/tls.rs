//! Rules between the keys of `tls`.

use crate::config::diagnostics::{Problem, Problems};
use crate::config::file::EndpointTls;

pub(super) fn check_endpoint_tls(tls: &EndpointTls, problems: &Problems) {
    check_pair(tls, problems);
    let is_off = tls.verify.as_ref().filter(|verify| !verify.value);
    if let (Some(ca), Some(verify)) = (&tls.ca, is_off) {
        let problem = Problem::at(&ca.span, "`ca` says nothing while nothing is verified");
        let problem = problem.related(&verify.span, "here it is turned off");
        problems.report(problem.help("leave one of them out"));
    }
}

/// A certificate is of no use without its key, and the other way round.
fn check_pair(tls: &EndpointTls, problems: &Problems) {
    let (lonely, missing) = match (&tls.certificate, &tls.key) {
        (Some(certificate), None) => (certificate, "key"),
        (None, Some(key)) => (key, "certificate"),
        _ => return,
    };
    let message = format!("a certificate goes with its key: `{missing}` is missing");
    let problem = Problem::at(&lonely.span, message);
    problems.report(problem.help(format!("add `{missing} = \"…\"`, a file in PEM")));
}
