//! One proxy follows another on the same sockets.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use evenkeel_core::units::Address;
use evenkeel_proxy::settings::{Layer, Settings};
use evenkeel_proxy::{Giver, Inheritance, Proxy, ReloadError};

use crate::running::Nobody;
use crate::world::{Endpoint, eventually, read_exactly, settings};

fn start(settings: &Settings) -> Arc<Proxy> {
    Arc::new(Proxy::start(settings.clone(), Arc::new(Nobody)).unwrap())
}

/// The next proxy, on the sockets of the one before it.
fn follow(proxy: &Proxy, settings: &Settings) -> Arc<Proxy> {
    let mut inheritance = Inheritance::default();
    for (name, socket) in proxy.lend().unwrap().sockets {
        inheritance.add(Giver::Predecessor, &name, socket);
    }
    start_on(inheritance, settings)
}

fn start_on(inheritance: Inheritance, settings: &Settings) -> Arc<Proxy> {
    let proxy = Proxy::prepare(
        inheritance,
        settings.clone(),
        Arc::default(),
        Arc::new(Nobody),
    )
    .unwrap();
    proxy.open();
    Arc::new(proxy)
}

fn address(proxy: &Proxy) -> SocketAddr {
    proxy.listeners()[0].address.ip().unwrap()
}

fn expect_echo(address: SocketAddr) {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"hello").unwrap();
    assert_eq!(read_exactly(&mut client, 5), b"hello");
}

/// With fewer workers, as many, and more, one after the other: whoever connects is served, whichever of the sockets the kernel
/// puts them on, and nobody needs the port to be free for a moment.
#[test]
fn sockets_go_over_to_any_number_of_workers() {
    let endpoint = Endpoint::echoing("echo");
    let mut wanted = settings(&[&endpoint]);
    wanted.process.workers = 3;
    let mut proxy = start(&wanted);
    let place = address(&proxy);

    for workers in [1, 1, 4, 2] {
        wanted.process.workers = workers;
        let next = follow(&proxy, &wanted);
        (0..32).for_each(|_| expect_echo(place));
        proxy.hand_over();
        proxy.join();
        proxy = next;

        assert_eq!(
            address(&proxy),
            place,
            "a port of the kernel's choice is kept"
        );
        (0..32).for_each(|_| expect_echo(place));
    }
}

/// Whoever waits in a backlog when the first proxy has gone is served by the second.
#[test]
fn a_backlog_goes_over() {
    let endpoint = Endpoint::echoing("echo");
    let wanted = settings(&[&endpoint]);
    let first = start(&wanted);
    let place = address(&first);
    let lent = first.lend().unwrap().sockets;
    first.hand_over();
    first.join();
    let mut waiting: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(place).unwrap())
        .collect();

    let mut inheritance = Inheritance::default();
    for (name, socket) in lent {
        inheritance.add(Giver::Predecessor, &name, socket);
    }
    let _second = start_on(inheritance, &wanted);

    for client in &mut waiting {
        client.write_all(b"hello").unwrap();
        assert_eq!(read_exactly(client, 5), b"hello");
    }
}

/// A service manager's socket, which is not shared, serves all workers; it goes by its name, wherever it is bound.
#[test]
fn a_single_socket_serves_all_workers() {
    let endpoint = Endpoint::echoing("echo");
    let mut wanted = settings(&[&endpoint]);
    wanted.listeners[0].bind = Address::Ip("127.0.0.1:1".parse().unwrap());
    let given = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = given.local_addr().unwrap();
    let mut inheritance = Inheritance::default();
    let name = Arc::clone(&wanted.listeners[0].name);
    inheritance.add(Giver::ServiceManager, &name, given.into());

    let proxy = start_on(inheritance, &wanted);

    assert_eq!(address(&proxy), place);
    let mut clients: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(place).unwrap())
        .collect();
    for client in &mut clients {
        client.write_all(b"hello").unwrap();
        assert_eq!(read_exactly(client, 5), b"hello");
    }
    let spread = proxy.worker_sessions(Layer::Transport);
    assert!(spread.iter().all(|sessions| *sessions >= 8), "{spread:?}");
}

