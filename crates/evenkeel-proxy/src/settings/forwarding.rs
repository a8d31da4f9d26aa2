//! What endpoints are told of clients, and whose word about clients is believed.

use std::sync::Arc;

use evenkeel_wire::http1::FieldValue;
pub use evenkeel_wire::http1::Forward;

use crate::senders::Sender;

/// Headers that tell endpoints of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingSettings {
    /// Proxies whose word about a client is believed.
    pub trusted: Arc<[Sender]>,
    /// `X-Forwarded-For`, `-Proto` and `-Host`. What a peer says that is not trusted is replaced, not added to.
    pub x_forwarded: Forward,
    /// `Forwarded`, likewise.
    pub forwarded: Forward,
    /// By what name evenkeel enters itself in `Via`; `None` leaves `Via` as it is.
    pub via: Option<Arc<str>>,
    /// What is done about `X-Request-Id`.
    pub request_id: RequestId,
}

/// What is done about `X-Request-Id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestId {
    /// It is left as it is.
    #[default]
    Leave,
    /// A request without one gets one; what a trusted peer says is kept, what others say replaced.
    Make,
}

/// Whether an answer of evenkeel's own tells its reason in `X-Evenkeel-Reason`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasonHeader {
    /// It does.
    #[default]
    Sent,
    /// It does not.
    Left,
}

impl Default for ForwardingSettings {
    fn default() -> Self {
        Self {
            trusted: Arc::from([]),
            x_forwarded: Forward::Append,
            forwarded: Forward::Leave,
            via: None,
            request_id: RequestId::Leave,
        }
    }
}

impl ForwardingSettings {
    /// What is put into `Via`; nothing where the name would not be a value.
    pub(crate) fn via_value(&self) -> Option<FieldValue<'_>> {
        self.via
            .as_ref()
            .and_then(|name| FieldValue::new(name.as_bytes()))
    }
}
