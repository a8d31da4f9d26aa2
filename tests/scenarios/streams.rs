//! Every byte arrives, in order, once: under half-close, early closes, resets, and readers that stall.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use rustix::net::sockopt::set_socket_send_buffer_size;

use crate::support::evenkeel::Evenkeel;
use crate::support::service::{self, Service};
use crate::support::{client, ports, stream, wait};

const MIB: usize = 1 << 20;
const UP: u64 = 7;
const DOWN: u64 = 11;

/// One listener in front of one endpoint.
fn in_front_of(endpoint: &Service) -> (Evenkeel, SocketAddr) {
    let front = ports::free();
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.front]
        bind = "{front}"
        to = "streams"
        [cluster.streams]
        endpoints = [{{ name = "endpoint", address = "{}" }}]
        "#,
        endpoint.address(),
    ));
    (evenkeel, front)
}

/// The endpoint answers only after the client's end of stream: both streams arrive whole.
#[test]
fn fault_38_a_half_closed_client_gets_the_whole_answer() {
    let endpoint = Service::start(|mut connection, _| {
        let (received, end) = stream::check(&mut connection, UP);
        assert!(received == 8 * MIB && end.is_ok());
        let _ = stream::write(&mut connection, DOWN, 24 * MIB);
    });
    let (evenkeel, front) = in_front_of(&endpoint);

    let mut connection = client::connect(front);
    stream::write(&mut connection, UP, 8 * MIB)
        .1
        .expect("the endpoint reads");
    connection.shutdown(Shutdown::Write).expect("it is open");
    let (received, end) = stream::check(&mut connection, DOWN);

    end.expect("an orderly end");
    assert_eq!(received, 24 * MIB);
    let session = &evenkeel.sessions(1)[0];
    assert_eq!(session["reason"], "done");
    assert_eq!(session["bytes_up"], 8 * MIB);
    assert_eq!(session["bytes_down"], 24 * MIB);
}

/// The endpoint ends its stream first; what the client sends after that still arrives.
#[test]
fn a_half_closed_endpoint_gets_the_rest_of_the_request() {
    let (received_by_endpoint, received) = mpsc::channel();
    let endpoint = Service::start(move |mut connection, _| {
        let _ = stream::write(&mut connection, DOWN, 3 * MIB);
        let _ = connection.shutdown(Shutdown::Write);
        let _ = received_by_endpoint.send(stream::check(&mut connection, UP));
    });
    let (_evenkeel, front) = in_front_of(&endpoint);

    let mut connection = client::connect(front);
    let (length, end) = stream::check(&mut connection, DOWN);
    assert!(length == 3 * MIB && end.is_ok());
    stream::write(&mut connection, UP, 5 * MIB)
        .1
        .expect("the endpoint reads");
    drop(connection);

    let (length, end) = received
        .recv_timeout(wait::DEADLINE)
        .expect("the endpoint saw the end");
    end.expect("an orderly end");
    assert_eq!(length, 5 * MIB);
}

/// Both sides send at once, far more than any buffer holds.
#[test]
fn both_directions_run_at_once() {
    let (received_by_endpoint, received) = mpsc::channel();
    let endpoint = Service::start(move |mut connection, _| {
        let mut writer = connection.try_clone().expect("one more descriptor");
        let writing = std::thread::spawn(move || {
            stream::write(&mut writer, DOWN, 64 * MIB)
                .1
                .expect("the client reads");
            writer.shutdown(Shutdown::Write).expect("it is open");
        });
        let _ = received_by_endpoint.send(stream::check(&mut connection, UP).0);
        let _ = writing.join();
    });
    let (_evenkeel, front) = in_front_of(&endpoint);

    let mut connection = client::connect(front);
    let mut writer = connection.try_clone().expect("one more descriptor");
    let writing = std::thread::spawn(move || {
        stream::write(&mut writer, UP, 64 * MIB)
            .1
            .expect("the endpoint reads");
        writer.shutdown(Shutdown::Write).expect("it is open");
    });
    let (length, end) = stream::check(&mut connection, DOWN);

    end.expect("an orderly end");
    writing.join().expect("the client wrote everything");
    assert_eq!(length, 64 * MIB);
    assert_eq!(received.recv_timeout(wait::DEADLINE), Ok(64 * MIB));
}

