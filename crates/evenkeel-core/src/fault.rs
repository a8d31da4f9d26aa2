//! Faults that the simulation puts into the core, one at a time, to show that it would find them.
//!
//! Only builds for this crate's own tests can inject one; everywhere else [`injected`] is a constant `false` and the
//! compiler removes what hangs on it.

/// A way in which this crate could be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A finished lease does not give its slot back.
    SlotLeaks,
    /// A lease that was finished gives its slot back again when it is dropped.
    SlotFreedTwice,
    /// An endpoint's limit is not looked at.
    LimitIgnored,
    /// A freed slot wakes nobody.
    WakeUpLost,
    /// The newest waiter is served first.
    LastInFirstOut,
    /// A ticket that is dropped stays in the queue.
    LeaverStays,
    /// An ejection never ends.
    EjectedForEver,
    /// The last usable endpoint may be ejected.
    LastOneEjected,
    /// An endpoint at effective weight 0 gets no trial.
    NoTrials,
    /// When all are at effective weight 0, none is used.
    WeightDecidesAvailability,
    /// An endpoint at effective weight 0 is not used while those above 0 are full.
    WeightKeepsOut,
    /// A hash gives an endpoint the part of its keys that its effective weight is of the configured one.
    KeysFadeOneByOne,
    /// A reload gives every endpoint fresh counts.
    ReloadForgets,
    /// A success raises the effective weight past the configured one.
    WeightOvershoots,
    /// An endpoint that the operator disabled is used.
    DisabledUsed,
    /// An endpoint that probes found down is used.
    DownUsed,
    /// An endpoint is used before its first passed probe.
    UnknownUsed,
    /// No probe brings an endpoint back that was down.
    DownForEver,
    /// A configuration with new probes takes out the endpoints that work.
    NewProbesTakeOut,
    /// A reload forgets what the operator has set.
    OverridesForgotten,
    /// What the operator has set stands against a configuration that says otherwise.
    OverridesOutliveTheFile,
    /// With manual failback, primaries that return take the work.
    FailsBackByItself,
    /// With manual failback, nobody works when those on duty are out.
    DutyNeverPassesOn,
}

#[cfg(test)]
thread_local! {
    // One per thread, because tests that run beside each other inject different ones.
    static INJECTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Injects `fault`, or none, into everything that this thread does from here on.
#[cfg(test)]
pub(crate) fn inject(fault: Option<Fault>) {
    INJECTED.set(fault);
}

/// Whether the code that asks is to misbehave in this way.
#[cfg(test)]
pub(crate) fn injected(fault: Fault) -> bool {
    INJECTED.get() == Some(fault)
}

/// Never, outside this crate's own tests.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn injected(_fault: Fault) -> bool {
    false
}
