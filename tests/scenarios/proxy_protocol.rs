//! The PROXY protocol, with the programs that operators have on the other side of it.

use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpStream};

use serde_json::Value;

use crate::support::evenkeel::Evenkeel;
use crate::support::haproxy::HaProxy;
use crate::support::mariadb::{self, MariaDb};
use crate::support::nginx_stream::NginxStream;
use crate::support::redis::Redis;
use crate::support::{client, ports};

/// A free port of this machine's IPv6 address.
fn free_v6() -> SocketAddr {
    (Ipv6Addr::LOCALHOST, ports::free().port()).into()
}

/// An evenkeel that believes what comes from loopback, in front of Redis.
fn trusting(redis: &Redis) -> (Evenkeel, SocketAddr) {
    let front = ports::free();
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "redis"
        proxy_protocol = {{ from = ["127.0.0.0/8"] }}
        [cluster.redis]
        endpoints = ["{}"]
        "#,
        redis.address
    ));
    (evenkeel, front)
}

/// Asks Redis for a sign of life through a proxy, and says where the question came from.
fn ping(proxy: SocketAddr) -> SocketAddr {
    let mut stream = client::connect(proxy);
    let own = stream.local_addr().expect("it is connected");
    std::io::Write::write_all(&mut stream, b"PING\r\n").expect("it can be written");
    client::expect(&mut stream, b"+PONG\r\n");
    stream.shutdown(Shutdown::Write).expect("it is connected");
    client::read_to_end(&mut stream).expect("it ends");
    own
}

/// HAProxy announces its clients in each of its ways, over IPv4 and over IPv6; the session is the client's.
#[test]
fn haproxy_announces_its_clients() {
    let redis = Redis::start();
    let (evenkeel, front) = trusting(&redis);
    for options in [
        "send-proxy",
        "send-proxy-v2",
        "send-proxy-v2 proxy-v2-options crc32c,unique-id",
    ] {
        let binds = [ports::free(), free_v6()];
        let [v4, v6] = binds;
        let sections = format!(
            "listen front\n bind {v4}\n bind {v6}\n unique-id-format %[uuid()]\n server evenkeel {front} {options}\n"
        );
        let _haproxy = HaProxy::start(&sections, &binds);
        for bind in binds {
            let own = ping(bind);
            let session = evenkeel.session_of(own);
            assert_eq!(session["reason"], "done", "{options}");
            assert_ne!(session["peer"], Value::Null);
            assert_eq!(session["bytes_up"], 6);
        }
    }
}

/// nginx announces its clients over IPv4 and over IPv6.
#[test]
fn nginx_announces_its_clients() {
    let redis = Redis::start();
    let (evenkeel, front) = trusting(&redis);
    let binds = [ports::free(), free_v6()];
    let [v4, v6] = binds;
    let server =
        format!("server {{ listen {v4}; listen {v6}; proxy_pass {front}; proxy_protocol on; }}");
    let _nginx = NginxStream::start(&server, &binds);
    for bind in binds {
        let own = ping(bind);
        assert_eq!(evenkeel.session_of(own)["reason"], "done");
    }
}

/// HAProxy that does not announce its clients is not let through where it has to.
#[test]
fn a_proxy_that_announces_nobody_is_refused() {
    let redis = Redis::start();
    let (evenkeel, front) = trusting(&redis);
    let bind = ports::free();
    let sections = format!("listen front\n bind {bind}\n server evenkeel {front}\n");
    let _haproxy = HaProxy::start(&sections, &[bind]);
    let mut stream = client::connect(bind);
    std::io::Write::write_all(&mut stream, b"PING\r\n").expect("it can be written");
    let _ = client::read_to_end(&mut stream);
    crate::support::wait::until_so("the refusal is in the access log", || {
        let lines = evenkeel.sessions(1);
        lines
            .iter()
            .any(|line| line["reason"] == "proxy_protocol_error")
    });
}

/// Two listeners, one of each family, in front of an endpoint that is told whom for.
fn telling(endpoint: SocketAddr, version: &str) -> (Evenkeel, [SocketAddr; 2]) {
    let fronts = [ports::free(), free_v6()];
    let [v4, v6] = fronts;
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.v4]
        bind = "{v4}"
        to = "endpoint"
        [listener.v6]
        bind = "{v6}"
        to = "endpoint"
        [cluster.endpoint]
        proxy_protocol = "{version}"
        endpoints = ["{endpoint}"]
        "#
    ));
    (evenkeel, fronts)
}

fn own_and_answer(front: SocketAddr, request: &[u8]) -> (SocketAddr, String) {
    let mut stream: TcpStream = client::connect(front);
    let own = stream.local_addr().expect("it is connected");
    std::io::Write::write_all(&mut stream, request).expect("it can be written");
    let answer = client::read_to_end(&mut stream).expect("an answer");
    (own, String::from_utf8(answer).expect("the answer is text"))
}

/// HAProxy that requires the header takes the client's address and port from it, in both versions.
#[test]
fn haproxy_is_told_of_clients() {
    let bind = ports::free();
    let sections = format!(
        "frontend front\n mode http\n bind {bind} accept-proxy\n \
         http-request return status 200 content-type text/plain lf-string \"%[src] %[src_port] %[dst] %[dst_port]\"\n"
    );
    let _haproxy = HaProxy::start(&sections, &[bind]);
    for version in ["v1", "v2"] {
        let (_evenkeel, fronts) = telling(bind, version);
        for front in fronts {
            let (own, answer) = own_and_answer(front, b"GET / HTTP/1.0\r\n\r\n");
            let told = format!(
                "\r\n\r\n{} {} {} {}",
                own.ip(),
                own.port(),
                front.ip(),
                front.port()
            );
            assert!(answer.ends_with(&told), "{version} {told}: {answer}");
        }
    }
}

/// nginx, which answers here before the client has said a word, has been told all the same, in both versions.
#[test]
fn nginx_is_told_of_clients() {
    let bind = ports::free();
    let server = format!(
        "server {{ listen {bind} proxy_protocol; return \"$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr\"; }}"
    );
    let _nginx = NginxStream::start(&server, &[bind]);
    for version in ["v1", "v2"] {
        let (_evenkeel, fronts) = telling(bind, version);
        for front in fronts {
            let (own, answer) = own_and_answer(front, b"");
            assert_eq!(
                answer,
                format!("{} {} {}", own.ip(), own.port(), front.ip())
            );
        }
    }
}

/// MariaDB, which speaks first, knows its clients by their own addresses.
#[test]
fn mariadb_is_told_of_clients() {
    let server = MariaDb::start_with("told", &["--proxy-protocol-networks=127.0.0.1"]);
    for version in ["v1", "v2"] {
        let (_evenkeel, [v4, v6]) = telling(server.address(), version);
        assert_eq!(mariadb::query(v4, "SELECT USER()"), "keel@127.0.0.1");
        assert_eq!(mariadb::query(v6, "SELECT USER()"), "keel@::1");
    }
}
