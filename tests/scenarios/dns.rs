//! Endpoints that are found by name: a real name server whose answers change, vanish and come back.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use serde_json::Value;

use super::distribution::{served, shares};
use crate::support::dnsmasq::{Dnsmasq, Unknown};
use crate::support::evenkeel::{Evenkeel, evenkeel_command};
use crate::support::service::{self, Service};
use crate::support::{client, ports, wait};

const NOBODY: &str = "nobody can answer\n";

/// Something that answers with its name on 127.0.0.LAST, on the port that all of a test have.
fn named(name: &'static str, last: u8, port: u16) -> Service {
    let address = SocketAddr::from(([127, 0, 0, last], port));
    Service::start_on(address, service::say(name))
}

/// A listener in front of one cluster; names are asked for ten times a second.
fn config(front: SocketAddr, name_server: SocketAddr, endpoints: &str) -> String {
    format!(
        r#"
        [dns]
        servers = ["{name_server}"]
        timeout = "200ms"
        refresh_min = "100ms"
        refresh_max = "100ms"
        [listener.front]
        bind = "{front}"
        to = "letters"
        failure_reply = {{ text = "{}" }}
        [cluster.letters]
        endpoints = [{endpoints}]
        "#,
        NOBODY.escape_default(),
    )
}

/// The endpoints of the cluster that have not been removed, by name.
fn endpoints(evenkeel: &Evenkeel) -> Vec<String> {
    let status = evenkeel.status();
    let endpoints = status["clusters"][0]["endpoints"].as_array();
    let present = endpoints
        .expect("a list")
        .iter()
        .filter(|one| one["state"] != "removed");
    let name = |one: &Value| one["name"].as_str().expect("a name").to_owned();
    present.map(name).collect()
}

fn wait_for_endpoints(evenkeel: &Evenkeel, expected: &[&str]) {
    wait::until_so(&format!("the endpoints are {expected:?}"), || {
        endpoints(evenkeel) == expected
    });
}

/// What is wrong with the first name, once something is.
fn trouble(evenkeel: &Evenkeel) -> String {
    wait::until("the name has a trouble", || {
        let trouble = evenkeel.status()["names"][0]["trouble"].clone();
        trouble.as_str().map(str::to_owned)
    })
}

/// One address, another, a hundred, and the first again: each time exactly those are endpoints, and none is stuck.
#[test]
fn fault_45_addresses_that_change_are_followed() {
    let (front, port) = (ports::free(), ports::free().port());
    let (_a, _b) = (named("a", 2, port), named("b", 3, port));
    let dns = Dnsmasq::start("127.0.0.2 db.test", "");
    let evenkeel = Evenkeel::start(config(front, dns.address(), &format!("\"db.test:{port}\"")));
    assert_eq!(served(front, 4), shares([("a", 4)]));

    dns.change("127.0.0.3 db.test");
    wait_for_endpoints(&evenkeel, &[&format!("db.test/127.0.0.3:{port}")]);
    assert_eq!(served(front, 4), shares([("b", 4)]));

    let many: String = (1..=100)
        .map(|last| format!("127.0.1.{last} db.test\n"))
        .collect();
    dns.change(&many);
    wait::until_so("there are a hundred", || endpoints(&evenkeel).len() == 100);

    dns.change("127.0.0.2 db.test");
    wait_for_endpoints(&evenkeel, &[&format!("db.test/127.0.0.2:{port}")]);
    assert_eq!(served(front, 4), shares([("a", 4)]));
}

