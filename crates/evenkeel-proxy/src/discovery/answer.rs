//! What is believed of an answer: nothing that is good is given up for a failure or for nothing.
//!
//! A question is asked in rounds, and a round may have parts that succeed and parts that fail (IPv4 and IPv6, the hosts of a
//! service). [`Memory`] keeps the last good part of each, and an address vanishes only when an answer with addresses lacks it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::name::DnsName;
use super::question::{Family, Question, Target};

/// Why there is no answer, or none that is of use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    /// NXDOMAIN.
    #[error("no such name (NXDOMAIN)")]
    NoSuchName,
    /// The name exists, with nothing of what was asked for.
    #[error("the answer is empty: the name has no such record")]
    NoRecord,
    /// SERVFAIL, REFUSED and the like.
    #[error("the name server failed ({0})")]
    ServerFailed(String),
    /// No name server answered.
    #[error("no name server answered in time")]
    TimedOut,
    /// A service's record is there, and its host gives trouble.
    #[error("{0}: {1}")]
    OfHost(DnsName, Box<Self>),
    /// Whatever else stood in the way.
    #[error("{0}")]
    Other(String),
}

impl Trouble {
    /// Whether a name server has said that the name leads nowhere; otherwise nobody knows.
    pub(super) fn is_answer(&self) -> bool {
        match self {
            Self::NoSuchName | Self::NoRecord => true,
            Self::OfHost(_, trouble) => trouble.is_answer(),
            Self::ServerFailed(_) | Self::TimedOut | Self::Other(_) => false,
        }
    }
}

/// One kind of address of one host; no address is `Ok` of an empty list only if a name server said that there is none.
pub(super) type Part = Result<Vec<IpAddr>, Trouble>;

/// What a round brought for one host; `None` was not asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostAnswer {
    pub(super) ipv4: Option<Part>,
    pub(super) ipv6: Option<Part>,
}

impl HostAnswer {
    /// Whether a part was not answered at all, so that nobody knows what there is.
    pub(super) fn has_failed(&self) -> bool {
        let parts = [&self.ipv4, &self.ipv6].into_iter().flatten();
        let mut failures = parts.filter_map(|part| part.as_ref().err());
        failures.any(|trouble| *trouble != Trouble::NoSuchName)
    }
}

/// One SRV record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) host: DnsName,
    pub(super) port: u16,
    pub(super) priority: u16,
    pub(super) weight: u16,
}

/// What a round brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Host(HostAnswer),
    Services(Vec<(Service, HostAnswer)>),
    /// The question for SRV records failed.
    Nothing(Trouble),
}

/// What follows from a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    /// What the question leads to now, in order; `None` leaves what was there.
    pub(super) targets: Option<Vec<Target>>,
    /// What went wrong, even if some of the round went well.
    pub(super) trouble: Option<Trouble>,
}

/// What was good of earlier rounds.
#[derive(Debug, Default)]
pub(super) struct Memory {
    hosts: BTreeMap<DnsName, Kept>,
}

/// The last good addresses of a host.
#[derive(Debug, Default)]
struct Kept {
    ipv4: Vec<IpAddr>,
    ipv6: Vec<IpAddr>,
}

/// What is believed of one host after a round.
struct HostLearned {
    addresses: Vec<IpAddr>,
    trouble: Option<Trouble>,
    is_fresh: bool,
}

impl Memory {
    pub(super) fn learn(&mut self, question: &Question, answer: Answer) -> Learned {
        match (question, answer) {
            (Question::Host { name, port, family }, Answer::Host(answer)) => {
                self.learn_host(name, answer, *family).at_port(*port)
            }
            (Question::Service { family, .. }, Answer::Services(services)) => {
                self.learn_services(services, *family)
            }
            (_, Answer::Nothing(trouble)) => Learned::nothing(trouble),
            // Each question is answered in its own kind.
            _ => Learned::default(),
        }
    }

    /// A record that is there counts even if its host cannot be found at present, by what was found before.
    fn learn_services(&mut self, services: Vec<(Service, HostAnswer)>, family: Family) -> Learned {
        let mut targets = Vec::new();
        let mut first_trouble = None;
        let present: BTreeSet<DnsName> = services.iter().map(|(one, _)| one.host.clone()).collect();
        for (service, answer) in services {
            let learned = self.learn_host(&service.host, answer, family);
            let told = |trouble| Trouble::OfHost(service.host.clone(), Box::new(trouble));
            first_trouble = first_trouble.or_else(|| learned.trouble.map(told));
            let found = learned.addresses.into_iter();
            targets.extend(found.map(|ip| service.target(ip)));
        }
        if targets.is_empty() {
            return Learned::nothing(first_trouble.unwrap_or(Trouble::NoRecord));
        }
        self.hosts.retain(|host, _| present.contains(host));
        Learned {
            targets: Some(in_order(targets)),
            trouble: first_trouble,
        }
    }

