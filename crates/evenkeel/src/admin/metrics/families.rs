//! Every metric there is: the list that `docs/metrics.md` is held against.
//!
//! Names follow Prometheus's conventions: base units, `_total` for what only grows. Labels hold names out of the configuration
//! and words out of closed lists, so that there are no more series than the configuration makes.

use super::text::{Family, Kind};

macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(pub(super) static $constant: Family = Family {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)+

        /// All of them, in the order in which they are written.
        #[cfg(test)]
        pub(super) static ALL: &[&Family] = &[$(&$constant),+];
    };
}

families! {
    BUILD_INFO = Gauge "evenkeel_build_info" ["version"]
        "Always 1; the label says which program this is.";
    START_TIME = Gauge "process_start_time_seconds" []
        "When the process began to serve, in seconds since 1970.";
    CPU_TIME = Counter "process_cpu_seconds_total" []
        "Processor time used, by the program and by the kernel for it.";
    RESIDENT = Gauge "process_resident_memory_bytes" []
        "Memory in use.";
    OPEN_DESCRIPTORS = Gauge "process_open_fds" []
        "File descriptors in use.";
    MAX_DESCRIPTORS = Gauge "process_max_fds" []
        "The most file descriptors the process may use; missing where there is no limit.";
    READY = Gauge "evenkeel_ready" []
        "1 while /readyz says yes.";
    SESSIONS_MAX = Gauge "evenkeel_sessions_max" []
        "The most sessions at one time: as configured, or as many as there are descriptors for.";
    RELOADS = Counter "evenkeel_reloads_total" ["result"]
        "Reloads of the configuration; all who asked for one at the same time share it.";
    RELOAD_SUCCESS = Gauge "evenkeel_reload_last_success_timestamp_seconds" []
        "When the configuration in force was last read, at the start or by a reload, in seconds since 1970.";
    WORKER_UP = Gauge "evenkeel_worker_up" ["worker"]
        "1 while the worker reads its mail; 0 when it is stuck or has ended.";
    WORKER_SESSIONS = Gauge "evenkeel_worker_sessions" ["worker"]
        "Sessions now.";
    LISTENER_SESSIONS = Gauge "evenkeel_listener_sessions" ["listener"]
        "Sessions now.";
    LISTENER_MAX_CONNECTIONS = Gauge "evenkeel_listener_max_connections" ["listener"]
        "The most sessions at one time; missing where there is no limit.";
    LISTENER_CONNECTIONS = Counter "evenkeel_listener_connections_total" ["listener"]
        "Connections accepted.";
    LISTENER_ENDED = Counter "evenkeel_listener_sessions_ended_total" ["listener", "reason"]
        "Sessions that have ended, by reason code.";
    LISTENER_BYTES = Counter "evenkeel_listener_bytes_total" ["listener", "direction"]
        "Bytes of the sessions that have ended; up is from clients to endpoints.";
    LISTENER_LIVES = Histogram "evenkeel_listener_session_duration_seconds" ["listener"]
        "From accept to the end, of the sessions that have ended.";
    LISTENER_EXCHANGES = Counter "evenkeel_listener_exchanges_total" ["listener", "class"]
        "Requests of an HTTP listener that are over, by the first digit of the answer's status; none where the client was sent no answer.";
    LISTENER_EXCHANGES_ENDED = Counter "evenkeel_listener_exchanges_ended_total" ["listener", "reason"]
        "The same, by reason code.";
    LISTENER_PAUSES = Counter "evenkeel_listener_pauses_total" ["listener", "cause"]
        "How often a worker ceased to accept while clients may have waited.";
    LISTENER_PAUSED_WORKERS = Gauge "evenkeel_listener_paused_workers" ["listener"]
        "Workers that accept nobody now.";
    LISTENER_PAUSED_SECONDS = Counter "evenkeel_listener_paused_seconds_total" ["listener"]
        "Time in which nobody was accepted, of all workers together.";
    CLUSTER_WAITING = Gauge "evenkeel_cluster_waiting_sessions" ["cluster"]
        "Sessions that wait for a free slot now.";
    CLUSTER_QUEUE_MAX = Gauge "evenkeel_cluster_queue_max" ["cluster"]
        "The most sessions that may wait for a free slot.";
    CLUSTER_WAITS = Histogram "evenkeel_cluster_queue_duration_seconds" ["cluster"]
        "How long sessions waited for a free slot: those that had to, and have ended.";
    CLUSTER_CONNECTS = Histogram "evenkeel_cluster_connect_duration_seconds" ["cluster"]
        "From the first attempt to the connection that served, of the sessions that have ended.";
    CLUSTER_DUTY = Gauge "evenkeel_cluster_on_duty" ["cluster", "tier"]
        "1 for the tier that has the work, primaries or backups, 0 for the other.";
    CLUSTER_FIRST_BYTES = Histogram "evenkeel_cluster_first_byte_duration_seconds" ["cluster"]
        "From the first byte of a request to the first byte of its answer, of HTTP requests that are over.";
    CLUSTER_EXCHANGES = Histogram "evenkeel_cluster_exchange_duration_seconds" ["cluster"]
        "From the first byte of a request to the last of its answer, of HTTP requests that are over.";
    ENDPOINT_STATE = Gauge "evenkeel_endpoint_state" ["cluster", "endpoint", "state"]
        "1 for the state that the endpoint is in, 0 for the others.";
    ENDPOINT_WEIGHT = Gauge "evenkeel_endpoint_weight" ["cluster", "endpoint"]
        "Its weight as configured.";
    ENDPOINT_EFFECTIVE_WEIGHT = Gauge "evenkeel_endpoint_effective_weight" ["cluster", "endpoint"]
        "Its weight less recent failures.";
    ENDPOINT_OVERRIDDEN = Gauge "evenkeel_endpoint_overridden" ["cluster", "endpoint", "value"]
        "1 where an operator has set the value, weight or service, over the configuration.";
    ENDPOINT_IN_FLIGHT = Gauge "evenkeel_endpoint_in_flight_sessions" ["cluster", "endpoint"]
        "Sessions on it now.";
    ENDPOINT_MAX_CONNECTIONS = Gauge "evenkeel_endpoint_max_connections" ["cluster", "endpoint"]
        "The most sessions on it at one time; missing where there is no limit.";
    ATTEMPTS = Counter "evenkeel_attempts_total" ["cluster", "endpoint", "outcome"]
        "Attempts on it that have been decided: established at the first answer byte, abandoned by the client or this machine, or how it failed.";
    ENDPOINT_BYTES = Counter "evenkeel_endpoint_bytes_total" ["cluster", "endpoint", "direction"]
        "Bytes of the sessions that have ended on it; up is to the endpoint.";
    ENDPOINT_EJECTIONS = Counter "evenkeel_endpoint_ejections_total" ["cluster", "endpoint"]
        "How often failures in a row took it out.";
    PROBES = Counter "evenkeel_probes_total" ["cluster", "endpoint", "result"]
        "Probes that have ended; not_asked where this machine could not ask.";
    PROBE_PASSED = Gauge "evenkeel_probe_passed" ["cluster", "endpoint"]
        "1 if its last probe passed.";
    PROBE_DURATION = Gauge "evenkeel_probe_duration_seconds" ["cluster", "endpoint"]
        "How long its last probe took.";
    NAME_ADDRESSES = Gauge "evenkeel_name_addresses" ["name"]
        "Addresses that the name leads to.";
    NAME_ANSWER_AGE = Gauge "evenkeel_name_answer_age_seconds" ["name"]
        "How long ago its last good answer came; missing before the first.";
    NAME_FAILURES = Counter "evenkeel_name_failures_total" ["name"]
        "How often it was asked for without a good answer, or with half of one.";
    SPLICE_BYTES = Counter "evenkeel_splice_bytes_total" []
        "Bytes that went through the kernel's pipes.";
    SPLICE_PIPES = Gauge "evenkeel_splice_pipes" []
        "Pipes open now.";
    SPLICE_PIPES_MAX = Gauge "evenkeel_splice_pipes_max" []
        "The most pipes there may be; 0 where nothing is spliced.";
    SPLICE_COPIED = Counter "evenkeel_splice_copied_total" ["cause"]
        "How often bytes in bulk were copied for want of a pipe.";
    SPLICE_SMALLER = Counter "evenkeel_splice_smaller_pipes_total" []
        "Pipes that the kernel made smaller than asked for.";
    ACCESS_LOG_LINES = Counter "evenkeel_access_log_lines_total" ["result"]
        "Lines of the access log that were written, and those that were lost.";
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENTATION: &str = include_str!("../../../../../docs/metrics.md");

    /// The page has a row for each metric, with its kind, labels and meaning, in this order, and no other.
    #[test]
    fn the_documentation_lists_every_metric() {
        let row = |family: &&Family| {
            let labels = family.labels.iter().map(|label| format!("`{label}`"));
            let labels: Vec<String> = labels.collect();
            let labels = if labels.is_empty() {
                "–".to_owned()
            } else {
                labels.join(", ")
            };
            let (name, kind, help) = (family.name, family.kind, family.help);
            format!("| `{name}` | {kind} | {labels} | {help} |")
        };
        let expected: Vec<String> = ALL.iter().map(row).collect();

        let rows = DOCUMENTATION.lines().filter(|line| is_row(line));
        let documented: Vec<&str> = rows.collect();

        assert_eq!(
            documented,
            expected,
            "the rows should be:\n{}",
            expected.join("\n")
        );
    }

    fn is_row(line: &str) -> bool {
        ["| `evenkeel_", "| `process_"]
            .iter()
            .any(|start| line.starts_with(start))
    }

    /// What Prometheus's own linter asks of names.
    #[test]
    fn names_follow_the_conventions() {
        for family in ALL {
            let name = family.name;
            assert_eq!(
                name.ends_with("_total"),
                family.kind == Kind::Counter,
                "{name}"
            );
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(name.bytes().all(is_plain), "{name}");
            let is_timed = family.kind == Kind::Histogram;
            assert!(!is_timed || name.ends_with("_seconds"), "{name}");
            assert!(!family.help.contains(['\n', '\\']), "{name}");
        }
    }
}