/// A name server that nobody hears from: the other cluster starts and serves, the clients of the lost one are told at once, and
/// it serves as soon as its name is known.
#[test]
fn fault_46_a_name_that_cannot_be_resolved_blocks_nothing() {
    let (front, other, port) = (ports::free(), ports::free(), ports::free().port());
    let (_a, b) = (named("a", 2, port), Service::named("b"));
    let mut dns = Dnsmasq::start("127.0.0.2 db.test", "");
    dns.kill();
    let deaf = UdpSocket::bind(dns.address()).expect("dnsmasq has gone");
    let cluster = config(front, dns.address(), &format!("\"db.test:{port}\""));
    let evenkeel = Evenkeel::start(format!(
        r#"
        {cluster}
        [listener.other]
        bind = "{other}"
        to = "other"
        [cluster.other]
        endpoints = ["{}"]
        "#,
        b.address(),
    ));

    assert_eq!(served(other, 4), shares([("b", 4)]));
    assert_eq!(client::ask(front, "alice\n"), NOBODY);
    assert!(evenkeel.reasons(5).contains(&"no_endpoint".to_owned()));
    assert!(trouble(&evenkeel).contains("in time"));

    drop(deaf);
    dns.restart("", Unknown::NoSuchName);
    wait_for_endpoints(&evenkeel, &[&format!("db.test/127.0.0.2:{port}")]);
    assert_eq!(served(front, 4), shares([("a", 4)]));
}

/// A reload tells of names as of other endpoints, and `check` counts them.
#[test]
fn names_are_told_of() {
    let (front, port, a) = (ports::free(), ports::free().port(), Service::named("a"));
    let dns = Dnsmasq::start("127.0.0.2 db.test", "");
    let fixed = format!("\"{}\"", a.address());
    let evenkeel = Evenkeel::start(config(front, dns.address(), &fixed));
    let both = format!("{fixed}, \"db.test:{port}\"");
    evenkeel.write_config(&config(front, dns.address(), &both));

    let output = evenkeel.ask(&["reload", "--verbose"]);

    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 endpoint added"), "{said}");
    assert!(said.contains("endpoint letters/db.test"), "{said}");
    let check = evenkeel_command(&["check"])
        .arg(evenkeel.config_path())
        .output();
    let said = String::from_utf8_lossy(&check.expect("it starts").stdout).into_owned();
    assert!(
        said.contains("1 endpoint, 1 name that stands for more"),
        "{said}"
    );
}

/// A primary behind a name, a backup, and failback by hand.
fn with_a_spare(front: SocketAddr, name_server: SocketAddr, port: u16, spare: &Service) -> String {
    let endpoints = format!(
        r#""db.test:{port}", {{ name = "spare", address = "{}", backup = true }}"#,
        spare.address()
    );
    let config = config(front, name_server, &endpoints);
    format!("{config}\nfailback = \"manual\"\n")
}

/// A name server that is not heard from at the start does not hand the primaries' work to the backups, who would keep it: the duty
/// waits, and the primaries have it as soon as their name is known.
#[test]
fn a_silent_name_server_gives_no_work_to_backups() {
    let (front, port) = (ports::free(), ports::free().port());
    let (_a, spare) = (named("a", 2, port), Service::named("spare"));
    let mut dns = Dnsmasq::start("127.0.0.2 db.test", "");
    dns.kill();
    let evenkeel = Evenkeel::start(with_a_spare(front, dns.address(), port, &spare));
    trouble(&evenkeel);

    assert_eq!(client::ask(front, "alice\n"), NOBODY);
    assert_eq!(evenkeel.status()["clusters"][0]["on_duty"], "primaries");

    dns.restart("", Unknown::NoSuchName);
    wait_for_endpoints(&evenkeel, &[&format!("db.test/127.0.0.2:{port}"), "spare"]);
    assert_eq!(served(front, 4), shares([("a", 4)]));
}

/// A name server that says that there is no such name has answered: the backups have the work.
#[test]
fn primaries_that_do_not_exist_leave_the_work_to_backups() {
    let (front, port) = (ports::free(), ports::free().port());
    let spare = Service::named("spare");
    let dns = Dnsmasq::start("", "");
    let evenkeel = Evenkeel::start(with_a_spare(front, dns.address(), port, &spare));

    assert_eq!(served(front, 2), shares([("spare", 2)]));
    assert_eq!(evenkeel.status()["clusters"][0]["on_duty"], "backups");
}

