//! Where answers come from: the files of the system, and the name servers that they or the settings name.
//!
//! The resolver library parses the files and speaks to the servers. Its cache is off, because a name is asked for when its time
//! to live is over and not before; so is its search list, because it would take a name server's failure for "no such
//! name" and go on to the next domain.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;

use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Hosts, Resolver, TokioResolver};

use super::name::DnsName;
use crate::settings::DnsSettings;

/// How often a name server that did not answer is asked once more.
const RETRIES: usize = 1;
/// Where the C library looks as well if no name server is configured.
const LOCAL_NAME_SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 53);

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";

/// As the files were when they were read.
pub(super) struct Sources {
    /// `None` if the library finds its options contradictory, which they are not.
    pub(super) resolver: Option<TokioResolver>,
    hosts: Hosts,
    search: Search,
}

/// How a name that is not absolute is completed.
struct Search {
    domains: Vec<Name>,
    /// A name with fewer dots is asked for as it stands only at the end.
    ndots: usize,
}

/// By what a file is seen to have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FilesSeen {
    resolv_conf: Option<Stamp>,
    hosts: Option<Stamp>,
}

/// Inode, size, and time of change in seconds and nanoseconds.
type Stamp = (u64, u64, i64, i64);

impl FilesSeen {
    /// It may wait for the disk.
    pub(super) fn now() -> Self {
        Self {
            resolv_conf: stamp(RESOLV_CONF),
            hosts: stamp(HOSTS),
        }
    }
}

fn stamp(path: &str) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}

impl Sources {
    /// Reads the files, as far as they are there. It may wait for the disk.
    pub(super) fn read(dns: &DnsSettings) -> Self {
        let (system, mut options) = read_system_conf().unwrap_or_else(|error| {
            tracing::debug!(%error, "nothing in {RESOLV_CONF}");
            let nothing = ResolverConfig::from_parts(None, Vec::new(), Vec::new());
            (nothing, ResolverOpts::default())
        });
        let search = Search {
            domains: system.search().to_vec(),
            ndots: options.ndots,
        };
        options.timeout = dns.timeout;
        options.attempts = RETRIES;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        let servers = ResolverConfig::from_parts(None, Vec::new(), name_servers(dns, &system));
        let provider = TokioRuntimeProvider::default();
        let mut builder = Resolver::builder_with_config(servers, provider);
        *builder.options_mut() = options;
        Self {
            resolver: builder.build().ok(),
            hosts: Hosts::from_system().unwrap_or_default(),
            search,
        }
    }

    /// What the name may stand for, in the order in which to ask for it.
    pub(super) fn candidates(&self, name: &DnsName) -> Vec<Name> {
        self.search.candidates(name)
    }

    /// The addresses of one kind that `/etc/hosts` has.
    pub(super) fn in_hosts(&self, name: &DnsName, kind: RecordType) -> Vec<IpAddr> {
        let Ok(name) = Name::from_ascii(name.as_str()) else {
            return Vec::new();
        };
        let found = self.hosts.lookup_static_host(&Query::query(name, kind));
        let records = found.iter().flat_map(Lookup::answers);
        records.filter_map(|record| record.data.ip_addr()).collect()
    }
}

impl Search {
    fn candidates(&self, name: &DnsName) -> Vec<Name> {
        let Ok(mut written) = Name::from_ascii(name.as_str()) else {
            return Vec::new();
        };
        let mut completed = Vec::new();
        if !(name.is_absolute() || name.is_localhost()) {
            let domains = self.domains.iter();
            completed
                .extend(domains.filter_map(|domain| written.clone().append_domain(domain).ok()));
        }
        written.set_fqdn(true);
        if name.inner_dots() >= self.ndots {
            completed.insert(0, written);
        } else {
            completed.push(written);
        }
        completed
    }
}

fn name_servers(dns: &DnsSettings, system: &ResolverConfig) -> Vec<NameServerConfig> {
    match (&dns.servers[..], system.name_servers()) {
        ([], []) => vec![name_server(LOCAL_NAME_SERVER)],
        ([], listed) => listed.to_vec(),
        (configured, _) => configured.iter().copied().map(name_server).collect(),
    }
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(name: &str, ndots: usize) -> Vec<String> {
        let domains = ["a.example", "b.example"].map(|domain| Name::from_ascii(domain).unwrap());
        let search = Search {
            domains: domains.to_vec(),
            ndots,
        };
        let candidates = search.candidates(&DnsName::parse(name).unwrap());
        candidates.iter().map(Name::to_ascii).collect()
    }

    /// As the C library does it: a short name with the search domains first, a long one as it stands first.
    #[test]
    fn names_are_completed_as_elsewhere() {
        assert_eq!(
            candidates("db", 1),
            ["db.a.example.", "db.b.example.", "db."]
        );
        assert_eq!(
            candidates("db.internal", 1),
            [
                "db.internal.",
                "db.internal.a.example.",
                "db.internal.b.example."
            ]
        );
        assert_eq!(candidates("db.internal", 5).last().unwrap(), "db.internal.");
        assert_eq!(candidates("db.internal.", 5), ["db.internal."]);
        assert_eq!(candidates("localhost", 1), ["localhost."]);
    }
}
