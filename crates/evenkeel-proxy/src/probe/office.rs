//! What all patrols share: whose turn it is, who has not been asked yet, where results go.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::units::EndpointId;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::ledger::Ledger;
use super::patrol::Subject;
use super::tls::Credentials;
use super::visit::Visit;
use crate::Proxy;
use crate::settings::OnDown;

/// The most questions that are open at one time, over all clusters; each takes a descriptor. Others wait for their turn.
pub(crate) const OPEN_MAX: usize = 256;
/// The most conversations beyond those that are brought to their end though their answer is late. What is beyond is broken off.
pub(crate) const LATE_MAX: usize = 256;

/// The most goodbyes at one time, beyond those. What is beyond is said without waiting for the other end.
pub(crate) const PARTING_MAX: usize = 256;
/// How long an endpoint may take to end its side after the verdict.
const PARTING_PATIENCE: Duration = Duration::from_secs(1);

/// See the module's documentation.
pub(super) struct Office {
    pub(super) proxy: Arc<Proxy>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) credentials: Credentials,
    turns: Semaphore,
    late: Arc<Semaphore>,
    parting: Arc<Semaphore>,
    /// Endpoints that no question has been asked about yet.
    unasked: Mutex<HashSet<EndpointId>>,
}

impl Office {
    pub(super) fn new(proxy: Arc<Proxy>, ledger: Arc<Ledger>) -> Self {
        Self {
            proxy,
            ledger,
            credentials: Credentials::default(),
            turns: Semaphore::new(OPEN_MAX),
            late: Arc::new(Semaphore::new(LATE_MAX)),
            parting: Arc::new(Semaphore::new(PARTING_MAX)),
            unasked: Mutex::default(),
        }
    }

    /// Waits for the right to ask; it ends with the permit. `None` never comes: nobody closes the semaphore.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// The right to keep a conversation whose answer is late.
    pub(super) fn place_for_late(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.late).try_acquire_owned().ok()
    }

    /// Says goodbye. Nobody is kept by an endpoint that does not end its side: there is nothing left to learn from it.
    pub(super) async fn part(&self, visit: Visit) {
        let Ok(place) = Arc::clone(&self.parting).try_acquire_owned() else {
            let _ = timeout(Duration::ZERO, visit.part()).await;
            return;
        };
        tokio::spawn(async move {
            let _ = timeout(PARTING_PATIENCE, visit.part()).await;
            drop(place);
        });
    }

    /// Waits until every goodbye is said.
    pub(super) async fn have_all_parted(&self) {
        // Never closed, and each of the places comes back.
        let all = u32::try_from(PARTING_MAX).unwrap_or(u32::MAX);
        let _ = self.parting.acquire_many(all).await;
    }

    pub(super) fn is_to_be_asked(&self, endpoint: EndpointId) {
        self.unasked.lock().insert(endpoint);
    }

    /// There is a first result, or there will be none.
    pub(super) fn has_been_asked(&self, endpoint: EndpointId) {
        self.unasked.lock().remove(&endpoint);
    }

    pub(super) fn is_everybody_asked(&self) -> bool {
        self.unasked.lock().is_empty()
    }

    /// A probe has failed, and the endpoint is down. Said with every such probe: a session may have been on its way to the endpoint
    /// when the others were closed.
    pub(super) fn found_down(&self, subject: &Subject) {
        if subject.on_down == OnDown::Close {
            self.proxy.close_sessions_of(subject.endpoint);
        }
    }
}
