//! Endpoints that fail: who is tried next, what the client is told, what the core is told.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use evenkeel_core::Failure;
use evenkeel_core::units::Address;
use evenkeel_proxy::settings::FailureReply;
use evenkeel_proxy::telemetry::reason::Reason;
use rustix::net::{AddressFamily, SocketType};

use crate::world::{
    Endpoint, World, assert_same, bytes_of, eventually, exchange, read_all, read_exactly,
    read_to_reset, reset, text,
};

/// An endpoint that is connected to and closes at once, without a word.
fn closing(name: &'static str) -> Endpoint {
    Endpoint::serving(name, drop)
}

/// Reads the whole request, then resets without an answer.
fn resetting(name: &'static str) -> Endpoint {
    Endpoint::serving(name, |mut stream| {
        read_all(&mut stream);
        reset(stream);
    })
}

/// A dead endpoint costs its clients nothing: each is served by the other.
#[test]
fn a_refused_connection_goes_to_another_endpoint() {
    let (dead, alive) = (Endpoint::refusing("dead"), Endpoint::naming("alive"));
    let world = World::of(&[&dead, &alive]);
    for _ in 0..10 {
        assert_eq!(exchange(&mut world.connect(), b"?"), b"alive");
    }
    assert!(matches!(
        world.endpoint("dead").last_failure,
        Some((Failure::Refused, _))
    ));
    assert_eq!(world.endpoint("alive").failures, 0);
}

/// When nobody is left, the client is told so in the configured words, and the record names the reason.
#[test]
fn a_client_is_told_when_all_have_refused() {
    let (one, other) = (Endpoint::refusing("one"), Endpoint::refusing("other"));
    let world = World::with(&[&one, &other], |settings| {
        settings.listeners[0].failure_reply = Some(text("sorry\n"));
        settings.clusters[0].attempts = 2;
    });
    assert_eq!(exchange(&mut world.connect(), b"anyone?"), b"sorry\n");
    let record = world.next_record();
    assert_eq!(
        (record.reason, record.attempts, record.bytes_down),
        (Reason::ConnectRefused, 2, 0)
    );
}

/// A client that is still sending gets the failure reply whole: its unread bytes do not destroy it.
#[test]
fn a_failure_reply_survives_unread_input() {
    let dead = Endpoint::refusing("dead");
    let world = World::with(&[&dead], |settings| {
        settings.listeners[0].failure_reply = Some(text("sorry\n"));
        settings.clusters[0].attempts = 1;
    });
    let mut client = world.connect();
    client.write_all(&bytes_of(1, 200_000)).unwrap();
    assert_eq!(read_all(&mut client), b"sorry\n");
}

/// A MySQL client is told in its own protocol, with the reason.
#[test]
fn a_mysql_client_gets_an_error_packet() {
    let dead = Endpoint::refusing("dead");
    let world = World::with(&[&dead], |settings| {
        settings.listeners[0].failure_reply = Some(FailureReply::MysqlError);
        settings.clusters[0].attempts = 1;
    });
    let packet = read_all(&mut { world.connect() });
    assert_eq!(packet[3..7], [0, 0xff, 0x51, 0x04]);
    assert_eq!(usize::from(packet[0]), packet.len() - 4);
    assert!(packet.ends_with(b"(connect_refused)"));
}

/// Without a reply a session that nobody serves is just closed.
#[test]
fn a_session_without_a_reply_is_closed() {
    let dead = Endpoint::refusing("dead");
    let world = World::with(&[&dead], |settings| settings.clusters[0].attempts = 1);
    assert_eq!(read_all(&mut world.connect()), b"");
    assert_eq!(world.next_record().reason, Reason::ConnectRefused);
}