/// The endpoint resets in the middle of its answer: the client gets an exact beginning of it, and then a reset.
#[test]
fn an_endpoints_reset_reaches_the_client() {
    let endpoint = Service::start(|mut connection, _| {
        let _ = connection.read(&mut [0; 64]);
        let _ = stream::write(&mut connection, DOWN, MIB);
        client::reset(connection);
    });
    let (evenkeel, front) = in_front_of(&endpoint);

    let mut connection = client::connect(front);
    connection.write_all(b"go").expect("it can be written");
    let (received, end) = stream::check(&mut connection, DOWN);

    assert_eq!(end.expect_err("a reset").kind(), ErrorKind::ConnectionReset);
    assert!(received <= MIB);
    assert_eq!(evenkeel.reasons(1), ["upstream_reset"]);
}

/// The client resets in the middle of its request: the endpoint gets an exact beginning of it, and then a reset.
#[test]
fn a_clients_reset_reaches_the_endpoint() {
    let (received_by_endpoint, received) = mpsc::channel();
    let endpoint = Service::start(move |mut connection, _| {
        connection.write_all(b"go").expect("it can be written");
        let _ = received_by_endpoint.send(stream::check(&mut connection, UP));
    });
    let (evenkeel, front) = in_front_of(&endpoint);

    let mut connection = client::connect(front);
    client::expect(&mut connection, b"go");
    stream::write(&mut connection, UP, MIB)
        .1
        .expect("the endpoint reads");
    client::reset(connection);

    let (length, end) = received
        .recv_timeout(wait::DEADLINE)
        .expect("the endpoint saw the end");
    assert_eq!(end.expect_err("a reset").kind(), ErrorKind::ConnectionReset);
    assert!(length <= MIB);
    assert_eq!(evenkeel.reasons(1), ["client_reset"]);
}

/// The endpoint answers in full and ends while the client is still sending: the answer arrives whole.
#[test]
fn an_answer_before_the_end_of_the_request_arrives_whole() {
    let endpoint = Service::start(|mut connection, _| {
        let _ = connection.read(&mut [0; 64]);
        let _ = stream::write(&mut connection, DOWN, 2 * MIB);
        let _ = connection.shutdown(Shutdown::Write);
        let _ = client::read_to_end(&mut connection);
    });
    let (_evenkeel, front) = in_front_of(&endpoint);

    let mut connection = client::connect(front);
    let mut writer = connection.try_clone().expect("one more descriptor");
    let writing = std::thread::spawn(move || stream::write(&mut writer, UP, 16 * MIB));
    let (received, end) = stream::check(&mut connection, DOWN);

    end.expect("an orderly end");
    assert_eq!(received, 2 * MIB);
    connection.shutdown(Shutdown::Both).expect("it is open");
    let _ = writing.join();
}

/// The client leaves and wants no answer: the endpoint's next bytes meet a closed connection, and it can stop working.
#[test]
fn fault_40_an_endpoint_learns_that_its_client_is_gone() {
    let (endpoint_stopped, stopped) = mpsc::channel();
    let endpoint = Service::start(move |mut connection, _| {
        let _ = connection.read(&mut [0; 64]);
        let written = stream::write(&mut connection, DOWN, 1024 * MIB);
        let _ = endpoint_stopped.send(written.1.is_err());
    });
    let (evenkeel, front) = in_front_of(&endpoint);

    let mut connection = client::connect(front);
    connection.write_all(b"go").expect("it can be written");
    connection
        .read_exact(&mut [0; 64])
        .expect("the answer has begun");
    drop(connection);

    assert_eq!(
        stopped.recv_timeout(wait::DEADLINE),
        Ok(true),
        "it wrote on to nobody"
    );
    evenkeel.wait_until_idle("streams");
}

/// A client that leaves without a word leaves nothing behind.
#[test]
fn a_client_that_connects_and_leaves_leaves_nothing() {
    let endpoint = Service::start(|connection, _| service::stay_silent(connection));
    let (mut evenkeel, front) = in_front_of(&endpoint);
    drop(client::connect(front));
    evenkeel.sessions(1);
    let before = evenkeel.process().descriptors();

    for _ in 0..100 {
        drop(client::connect(front));
    }
    evenkeel.sessions(101);
    wait::until_so("the descriptors are closed", || {
        evenkeel.process().descriptors() <= before
    });
}

