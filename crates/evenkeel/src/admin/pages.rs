//! What the admin listener answers: which page a path is, and with what status.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use parking_lot::Mutex;

use super::health::{self, Verdict};
use super::metrics;
use crate::desk::Desk;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// The format's version, as Prometheus wants it told.
const METRICS_TEXT: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What is told to a path that is no page.
const NO_SUCH_PAGE: &str = "there is no such page; there are /metrics, /livez and /readyz\n";
/// What is told to a method that does something.
const ONLY_READING: &str = "only GET and HEAD are answered here\n";

/// Metrics are written again once so many times longer has passed than writing them took: however often and by how many they
/// are asked for, the control plane spends a tenth of its time on them at most.
const REST: u32 = 10;

/// The pages, made from what the desk sees.
pub(crate) struct Pages {
    desk: Arc<Desk>,
    kept: Mutex<Option<Kept>>,
}

/// Metrics that were written a moment ago.
struct Kept {
    text: Bytes,
    until: Instant,
}

/// What is answered.
pub(super) type Answer = Response<Full<Bytes>>;

impl Pages {
    pub(crate) fn new(desk: Arc<Desk>) -> Self {
        Self {
            desk,
            kept: Mutex::new(None),
        }
    }

    /// The answer to a request. HEAD gets the same as GET; its body is left out by the server.
    pub(super) fn answer(&self, method: &Method, path: &str) -> Answer {
        if ![Method::GET, Method::HEAD].contains(method) {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, ONLY_READING);
            let allowed = HeaderValue::from_static("GET, HEAD");
            refusal.headers_mut().insert(ALLOW, allowed);
            return refusal;
        }
        match path {
            "/metrics" => page(StatusCode::OK, METRICS_TEXT, self.metrics()),
            "/livez" => told(&health::alive(&self.desk.vitals())),
            "/readyz" => told(&health::ready(&self.desk.vitals())),
            _ => text(StatusCode::NOT_FOUND, NO_SUCH_PAGE),
        }
    }

    fn metrics(&self) -> Bytes {
        let mut kept = self.kept.lock();
        let begun = Instant::now();
        if let Some(kept) = kept.as_ref().filter(|kept| begun < kept.until) {
            return kept.text.clone();
        }
        let text = Bytes::from(metrics::write(&self.desk));
        let rest = begun.elapsed().saturating_mul(REST);
        *kept = Some(Kept {
            text: text.clone(),
            until: Instant::now() + rest,
        });
        text
    }
}

fn told(verdict: &Verdict) -> Answer {
    match verdict {
        Ok(said) => text(StatusCode::OK, said),
        Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

fn text(status: StatusCode, text: &str) -> Answer {
    page(status, TEXT, Bytes::copy_from_slice(text.as_bytes()))
}

fn page(status: StatusCode, form: HeaderValue, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, form);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