/// No such name, a name without an address, a refusal, a name server that is dead: the endpoint stays and serves, `status`
/// says what is wrong, and the next good answer counts.
#[test]
fn no_failure_takes_an_endpoint_away() {
    let (front, port) = (ports::free(), ports::free().port());
    let (_a, _b) = (named("a", 2, port), named("b", 3, port));
    let mut dns = Dnsmasq::start("127.0.0.2 db.test", "");
    let evenkeel = Evenkeel::start(config(front, dns.address(), &format!("\"db.test:{port}\"")));
    assert_eq!(served(front, 1), shares([("a", 1)]));

    let in_trouble = |part: &str| {
        wait::until_so(&format!("the trouble is {part}"), || {
            trouble(&evenkeel).contains(part)
        });
        assert_eq!(served(front, 2), shares([("a", 2)]));
    };
    dns.change("");
    in_trouble("NXDOMAIN");
    dns.restart("txt-record=db.test,nothing", Unknown::NoSuchName);
    in_trouble("the answer is empty");
    dns.restart("", Unknown::Refused);
    in_trouble("the name server failed");
    dns.kill();
    in_trouble("no name server");

    dns.restart("", Unknown::NoSuchName);
    dns.change("127.0.0.3 db.test");
    wait_for_endpoints(&evenkeel, &[&format!("db.test/127.0.0.3:{port}")]);
    assert_eq!(served(front, 2), shares([("b", 2)]));
    wait::until_so("nothing is wrong any more", || {
        evenkeel.status()["names"][0]["trouble"].is_null()
    });
}

/// The address has gone from the answer, and its session goes on; new ones go elsewhere, and with its last session it is gone.
#[test]
fn an_address_that_vanishes_drains() {
    let (front, port) = (ports::free(), ports::free().port());
    let address = SocketAddr::from(([127, 0, 0, 2], port));
    let _echo = Service::start_on(address, |stream, _| service::echo(stream));
    let _b = named("b", 3, port);
    let dns = Dnsmasq::start("127.0.0.2 db.test", "");
    let evenkeel = Evenkeel::start(config(
        front,
        dns.address(),
        &format!("{{ name = \"db\", address = \"db.test:{port}\" }}"),
    ));
    let mut session = client::connect(front);
    client::echo(&mut session, b"before");

    dns.change("127.0.0.3 db.test");
    wait_for_endpoints(&evenkeel, &[&format!("db/127.0.0.3:{port}")]);

    assert_eq!(served(front, 4), shares([("b", 4)]));
    client::echo(&mut session, b"after");
    let leaving = evenkeel.endpoint("letters", &format!("db/{address}"));
    assert_eq!(leaving["state"], "removed");
    drop(session);
    wait::until_so("it is gone", || {
        let status = evenkeel.status();
        let endpoints = status["clusters"][0]["endpoints"].as_array();
        endpoints.is_some_and(|endpoints| endpoints.len() == 1)
    });
}

/// An answer in another order, or with one more address, leaves the counts of the others alone.
#[test]
fn an_address_that_stays_keeps_its_state() {
    let (front, port) = (ports::free(), ports::free().port());
    let _services = (
        named("a", 2, port),
        named("b", 3, port),
        named("c", 4, port),
    );
    let dns = Dnsmasq::start("127.0.0.2 db.test\n127.0.0.3 db.test", "");
    let evenkeel = Evenkeel::start(config(front, dns.address(), &format!("\"db.test:{port}\"")));
    assert_eq!(served(front, 10), shares([("a", 5), ("b", 5)]));

    dns.change("127.0.0.4 db.test\n127.0.0.3 db.test\n127.0.0.2 db.test");
    wait::until_so("there are three", || endpoints(&evenkeel).len() == 3);

    let name = format!("db.test/127.0.0.2:{port}");
    assert_eq!(evenkeel.endpoint_number("letters", &name, "established"), 5);
    assert_eq!(served(front, 9), shares([("a", 3), ("b", 3), ("c", 3)]));
}