/// A server that speaks first is heard before the client has said a word.
#[test]
fn fault_37_server_first_protocol_is_not_held_back() {
    let endpoint = Service::start(|mut connection, _| {
        let _ = connection.write_all(b"220 ready\r\n");
        service::stay_silent(connection);
    });
    let (_evenkeel, front) = in_front_of(&endpoint);

    client::expect(&mut client::connect(front), b"220 ready\r\n");
}

/// A client that stops reading stops the endpoint: the process keeps at most a MiB of it, the kernel a few. When it reads
/// again it gets everything.
#[test]
fn a_slow_client_keeps_memory_bounded() {
    const TOTAL: usize = 192 * MIB;
    let (stalled_at, stalled) = mpsc::channel();
    let endpoint = Service::start(move |mut connection, _| {
        write_until_stalled(&mut connection, TOTAL, &stalled_at);
    });
    let (mut evenkeel, front) = in_front_of(&endpoint);
    let before = evenkeel.process().resident_kib();

    let mut connection = client::connect(front);
    let in_flight = stalled
        .recv_timeout(wait::DEADLINE)
        .expect("the endpoint's writes stall");
    let grown = evenkeel.process().resident_kib().saturating_sub(before);
    assert!(in_flight <= 16 * MIB, "{in_flight} bytes in flight");
    assert!(grown <= 2 * 1024, "{grown} KiB more in user space");

    let (received, end) = stream::check(&mut connection, DOWN);
    end.expect("an orderly end");
    assert_eq!(received, TOTAL);
}

/// The same for an endpoint that does not read.
#[test]
fn a_slow_endpoint_keeps_memory_bounded() {
    const TOTAL: usize = 192 * MIB;
    let (go_on, gone_on) = mpsc::channel::<()>();
    let gone_on = std::sync::Mutex::new(gone_on);
    let (received_by_endpoint, received) = mpsc::channel();
    let endpoint = Service::start(move |mut connection, _| {
        let _ = gone_on.lock().expect("one connection only").recv();
        let _ = received_by_endpoint.send(stream::check(&mut connection, DOWN).0);
    });
    let (mut evenkeel, front) = in_front_of(&endpoint);
    let before = evenkeel.process().resident_kib();

    let (stalled_at, stalled) = mpsc::channel();
    let mut connection = client::connect(front);
    let writing = std::thread::spawn(move || {
        write_until_stalled(&mut connection, TOTAL, &stalled_at);
    });
    let in_flight = stalled
        .recv_timeout(wait::DEADLINE)
        .expect("the client's writes stall");
    let grown = evenkeel.process().resident_kib().saturating_sub(before);
    assert!(in_flight <= 16 * MIB, "{in_flight} bytes in flight");
    assert!(grown <= 2 * 1024, "{grown} KiB more in user space");

    go_on.send(()).expect("the endpoint waits for it");
    writing.join().expect("the client wrote everything");
    assert_eq!(received.recv_timeout(wait::DEADLINE), Ok(TOTAL));
}

/// A write that makes no progress for this long has stalled: every buffer on the way is full.
const STALL: Duration = Duration::from_millis(500);

/// What the writer's own kernel may hold; small, so that what is in flight is on evenkeel's account.
const SEND_BUFFER: usize = 64 * 1024;

/// Writes the stream to its end; says once how much was written when a write stalled for the first time.
fn write_until_stalled(connection: &mut TcpStream, total: usize, stalled_at: &mpsc::Sender<usize>) {
    set_socket_send_buffer_size(&*connection, SEND_BUFFER).expect("a TCP socket");
    let _ = connection.set_write_timeout(Some(STALL));
    let mut bytes = vec![0; 64 * 1024];
    let mut random = fastrand::Rng::with_seed(DOWN);
    let mut written = 0;
    let mut stalled = false;
    while written < total {
        random.fill(&mut bytes);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match connection.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !std::mem::replace(&mut stalled, true) {
                        let _ = stalled_at.send(written + bytes.len() - rest.len());
                    }
                }
                Err(_) => return,
            }
        }
        written += bytes.len();
    }
}