/// The file of a Unix socket stays with the proxy that follows.
#[test]
fn a_unix_sockets_file_goes_over() {
    let endpoint = Endpoint::echoing("echo");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("front.sock");
    let mut wanted = settings(&[&endpoint]);
    wanted.listeners[0].bind = Address::Unix(path.as_path().into());
    let first = start(&wanted);

    let _second = follow(&first, &wanted);
    first.hand_over();
    first.join();

    std::os::unix::net::UnixStream::connect(&path).unwrap();
}

/// Who has taken charge of a file removes it at the end; who has not leaves it.
#[test]
fn a_unix_sockets_file_has_one_owner() {
    let endpoint = Endpoint::echoing("echo");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("front.sock");
    let mut wanted = settings(&[&endpoint]);
    wanted.listeners[0].bind = Address::Unix(path.as_path().into());
    let first = start(&wanted);
    let files = first.lend().unwrap().files;
    let failed = follow(&first, &wanted);
    failed.close();
    failed.join();
    assert!(path.exists(), "its owner goes on");

    let second = follow(&first, &wanted);
    first.hand_over();
    first.join();
    second.take_files(&files);
    second.close();
    second.join();

    assert!(!path.exists());
}

/// The file of a service manager's socket is the service manager's.
#[test]
fn a_service_managers_file_is_not_passed_on() {
    let endpoint = Endpoint::echoing("echo");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("front.sock");
    let mut wanted = settings(&[&endpoint]);
    wanted.listeners[0].bind = Address::Unix(path.as_path().into());
    let given = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut inheritance = Inheritance::default();
    let name = Arc::clone(&wanted.listeners[0].name);
    inheritance.add(Giver::ServiceManager, &name, given.into());

    let proxy = start_on(inheritance, &wanted);

    assert_eq!(proxy.lend().unwrap().files, []);
    proxy.close();
    proxy.join();
    assert!(path.exists());
}

/// Another socket at the same path is not removed, and the file of a socket that nobody wanted is.
#[test]
fn only_the_file_that_was_left_is_removed() {
    let endpoint = Endpoint::echoing("echo");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("front.sock");
    let elsewhere = settings(&[&endpoint]);
    let mut wanted = elsewhere.clone();
    wanted.listeners[0].bind = Address::Unix(path.as_path().into());
    let first = start(&wanted);
    let files = first.lend().unwrap().files;
    let second = follow(&first, &elsewhere);
    first.hand_over();
    first.join();

    let own = directory.path().join("own.sock");
    std::fs::rename(&path, &own).unwrap();
    std::fs::write(&path, "a stranger's").unwrap();
    second.take_files(&files);
    assert!(path.exists());

    std::fs::rename(&own, &path).unwrap();
    second.take_files(&files);
    assert!(!path.exists());
}

/// Sockets that nobody wants are closed, and an address that only they held is free.
#[test]
fn what_nobody_wants_is_closed() {
    let endpoint = Endpoint::echoing("echo");
    let wanted = settings(&[&endpoint]);
    let unwanted = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = unwanted.local_addr().unwrap();
    let mut inheritance = Inheritance::default();
    inheritance.add(Giver::ServiceManager, "other", OwnedFd::from(unwanted));

    let _proxy = start_on(inheritance, &wanted);

    eventually("it is closed", || TcpStream::connect(place).is_err());
}

/// While a proxy is being followed, nothing can be reloaded; afterwards it can.
#[test]
fn no_reload_comes_between() {
    let endpoint = Endpoint::echoing("echo");
    let mut wanted = settings(&[&endpoint]);
    let proxy = start(&wanted);
    wanted.listeners[0].timeouts.idle = None;

    let still = proxy.keep_still().unwrap();

    assert!(matches!(proxy.keep_still(), Err(ReloadError::Underway)));
    assert!(matches!(
        proxy.reload(wanted.clone()),
        Err(ReloadError::Underway)
    ));
    drop(still);
    proxy.reload(wanted).unwrap();
}
