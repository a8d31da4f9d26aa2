//! TLS that is passed on unread, to where the name leads that the client asks for.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};

use crate::support::certificates::Authority;
use crate::support::evenkeel::Evenkeel;
use crate::support::openssl::{self, Server};
use crate::support::service::Service;
use crate::support::{client, ports};

/// The first message of OpenSSL's client, which asks for `db.example.com`.
const HELLO: &[u8] = include_bytes!("../../fuzz/corpus/client_hello/openssl");
/// The same in three records.
const HELLO_IN_RECORDS: &[u8] = include_bytes!("../../fuzz/corpus/client_hello/openssl_fragments");
const HELLO_WITHOUT_NAME: &[u8] =
    include_bytes!("../../fuzz/corpus/client_hello/openssl_without_name");

/// A listener whose routes lead to `db` and, for other names below `example.com`, to `web`. `default` is what else it holds.
fn routing(db: SocketAddr, web: SocketAddr, default: &str) -> (Evenkeel, SocketAddr) {
    let front = ports::free();
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        routes = [{{ sni = "db.example.com", to = "db" }}, {{ sni = "*.example.com", to = "web" }}]
        {default}
        [cluster.db]
        endpoints = ["{db}"]
        [cluster.web]
        endpoints = ["{web}"]
        "#
    ));
    (evenkeel, front)
}

/// Real TLS reaches the endpoint that its name is for, which has the certificate: evenkeel has none.
#[test]
fn tls_goes_where_its_name_leads() {
    let authority = Authority::new("test authority");
    let db = Server::reversing(&authority.issue(&["db.example.com"]));
    let web = Server::reversing(&authority.issue(&["*.example.com"]));
    let (evenkeel, front) = routing(db.address, web.address, "");
    for (name, subject) in [
        ("db.example.com", "db.example.com"),
        ("DB.Example.com", "db.example.com"),
        ("www.example.com", "*.example.com"),
    ] {
        let words = ["-servername", name, "-verify_hostname", name];
        let seen = openssl::talk(front, &authority.certificate(), &words, "evenkeel\nCLOSE\n");
        assert_eq!(seen.subject(), Some(subject), "{}", seen.text);
        assert!(seen.text.contains("leekneve"), "{}", seen.text);
    }
    let clusters: Vec<_> = evenkeel
        .sessions(3)
        .iter()
        .map(|line| line["cluster"].clone())
        .collect();
    assert_eq!(clusters, ["db", "db", "web"]);
}

/// However the network cuts the handshake, all of it is passed on, and the name in it is found.
#[test]
fn a_handshake_in_pieces_is_passed_on_whole() {
    let (db, web) = (Service::echo(), Service::named("web"));
    let (_evenkeel, front) = routing(db.address(), web.address(), "");
    for (hello, size) in [(HELLO, 1), (HELLO, 7), (HELLO_IN_RECORDS, 100)] {
        let mut stream = client::connect(front);
        stream.set_nodelay(true).expect("it is connected");
        for piece in hello.chunks(size) {
            stream.write_all(piece).expect("it is connected");
        }
        stream
            .write_all(b"and what follows")
            .expect("it is connected");
        stream.shutdown(Shutdown::Write).expect("it is connected");
        let echoed = client::read_to_end(&mut stream).expect("an answer");
        assert_eq!(echoed, [hello, b"and what follows"].concat());
    }
    assert_eq!(web.accepted(), 0);
}

/// Who asks for no name that is known, speaks another protocol or says nothing at all is served by `to`.
#[test]
fn all_others_go_to_the_default() {
    let (db, web) = (Service::named("db"), Service::named("web"));
    let default = "to = \"web\"\ntimeouts = { preread = \"200ms\" }";
    let (evenkeel, front) = routing(db.address(), web.address(), default);
    for first in [HELLO_WITHOUT_NAME, b"SELECT 1;\n", b""] {
        let mut stream = client::connect(front);
        stream.write_all(first).expect("it is connected");
        let answer = client::read_to_end(&mut stream).expect("an answer");
        assert_eq!(answer, b"web");
    }
    assert_eq!(db.accepted(), 0);
    assert_eq!(evenkeel.sessions(3)[0]["cluster"], "web");
}

/// Without a default they are closed, and the reason is told; nobody is connected to.
#[test]
fn without_a_default_all_others_are_closed() {
    let (db, web) = (Service::named("db"), Service::named("web"));
    let default = "timeouts = { preread = \"200ms\" }";
    let (evenkeel, front) = routing(db.address(), web.address(), default);
    for (first, reason) in [
        (HELLO_WITHOUT_NAME, "no_route"),
        (b"SELECT 1;\n", "no_route"),
        (b"\x16\x03\x01", "preread_timeout"),
    ] {
        let mut stream = client::connect(front);
        let own = stream.local_addr().expect("it is connected");
        stream.write_all(first).expect("it is connected");
        let answer = client::read_to_end(&mut stream).expect("an orderly end");
        assert!(answer.is_empty());
        let session = evenkeel.session_of(own);
        assert_eq!(session["reason"], reason);
        assert!(session["cluster"].is_null());
    }
    assert_eq!((db.accepted(), web.accepted()), (0, 0));
}

/// The dry run knows the routes, and says by which one.
#[test]
fn the_dry_run_goes_by_the_name() {
    let (db, web) = (Service::named("db"), Service::named("web"));
    let (evenkeel, _) = routing(db.address(), web.address(), "");
    let ask = |words: &[&str]| {
        let output = evenkeel.ask(&[&["route", "front", "192.0.2.7"], words].concat());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let by_name = ask(&["--sni", "a.Example.com"]);
    assert!(by_name.contains("goes to web/"), "{by_name}");
    assert!(
        by_name.contains("by the route for *.example.com"),
        "{by_name}"
    );
    assert!(ask(&["--sni", "elsewhere.org"]).contains("is closed: no route is for it"));
    assert!(ask(&[]).contains("give --sni"));
}