/// The only endpoint comes back while a session holds back before its next try: the session is served.
#[test]
fn the_same_endpoint_is_tried_again_after_a_pause() {
    let calls = Arc::new(AtomicUsize::new(0));
    let moody = Endpoint::serving("moody", {
        let calls = Arc::clone(&calls);
        move |mut stream| {
            if calls.fetch_add(1, Ordering::Relaxed) > 0 {
                stream.write_all(b"well then").unwrap();
            }
        }
    });
    let world = World::of(&[&moody]);
    assert_eq!(read_all(&mut world.connect()), b"well then");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

/// An endpoint that closes before it was told anything is replaced, though nothing is kept for a replay.
#[test]
fn an_endpoint_that_closes_unasked_is_replaced() {
    let (hasty, alive) = (closing("hasty"), Endpoint::naming("alive"));
    let world = World::of(&[&hasty, &alive]);
    for _ in 0..6 {
        let mut client = world.connect();
        assert_eq!(read_exactly(&mut client, 5), b"alive");
    }
    assert_eq!(
        world.endpoint("hasty").failures,
        0,
        "nothing was asked of it"
    );
}

/// With replay, an endpoint that breaks before answering is replaced, and the other one gets the same bytes and the same end.
#[test]
fn a_request_is_replayed_to_another_endpoint() {
    let (broken, alive) = (resetting("broken"), Endpoint::echoing("alive"));
    let world = World::with(&[&broken, &alive], |settings| {
        settings.clusters[0].replay = 65_536;
    });
    for size in [1, 100, 65_536] {
        for _ in 0..2 {
            let request = bytes_of(size as u64, size);
            assert_same(&exchange(&mut world.connect(), &request), &request);
            let record = world.next_record();
            assert_eq!(
                (record.reason, record.bytes_up),
                (Reason::Done, size as u64)
            );
            assert_eq!(record.endpoint.as_deref(), Some("alive"));
        }
    }
    assert!(matches!(
        world.endpoint("broken").last_failure,
        Some((Failure::Reset, _))
    ));
}

/// Beyond the limit there is no replay: what was written cannot be taken back, and the reset is carried on.
#[test]
fn a_request_beyond_the_replay_limit_is_not_sent_twice() {
    let calls = Arc::new(AtomicUsize::new(0));
    let broken = Endpoint::serving("broken", {
        let calls = Arc::clone(&calls);
        move |mut stream| {
            calls.fetch_add(1, Ordering::Relaxed);
            read_all(&mut stream);
            reset(stream);
        }
    });
    let world = World::with(&[&broken], |settings| settings.clusters[0].replay = 1000);
    let mut client = world.connect();
    client.write_all(&bytes_of(5, 100_000)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_reset(&mut client), b"");
    assert_eq!(world.next_record().reason, Reason::UpstreamReset);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

/// Once a byte of an answer has come nothing is tried again: the client sees the reset.
#[test]
fn an_answered_request_is_never_replayed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (reset_now, told) = channel::<()>();
    let told = std::sync::Mutex::new(told);
    let halting = Endpoint::serving("halting", {
        let calls = Arc::clone(&calls);
        move |mut stream| {
            calls.fetch_add(1, Ordering::Relaxed);
            read_exactly(&mut stream, 1);
            stream.write_all(b"a").unwrap();
            told.lock().unwrap().recv().unwrap();
            reset(stream);
        }
    });
    let world = World::with(&[&halting], |settings| settings.clusters[0].replay = 1000);
    let mut client = world.connect();
    client.write_all(b"?").unwrap();
    assert_eq!(read_exactly(&mut client, 1), b"a");
    reset_now.send(()).unwrap();
    assert_eq!(read_to_reset(&mut client), b"");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let endpoint = world.endpoint("halting");
    assert_eq!((endpoint.established, endpoint.failures), (1, 0));
}

/// An endpoint that closes without an answer to what it was asked has failed; its client hears of it.
#[test]
fn a_question_without_an_answer_is_a_failure() {
    let mute = Endpoint::serving("mute", |mut stream| drop(read_all(&mut stream)));
    let world = World::with(&[&mute], |settings| {
        settings.listeners[0].failure_reply = Some(text("no answer"));
    });
    assert_eq!(exchange(&mut world.connect(), b"?"), b"no answer");
    assert_eq!(world.next_record().reason, Reason::UpstreamClosed);
    assert!(matches!(
        world.endpoint("mute").last_failure,
        Some((Failure::Closed, _))
    ));
}

/// A service that only takes bytes and never answers works, too.
#[test]
fn a_sink_may_end_its_stream_before_it_reads() {
    let (received, arrived) = channel();
    let sink = Endpoint::serving("sink", move |mut stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        received.send(read_all(&mut stream)).unwrap();
    });
    let world = World::with(&[&sink], |settings| settings.clusters[0].attempts = 1);
    let mut client = world.connect();
    assert_eq!(read_all(&mut client), b"");
    let request = bytes_of(9, 300_000);
    client.write_all(&request).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_same(&arrived.recv().unwrap(), &request);
}