/// SRV records: weights 3 and 1 are shares, another priority is a backup, until the others have gone.
#[test]
fn srv_records_bring_ports_weights_and_priorities() {
    let front = ports::free();
    let (a, b, spare) = (
        Service::named("a"),
        Service::named("b"),
        Service::named("spare"),
    );
    let record = |service: &Service, priority: u8, weight: u8| {
        let port = service.address().port();
        format!("srv-host=_letters._tcp.test,host.test,{port},{priority},{weight}\n")
    };
    let records = record(&a, 10, 3) + &record(&b, 10, 1) + &record(&spare, 20, 9);
    let mut dns = Dnsmasq::start("127.0.0.1 host.test", &records);
    let evenkeel = Evenkeel::start(config(
        front,
        dns.address(),
        "{ srv = \"_letters._tcp.test\" }",
    ));

    assert_eq!(served(front, 40), shares([("a", 30), ("b", 10)]));
    let name = format!("_letters._tcp.test/{}", spare.address());
    assert_eq!(evenkeel.endpoint("letters", &name)["backup"], true);
    dns.restart(&record(&spare, 20, 9), Unknown::NoSuchName);
    wait_for_endpoints(&evenkeel, &[&name]);
    assert_eq!(evenkeel.endpoint("letters", &name)["backup"], false);
    assert_eq!(served(front, 4), shares([("spare", 4)]));
}

/// A machine with addresses of both kinds is one endpoint, unless both are asked for; one kind alone can be asked for too.
#[test]
fn families_are_chosen() {
    let port = ports::free().port();
    let _four = named("four", 2, port);
    let six = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port);
    let _six = Service::start_on(six, service::say("six"));
    let dns = Dnsmasq::start("127.0.0.2 db.test\n::1 db.test", "");
    for (family, expected) in [
        ("prefer-ipv4", shares([("four", 4)])),
        ("ipv6", shares([("six", 4)])),
        ("any", shares([("four", 2), ("six", 2)])),
    ] {
        let front = ports::free();
        let endpoint = format!("{{ address = \"db.test:{port}\", family = \"{family}\" }}");
        let _evenkeel = Evenkeel::start(config(front, dns.address(), &endpoint));
        assert_eq!(served(front, 4), expected, "{family}");
    }
}

/// `localhost` takes no name server.
#[test]
fn localhost_is_this_machine() {
    let (a, front) = (Service::named("a"), ports::free());
    let endpoint = format!("\"localhost:{}\"", a.address().port());
    let _evenkeel = Evenkeel::start(config(front, ports::free(), &endpoint));

    assert_eq!(served(front, 2), shares([("a", 2)]));
}

/// More addresses than one name may have are cut, the same ones each time, and the log says so.
#[test]
fn a_huge_answer_is_cut() {
    let front = ports::free();
    let many: String = (0..300)
        .map(|number| format!("127.1.{}.{} db.test\n", number / 100, number % 100 + 1))
        .collect();
    let dns = Dnsmasq::start(&many, "");
    let evenkeel = Evenkeel::start(config(front, dns.address(), "\"db.test:9\""));

    wait::until_so("there are 256", || endpoints(&evenkeel).len() == 256);
    assert!(evenkeel.program_log().contains("leads to 300 addresses"));
}

/// An order for a name with addresses is refused, and says what they are: never what a neighbour is called.
#[test]
fn an_order_for_a_name_is_answered_with_its_addresses() {
    let (front, port) = (ports::free(), ports::free().port());
    let dns = Dnsmasq::start("127.0.0.2 db1.test\n127.0.0.3 db2.test", "");
    let named = format!(
        "{{ name = \"db1\", address = \"db1.test:{port}\" }}, {{ name = \"db2\", address = \"127.0.0.3:{port}\" }}"
    );
    let evenkeel = Evenkeel::start(config(front, dns.address(), &named));
    wait::until_so("the name is known", || endpoints(&evenkeel).len() == 2);

    let output = evenkeel.ask(&["endpoint", "drain", "letters/db1"]);

    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains(&format!("db1/127.0.0.2:{port}")), "{said}");
    assert!(!said.contains("db2"), "{said}");
}
