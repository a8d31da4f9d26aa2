//! A round of questions for one name: `/etc/hosts` first, then name servers, for each thing that the name may stand for.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{Answer, HostAnswer, Part, Service, Trouble};
use super::name::DnsName;
use super::question::{Family, Question};
use super::sources::Sources;

/// Questions on the way to name servers at one time. Each takes a descriptor for each of the two servers that it is sent to: as
/// many as are set aside for what opens a file now and then.
pub(super) const QUESTIONS_MAX: usize = 8;
/// SRV records that are followed, the best first.
const SERVICES_MAX: usize = 64;
/// All name servers and retries for one question together: so many times the configured timeout.
const TIMEOUTS_PER_QUESTION: u32 = 3;
/// What is in `/etc/hosts` is good until the file changes.
const NO_END: Duration = Duration::MAX;

/// Whoever asks.
pub(super) struct Asker<'a> {
    pub(super) sources: &'a Sources,
    pub(super) permits: &'a Semaphore,
    pub(super) timeout: Duration,
}

/// What came, and how long it is good for; nothing is good for no time.
type Timed<T> = (T, Duration);

impl Asker<'_> {
    /// It ends in bounded time.
    pub(super) async fn ask(&self, question: &Question) -> Timed<Answer> {
        match question {
            Question::Host { name, family, .. } => {
                let (answer, ttl) = self.host(name, *family).await;
                (Answer::Host(answer), ttl)
            }
            Question::Service { name, family } => match self.services(name).await {
                Ok((services, ttl)) => self.hosts_of(services, ttl, *family).await,
                Err(trouble) => (Answer::Nothing(trouble), Duration::ZERO),
            },
        }
    }

    async fn services(&self, name: &DnsName) -> Result<Timed<Vec<Service>>, Trouble> {
        let mut first_negative = None;
        for candidate in self.sources.candidates(name) {
            match self.lookup(&candidate, RecordType::SRV).await {
                Ok(lookup) => return Ok((services_in(&lookup), ttl_of(&lookup))),
                Err(negative @ (Trouble::NoSuchName | Trouble::NoRecord)) => {
                    first_negative = first_negative.or(Some(negative));
                }
                Err(failed) => return Err(failed),
            }
        }
        Err(first_negative.unwrap_or(Trouble::NoRecord))
    }

    async fn hosts_of(
        &self,
        services: Vec<Service>,
        mut ttl: Duration,
        family: Family,
    ) -> Timed<Answer> {
        let mut hosts: BTreeMap<DnsName, HostAnswer> = BTreeMap::new();
        for service in &services {
            if !hosts.contains_key(&service.host) {
                let (answer, host_ttl) = self.host(&service.host, family).await;
                ttl = ttl.min(host_ttl);
                hosts.insert(service.host.clone(), answer);
            }
        }
        let answered = services.into_iter().map(|service| {
            let answer = hosts.get(&service.host).cloned().unwrap_or_default();
            (service, answer)
        });
        (Answer::Services(answered.collect()), ttl)
    }

    /// The first candidate that has an address decides, or that cannot be judged: the next one could be somebody else.
    async fn host(&self, name: &DnsName, family: Family) -> Timed<HostAnswer> {
        if let Some(known) = self.in_hosts(name, family) {
            return (known, NO_END);
        }
        let mut first = None;
        for candidate in self.sources.candidates(name) {
            let (answer, ttl) = self.addresses(&candidate, family).await;
            if ttl.is_some() || answer.has_failed() {
                return (answer, ttl.unwrap_or_default());
            }
            first.get_or_insert(answer);
        }
        (first.unwrap_or_default(), Duration::ZERO)
    }

    /// As with the C library, a name that the file has is not asked for elsewhere, not even its other kind of address.
    fn in_hosts(&self, name: &DnsName, family: Family) -> Option<HostAnswer> {
        let found = |kind| self.sources.in_hosts(name, kind);
        let (ipv4, ipv6) = (found(RecordType::A), found(RecordType::AAAA));
        (!ipv4.is_empty() || !ipv6.is_empty()).then(|| HostAnswer {
            ipv4: family.asks_ipv4().then_some(Ok(ipv4)),
            ipv6: family.asks_ipv6().then_some(Ok(ipv6)),
        })
    }

    /// With how long the addresses are good for, if there are any.
    async fn addresses(&self, name: &Name, family: Family) -> (HostAnswer, Option<Duration>) {
        let ipv4 = family.asks_ipv4().then_some(RecordType::A);
        let ipv6 = family.asks_ipv6().then_some(RecordType::AAAA);
        let (ipv4, ipv6) = tokio::join!(self.part(name, ipv4), self.part(name, ipv6));
        let ttl = [ipv4.1, ipv6.1].into_iter().flatten().min();
        let answer = HostAnswer {
            ipv4: ipv4.0,
            ipv6: ipv6.0,
        };
        (answer, ttl)
    }

    async fn part(
        &self,
        name: &Name,
        kind: Option<RecordType>,
    ) -> (Option<Part>, Option<Duration>) {
        let Some(kind) = kind else {
            return (None, None);
        };
        match self.lookup(name, kind).await {
            Ok(lookup) => {
                let addresses = addresses_in(&lookup);
                let ttl = (!addresses.is_empty()).then(|| ttl_of(&lookup));
                (Some(Ok(addresses)), ttl)
            }
            Err(Trouble::NoRecord) => (Some(Ok(Vec::new())), None),
            Err(trouble) => (Some(Err(trouble)), None),
        }
    }

    async fn lookup(&self, name: &Name, kind: RecordType) -> Result<Lookup, Trouble> {
        let resolver = self.sources.resolver.as_ref();
        let resolver = resolver.ok_or_else(|| Trouble::Other("there is no resolver".to_owned()))?;
        // It is never closed; if it were, asking without it would be no harm.
        let _permit = self.permits.acquire().await;
        forget(resolver);
        let patience = self.timeout.saturating_mul(TIMEOUTS_PER_QUESTION);
        match timeout(patience, resolver.lookup(name.clone(), kind)).await {
            Ok(answered) => answered.map_err(|error| trouble(&error)),
            Err(_) => Err(Trouble::TimedOut),
        }
    }
}