/// An endpoint that is silent for too long is replaced where a replay is possible.
#[test]
fn a_silent_endpoint_is_replaced() {
    let silent = Endpoint::serving("silent", |mut stream| {
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let alive = Endpoint::echoing("alive");
    let world = World::with(&[&silent, &alive], |settings| {
        settings.clusters[0].replay = 1000;
        settings.clusters[0].first_byte_timeout = Some(Duration::from_millis(50));
    });
    for _ in 0..2 {
        let mut client = world.connect();
        client.write_all(b"hello").unwrap();
        assert_eq!(read_exactly(&mut client, 5), b"hello");
    }
    assert!(matches!(
        world.endpoint("silent").last_failure,
        Some((Failure::FirstByteTimeout, _))
    ));
}

/// A connection that is not made in time goes to another endpoint.
#[test]
fn a_connection_that_is_not_made_in_time_goes_elsewhere() {
    // A listener whose backlog is full: the kernel drops what comes on top.
    let full = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&full, &std::net::SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let address = rustix::net::getsockname(&full).unwrap().try_into().unwrap();
    let mut fillers = Vec::new();
    while let Ok(filler) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
        fillers.push(filler);
    }
    let (stuck, alive) = (Endpoint::at("stuck", address), Endpoint::naming("alive"));
    let world = World::with(&[&stuck, &alive], |settings| {
        settings.clusters[0].connect_timeout = Duration::from_millis(50);
    });
    for _ in 0..2 {
        assert_eq!(exchange(&mut world.connect(), b""), b"alive");
    }
    assert!(matches!(
        world.endpoint("stuck").last_failure,
        Some((Failure::ConnectTimeout, _))
    ));
}

/// A client that leaves before its endpoint was asked anything leaves no trace on that endpoint's name.
#[test]
fn a_client_that_leaves_is_not_the_endpoints_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let quiet = Endpoint::at("quiet", listener.local_addr().unwrap());
    let world = World::of(&[&quiet]);
    let mut client = world.connect();
    client.write_all(b"?").unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    read_exactly(&mut accepted, 1);
    reset(client);
    assert_eq!(world.next_record().reason, Reason::ClientReset);
    eventually("the lease is back", || {
        world.endpoint("quiet").in_flight == 0
    });
    assert_eq!(world.endpoint("quiet").failures, 0);
}

/// An endpoint may listen on a Unix socket; one whose socket is missing fails like any other.
#[test]
fn endpoints_may_be_unix_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("alive");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut reader = stream.try_clone().unwrap();
            let _ = std::io::copy(&mut reader, &mut stream);
        }
    });
    let (one, other) = (Endpoint::refusing("missing"), Endpoint::refusing("alive"));
    let world = World::with(&[&one, &other], |settings| {
        let endpoints = &mut settings.clusters[0].spec.endpoints;
        endpoints[0].address = Address::Unix(Arc::from(directory.path().join("missing")));
        endpoints[1].address = Address::Unix(Arc::from(path));
    });
    for size in [10, 500_000] {
        let request = bytes_of(1, size);
        assert_same(&exchange(&mut world.connect(), &request), &request);
    }
    assert!(matches!(
        world.endpoint("missing").last_failure,
        Some((Failure::Unreachable, _))
    ));
}
