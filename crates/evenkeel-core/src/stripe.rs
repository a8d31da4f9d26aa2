//! Who writes where: every thread counts its leases on cache lines of its own, and they are summed when read.
//!
//! A line that another core wrote last costs some 60 ns, and each lease would visit the endpoint's reference count and
//! totals twice. So each endpoint has [`Stripe::COUNT`] tallies and handles, and a thread uses those of its stripe.
//! More threads than stripes share some, which costs time and changes nothing: no decision is made by a stripe's number.
//!
//! In-flight counts need more. Limits and balancers that compare loads read all of them for each choice, so there they
//! are *gathered* into one count per endpoint (`counts.rs`). Elsewhere nobody reads them but people, and they stay here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::endpoint::Endpoint;

/// The part of the counters that one thread writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripe(usize);

impl Stripe {
    /// 192 bytes an endpoint for each. With more cores than this, a few of them share a stripe.
    pub(crate) const COUNT: usize = 8;

    pub(crate) fn of_this_thread() -> Self {
        OF_THIS_THREAD.with(|stripe| *stripe)
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    pub(crate) const fn index(self) -> usize {
        self.0
    }
}

thread_local! {
    static OF_THIS_THREAD: Stripe = Stripe(NEXT.fetch_add(1, Ordering::Relaxed) % Stripe::COUNT);
}

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// An endpoint as the threads of one stripe hold it: a reference count of their own.
#[repr(align(64))]
pub(crate) struct Handle {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) stripe: Stripe,
}

/// What the threads of one stripe have counted on one endpoint.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Tally {
    /// Leases at this moment, or [`GATHERED`].
    held: AtomicU32,
    leases: AtomicU64,
    established: AtomicU64,
}

/// As the number of leases: they are counted elsewhere.
const GATHERED: u32 = 1 << 31;

impl Tally {
    /// Counts a lease as held; `false` if the endpoint's counts are gathered.
    #[inline]
    pub(crate) fn hold(&self) -> bool {
        let held = self
            .held
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |held| {
                (held != GATHERED).then(|| held.wrapping_add(1))
            });
        held.is_ok()
    }

    /// The reverse. Sequentially consistent, as `Endpoint::release` needs it.
    #[inline]
    pub(crate) fn let_go(&self) -> bool {
        let held = self
            .held
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, |held| {
                (held != GATHERED).then(|| held.wrapping_sub(1))
            });
        held.is_ok()
    }

    /// From here on leases are counted elsewhere; returns those to be added there.
    pub(crate) fn gather(&self) -> u32 {
        match self.held.swap(GATHERED, Ordering::SeqCst) {
            GATHERED => 0,
            held => held,
        }
    }

    pub(crate) fn held(&self) -> u32 {
        match self.held.load(Ordering::Relaxed) {
            GATHERED => 0,
            held => held,
        }
    }

    #[inline]
    pub(crate) fn count_lease(&self) {
        self.leases.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_established(&self) {
        self.established.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leases(&self) -> u64 {
        self.leases.load(Ordering::Relaxed)
    }

    pub(crate) fn established(&self) -> u64 {
        self.established.load(Ordering::Relaxed)
    }
}
