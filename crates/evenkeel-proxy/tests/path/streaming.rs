//! Bytes: every one of them, once, in order, in both directions, however slowly the other side reads.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

use evenkeel_proxy::telemetry::reason::Reason;
use rustix::net::sockopt;

use crate::world::{
    Endpoint, World, assert_same, bytes_of, exchange, patient, read_all, read_exactly,
};

/// What may be on its way in all, between a writer and a reader that does not read.
const IN_FLIGHT_MAX: usize = 16 << 20;

/// A client sends its request, ends its stream and reads until the end: the answer is whole, whatever the size.
#[test]
fn a_request_and_its_answer_pass_with_half_close() {
    let seed = 11;
    println!("seed {seed}");
    let endpoint = Endpoint::serving("echo", |mut stream| {
        let request = read_all(&mut stream);
        stream.write_all(&request).unwrap();
    });
    let world = World::of(&[&endpoint]);
    let mut random = fastrand::Rng::with_seed(seed);
    for size in [0, 1, 65_536, 65_537]
        .into_iter()
        .chain((0..12).map(|_| random.usize(..3_000_000)))
    {
        let request = bytes_of(size as u64, size);
        let answer = exchange(&mut world.connect(), &request);
        assert_same(&answer, &request);
        let record = world.next_record();
        assert_eq!(
            (record.reason, record.bytes_up, record.bytes_down),
            (Reason::Done, size as u64, size as u64)
        );
    }
}

/// Both directions are full at once and of different lengths; neither disturbs the other.
#[test]
fn both_directions_flow_at_once() {
    let (request, answer) = (bytes_of(1, 5_000_000), bytes_of(2, 7_000_000));
    let (received, arrived) = channel();
    let endpoint = Endpoint::serving("both", {
        let answer = answer.clone();
        move |mut stream| {
            let mut writer = stream.try_clone().unwrap();
            let answer = answer.clone();
            let writing = thread::spawn(move || {
                writer.write_all(&answer).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            received.send(read_all(&mut stream)).unwrap();
            writing.join().unwrap();
        }
    });
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();
    let mut writer = client.try_clone().unwrap();
    let sent = request.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    assert_same(&read_all(&mut client), &answer);
    writing.join().unwrap();
    assert_same(&arrived.recv().unwrap(), &request);
    assert_eq!(world.next_record().reason, Reason::Done);
}

/// Many small messages back and forth over one connection.
#[test]
fn a_conversation_goes_back_and_forth() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();
    for round in 0..500 {
        let message = bytes_of(round, 1 + (round % 300) as usize);
        client.write_all(&message).unwrap();
        assert_same(&read_exactly(&mut client, message.len()), &message);
    }
}

/// A protocol in which the server speaks first works: nobody waits for the client's bytes.
#[test]
fn a_server_may_speak_first() {
    let endpoint = Endpoint::naming("greeter");
    let world = World::of(&[&endpoint]);
    assert_eq!(read_exactly(&mut world.connect(), 7), b"greeter");
}

/// A client that reads fast at first, so that the kernel widens every buffer, and then not at all.
#[test]
fn a_client_that_stops_reading_stops_its_endpoint() {
    const FAST: usize = 200 << 20;
    let (stalled, seen) = channel();
    let endpoint = Endpoint::serving("fast", move |mut stream| {
        let block = vec![5; 1 << 20];
        for _ in 0..FAST / block.len() {
            stream.write_all(&block).unwrap();
        }
        let surplus = vec![6; 2 * IN_FLIGHT_MAX];
        stalled
            .send(write_until_stalled(&mut stream, &surplus))
            .unwrap();
    });
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();
    // Ours is what is measured, not what the client's own kernel takes in.
    sockopt::set_socket_recv_buffer_size(&client, 1 << 20).unwrap();
    std::io::copy(&mut (&mut client).take(FAST as u64), &mut std::io::sink()).unwrap();

    let on_their_way = seen.recv().unwrap();
    println!("{on_their_way} bytes on their way");
    assert!(on_their_way <= IN_FLIGHT_MAX);
}

/// A client that does not read stops its endpoint, with a bounded number of bytes on their way; then all of them arrive.
#[test]
fn a_slow_client_slows_its_endpoint_down() {
    let answer = bytes_of(3, IN_FLIGHT_MAX + (4 << 20));
    let (stalled, seen) = channel();
    let endpoint = Endpoint::serving("fast", {
        let answer = answer.clone();
        move |mut stream| {
            let before = write_until_stalled(&mut stream, &answer);
            stalled.send(before).unwrap();
            stream.write_all(&answer[before..]).unwrap();
        }
    });
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();

    let on_their_way = seen.recv().unwrap();
    println!("{on_their_way} bytes on their way");
    assert!(on_their_way <= IN_FLIGHT_MAX);
    assert_same(&read_all(&mut client), &answer);
}

/// The same the other way round.
#[test]
fn a_slow_endpoint_slows_its_client_down() {
    let request = bytes_of(4, IN_FLIGHT_MAX + (4 << 20));
    let (go, told) = channel::<()>();
    let told = std::sync::Mutex::new(told);
    let (received, arrived) = channel();
    let endpoint = Endpoint::serving("slow", move |mut stream| {
        told.lock().unwrap().recv().unwrap();
        received.send(read_all(&mut stream)).unwrap();
    });
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();

    let on_their_way = write_until_stalled(&mut client, &request);
    println!("{on_their_way} bytes on their way");
    assert!(on_their_way <= IN_FLIGHT_MAX);
    go.send(()).unwrap();
    client.write_all(&request[on_their_way..]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_same(&arrived.recv().unwrap(), &request);
}

/// A connection that is always readable does not keep the others of its worker from being served.
#[test]
fn a_flood_does_not_starve_its_neighbours() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], |settings| settings.process.workers = 1);
    let mut flood = world.connect();
    let mut reader = flood.try_clone().unwrap();
    let (stop, stopping) = channel::<()>();
    let writing = thread::spawn(move || {
        let block = vec![7; 1 << 20];
        while stopping.try_recv().is_err() {
            flood.write_all(&block).unwrap();
        }
        flood.shutdown(Shutdown::Write).unwrap();
    });
    let reading = thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()).unwrap());

    let mut client = world.connect();
    for round in 0..200 {
        let message = bytes_of(round, 100);
        client.write_all(&message).unwrap();
        assert_same(&read_exactly(&mut client, 100), &message);
    }
    stop.send(()).unwrap();
    writing.join().unwrap();
    assert!(reading.join().unwrap() > 0);
}

/// Writes until the other side has taken nothing for a while. If that while is too short, fewer bytes are reported, and the test
/// is weaker, not wrong.
fn write_until_stalled(stream: &mut TcpStream, bytes: &[u8]) -> usize {
    stream
        .set_write_timeout(Some(std::time::Duration::from_millis(500)))
        .unwrap();
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(count) => written += count,
            Err(_) => break,
        }
    }
    *stream = patient(stream.try_clone().unwrap());
    written
}

/// Two clients of the same kind are told apart by their bytes alone.
#[test]
fn neighbours_do_not_get_each_others_bytes() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::of(&[&endpoint]);
    let address = world.address();
    let clients: Vec<_> = (0..50)
        .map(|seed| {
            thread::spawn(move || {
                let mut client = patient(TcpStream::connect(address).unwrap());
                let message = bytes_of(seed, 40_000);
                client.write_all(&message).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).unwrap();
                assert_same(&answer, &message);
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
}