    fn learn_host(&mut self, name: &DnsName, answer: HostAnswer, family: Family) -> HostLearned {
        let kept = self.hosts.entry(name.clone()).or_default();
        let (ipv4, ipv6) = (usable(answer.ipv4), usable(answer.ipv6));
        let suffices = family == Family::PreferIpv4 && has_addresses(ipv4.as_ref());
        let is_fresh = has_addresses(ipv4.as_ref()) || has_addresses(ipv6.as_ref());
        let mut trouble = None;
        for (part, kept) in [(ipv4, &mut kept.ipv4), (ipv6, &mut kept.ipv6)] {
            match part {
                Some(Ok(found)) if is_fresh => *kept = found,
                Some(Err(failed)) => trouble = trouble.or(Some(failed)),
                Some(Ok(_)) | None => {}
            }
        }
        let no_address = (!is_fresh).then_some(Trouble::NoRecord);
        HostLearned {
            addresses: kept.of(family),
            trouble: trouble.or(no_address).filter(|_| !suffices),
            is_fresh,
        }
    }
}

impl HostLearned {
    fn at_port(self, port: u16) -> Learned {
        let addresses = self.addresses.into_iter();
        let targets = addresses.map(|ip| Target {
            priority: 0,
            weight: None,
            address: SocketAddr::new(ip, port),
        });
        Learned {
            targets: self.is_fresh.then(|| in_order(targets.collect())),
            trouble: self.trouble,
        }
    }
}

impl Service {
    /// By which the better record comes first, and which no two records share.
    pub(super) fn preference(&self) -> impl Ord {
        let host = self.host.clone();
        (self.priority, Reverse(self.weight), host, self.port)
    }

    const fn target(&self, ip: IpAddr) -> Target {
        Target {
            priority: self.priority,
            weight: Some(self.weight),
            address: SocketAddr::new(ip, self.port),
        }
    }
}

impl Learned {
    /// Whether a name server has said where the question leads, or that it leads nowhere.
    pub(super) fn is_answer(&self) -> bool {
        let trouble = self.trouble.as_ref();
        self.targets.is_some() || trouble.is_some_and(Trouble::is_answer)
    }

    const fn nothing(trouble: Trouble) -> Self {
        Self {
            targets: None,
            trouble: Some(trouble),
        }
    }
}

impl Kept {
    fn of(&self, family: Family) -> Vec<IpAddr> {
        match family {
            Family::Ipv4 => self.ipv4.clone(),
            Family::Ipv6 => self.ipv6.clone(),
            Family::PreferIpv4 if !self.ipv4.is_empty() => self.ipv4.clone(),
            Family::PreferIpv4 => self.ipv6.clone(),
            Family::Any => self.ipv4.iter().chain(&self.ipv6).copied().collect(),
        }
    }
}

/// The same whatever the order of the records; an address that is there twice is kept where it is better.
fn in_order(mut targets: Vec<Target>) -> Vec<Target> {
    targets
        .sort_unstable_by_key(|target| (target.priority, Reverse(target.weight), target.address));
    let mut seen = HashSet::new();
    targets.retain(|target| seen.insert(target.address));
    targets
}

fn has_addresses(part: Option<&Part>) -> bool {
    matches!(part, Some(Ok(found)) if !found.is_empty())
}

/// Without what no connection can be made to: blocklists answer with 0.0.0.0, and mistakes with worse.
fn usable(part: Option<Part>) -> Option<Part> {
    part.map(|part| part.map(|found| found.into_iter().filter(is_one_machine).collect()))
}