/// A cache of size 0 holds its last entries until it tidies up.
fn forget(resolver: &TokioResolver) {
    resolver.clear_cache();
}

/// The best first, those beyond the limit left out. A record whose host is the root says that there is no such service.
fn services_in(lookup: &Lookup) -> Vec<Service> {
    let records = lookup.answers().iter().map(|record| &record.data);
    let mut services: Vec<Service> = records.filter_map(service).collect();
    services.sort_unstable_by(|one, other| one.preference().cmp(&other.preference()));
    services.truncate(SERVICES_MAX);
    services
}

fn service(record: &RData) -> Option<Service> {
    let RData::SRV(srv) = record else {
        return None;
    };
    if srv.target.is_root() || srv.port == 0 {
        return None;
    }
    Some(Service {
        host: DnsName::parse(&srv.target.to_ascii()).ok()?,
        port: srv.port,
        priority: srv.priority,
        weight: srv.weight,
    })
}

fn addresses_in(lookup: &Lookup) -> Vec<IpAddr> {
    let records = lookup.answers().iter();
    records.filter_map(|record| record.data.ip_addr()).collect()
}

/// The shortest of the records, aliases among them.
fn ttl_of(lookup: &Lookup) -> Duration {
    let seconds = lookup.answers().iter().map(|record| record.ttl).min();
    Duration::from_secs(seconds.unwrap_or(0).into())
}

fn trouble(error: &NetError) -> Trouble {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NXDomain => Trouble::NoSuchName,
            _ => Trouble::NoRecord,
        },
        NetError::Dns(DnsError::ResponseCode(code)) => Trouble::ServerFailed(code.to_string()),
        NetError::Timeout => Trouble::TimedOut,
        NetError::NoConnections => Trouble::Other("no name server can be reached".to_owned()),
        NetError::Io(error) => Trouble::Other(format!("no name server can be asked: {error}")),
        other => Trouble::Other(other.to_string()),
    }
}