fn is_one_machine(ip: &IpAddr) -> bool {
    !(ip.is_unspecified() || ip.is_multicast() || *ip == IpAddr::V4(Ipv4Addr::BROADCAST))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    fn name(text: &str) -> DnsName {
        DnsName::parse(text).unwrap()
    }

    fn asking(family: Family) -> Question {
        Question::Host {
            name: name("db"),
            port: 3306,
            family,
        }
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn ip6(last: u16) -> IpAddr {
        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last])
    }

    fn ipv4(part: Part) -> Answer {
        Answer::Host(HostAnswer {
            ipv4: Some(part),
            ipv6: None,
        })
    }

    fn both(ipv4: Part, ipv6: Part) -> Answer {
        Answer::Host(HostAnswer {
            ipv4: Some(ipv4),
            ipv6: Some(ipv6),
        })
    }

    fn addresses(learned: &Learned) -> Option<Vec<IpAddr>> {
        let targets = learned.targets.as_ref()?;
        Some(targets.iter().map(|target| target.address.ip()).collect())
    }

    /// A family that fails keeps what it had while the other one changes.
    #[test]
    fn a_family_that_fails_is_kept() {
        let (mut memory, question) = (Memory::default(), asking(Family::Any));
        memory.learn(&question, both(Ok(vec![ip(1)]), Ok(vec![ip6(1)])));

        let learned = memory.learn(&question, both(Ok(vec![ip(2)]), Err(Trouble::TimedOut)));

        assert_eq!(addresses(&learned), Some(vec![ip(2), ip6(1)]));
        assert_eq!(learned.trouble, Some(Trouble::TimedOut));
    }

    /// A machine with both addresses is one endpoint, and one that has lost its IPv4 address is found by the other.
    #[test]
    fn ipv4_is_preferred_while_there_is_any() {
        let (mut memory, question) = (Memory::default(), asking(Family::PreferIpv4));

        let learned = memory.learn(&question, both(Ok(vec![ip(1)]), Ok(vec![ip6(1)])));
        assert_eq!(addresses(&learned), Some(vec![ip(1)]));
        let learned = memory.learn(&question, both(Ok(vec![]), Ok(vec![ip6(1)])));
        assert_eq!(addresses(&learned), Some(vec![ip6(1)]));
    }

    /// What a blocklist answers is no address, so it is an empty answer.
    #[test]
    fn addresses_that_are_none_are_left_out() {
        let none = IpAddr::from([0, 0, 0, 0]);
        let learned = Memory::default().learn(&asking(Family::Ipv4), ipv4(Ok(vec![none])));

        assert_eq!(learned, Learned::nothing(Trouble::NoRecord));
    }

    fn service(host: &str, priority: u16, weight: u16) -> Service {
        Service {
            host: name(host),
            port: 3306,
            priority,
            weight,
        }
    }

    fn found(last: u8) -> HostAnswer {
        HostAnswer {
            ipv4: Some(Ok(vec![ip(last)])),
            ipv6: None,
        }
    }

    fn failed() -> HostAnswer {
        HostAnswer {
            ipv4: Some(Err(Trouble::TimedOut)),
            ipv6: None,
        }
    }

    /// A host whose address cannot be found at present keeps it while its record is there; a record that goes takes it along.
    #[test]
    fn a_service_keeps_the_addresses_of_its_hosts() {
        let question = Question::Service {
            name: name("_mysql._tcp.db"),
            family: Family::Ipv4,
        };
        let mut memory = Memory::default();
        let (a, b) = (service("a", 10, 1), service("b", 10, 2));
        let first = vec![(a.clone(), found(1)), (b.clone(), found(2))];
        let learned = memory.learn(&question, Answer::Services(first));
        assert_eq!(addresses(&learned), Some(vec![ip(2), ip(1)]));

        let second = vec![(a.clone(), failed()), (b, found(3))];
        let learned = memory.learn(&question, Answer::Services(second));
        assert_eq!(addresses(&learned), Some(vec![ip(3), ip(1)]));
        assert_eq!(
            learned.trouble.unwrap().to_string(),
            "a: no name server answered in time"
        );

        let learned = memory.learn(&question, Answer::Services(vec![(a, failed())]));
        assert_eq!(addresses(&learned), Some(vec![ip(1)]));
        let learned = memory.learn(&question, Answer::Services(vec![]));
        assert_eq!(learned, Learned::nothing(Trouble::NoRecord));
    }

    fn part() -> impl Strategy<Value = Part> {
        let some = vec(0_u8..8, 1..6)
            .prop_map(|found| Ok(found.into_iter().map(|last| ip(last + 1)).collect()));
        let failure = prop_oneof![
            Just(Err(Trouble::NoSuchName)),
            Just(Err(Trouble::TimedOut)),
            Just(Err(Trouble::ServerFailed("Server Failure".to_owned()))),
        ];
        prop_oneof![3 => some, 1 => failure, 1 => Just(Ok(Vec::new()))]
    }

    proptest! {
        /// Whatever comes: targets are those of the last answer that had any, and a failed or empty one changes nothing.
        #[test]
        fn only_an_answer_with_addresses_changes_anything(rounds in vec(part(), 1..12)) {
            let (mut memory, question) = (Memory::default(), asking(Family::Ipv4));
            for round in rounds {
                let learned = memory.learn(&question, ipv4(round.clone()));
                match round {
                    Ok(mut found) if !found.is_empty() => {
                        found.sort();
                        found.dedup();
                        prop_assert_eq!(addresses(&learned), Some(found));
                        prop_assert_eq!(learned.trouble, None);
                    }
                    _ => {
                        prop_assert_eq!(learned.targets, None);
                        prop_assert!(learned.trouble.is_some());
                    }
                }
            }
        }

        /// The order of the records does not matter.
        #[test]
        fn the_order_of_an_answer_does_not_matter(
            services in vec((0_u8..6, 0_u16..3, 0_u16..3, 1_u8..9), 1..8),
            places in vec(any::<Index>(), 8),
        ) {
            let question = Question::Service { name: name("_a._tcp.b"), family: Family::Ipv4 };
            let answer: Vec<_> = services
                .iter()
                .map(|&(host, priority, weight, last)| {
                    (service(&format!("h{host}"), priority, weight), found(last))
                })
                .collect();
            let hosts: BTreeMap<_, _> = answer.iter().map(|(one, found)| (one.host.clone(), found.clone())).collect();
            let answer: Vec<_> = answer.into_iter().map(|(one, _)| (one.clone(), hosts[&one.host].clone())).collect();
            let mut shuffled = answer.clone();
            for (from, to) in places.iter().enumerate() {
                let length = shuffled.len();
                shuffled.swap(from % length, to.index(length));
            }

            let learned = Memory::default().learn(&question, Answer::Services(answer));
            let other = Memory::default().learn(&question, Answer::Services(shuffled));

            prop_assert_eq!(learned, other);
        }
    }
}
