//! Listening on a Unix socket: who may have the path, who may connect, and what is left of it.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::thread;

use evenkeel_core::units::Address;
use evenkeel_proxy::settings::{Layer, Settings};
use evenkeel_proxy::telemetry::reason::Reason;
use evenkeel_proxy::{Origin, Proxy, StartError};
use tempfile::TempDir;

use crate::running::{Nobody, start_error};
use crate::world::{Endpoint, PATIENCE, World, bytes_of, settings};

/// A folder of the test's own, and a path in it.
fn path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("front.sock");
    (folder, path)
}

fn on(path: &Path) -> impl FnOnce(&mut Settings) {
    let path = Arc::from(path);
    |settings| settings.listeners[0].bind = Address::Unix(path)
}

fn settings_on(path: &Path, endpoint: &Endpoint) -> Settings {
    let mut settings = settings(&[endpoint]);
    on(path)(&mut settings);
    settings
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends everything and ends the stream, then reads to the end.
fn exchange(mut stream: UnixStream, request: &[u8]) -> Vec<u8> {
    let mut reader = stream.try_clone().unwrap();
    let answer = thread::spawn(move || {
        let mut answer = Vec::new();
        reader.read_to_end(&mut answer).unwrap();
        answer
    });
    stream.write_all(request).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    answer.join().unwrap()
}

/// Clients of a Unix socket are served as any others, whole and in order, a half-close included.
#[test]
fn a_unix_socket_serves_its_clients() {
    let (_folder, path) = path();
    let endpoint = Endpoint::echoing("echo");
    let world = World::with(&[&endpoint], on(&path));
    for size in [0, 10, 3_000_000] {
        let request = bytes_of(1, size);
        assert!(exchange(connect(&path), &request) == request, "{size}");
        let record = world.next_record();
        assert_eq!((record.client, record.reason), (Origin::Unix, Reason::Done));
    }
}

/// What one worker accepts is spread over all of them.
#[test]
fn sessions_of_a_unix_socket_are_spread_over_the_workers() {
    let (_folder, path) = path();
    let endpoint = Endpoint::naming("any");
    let world = World::with(&[&endpoint], on(&path));
    let mut clients: Vec<_> = (0..8).map(|_| connect(&path)).collect();
    for client in &mut clients {
        client.read_exact(&mut [0; 3]).unwrap();
    }
    assert_eq!(world.proxy.worker_sessions(Layer::Transport), [4, 4]);
}

/// Only whom the permissions allow may connect, whatever the umask is.
#[test]
fn the_file_has_the_permissions_that_were_asked_for() {
    let (_folder, path) = path();
    let endpoint = Endpoint::naming("any");
    for permissions in [0o600, 0o666, 0o777] {
        let mut settings = settings_on(&path, &endpoint);
        settings.listeners[0].permissions = permissions;
        let _proxy = Proxy::start(settings, Arc::new(Nobody)).unwrap();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, permissions);
    }
}

/// A stop leaves nothing behind, and a file that has taken the place of ours in the meantime alone.
#[test]
fn a_stop_removes_its_own_file_and_no_other() {
    let (_folder, path) = path();
    let endpoint = Endpoint::naming("any");
    drop(World::with(&[&endpoint], on(&path)));
    assert!(!path.exists());

    let world = World::with(&[&endpoint], on(&path));
    fs::remove_file(&path).unwrap();
    let _successor = UnixListener::bind(&path).unwrap();
    drop(world);
    assert!(path.exists());
}

/// A socket that a killed process has left is replaced.
#[test]
fn a_dead_process_socket_is_replaced() {
    let (_folder, path) = path();
    let endpoint = Endpoint::echoing("echo");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let _world = World::with(&[&endpoint], on(&path));
    assert_eq!(exchange(connect(&path), b"hello"), b"hello");
}

/// A socket that somebody listens on is theirs, and who that is is said.
#[test]
fn a_live_socket_is_left_to_its_holder_who_is_named() {
    let (_folder, path) = path();
    let endpoint = Endpoint::naming("any");
    let _world = World::with(&[&endpoint], on(&path));
    let error = start_error(settings_on(&path, &endpoint));
    assert!(matches!(&error, StartError::AddressInUse { .. }));
    let holder = format!("(pid {})", std::process::id());
    assert!(error.to_string().contains(&holder), "{error}");
    connect(&path);
}

/// What is no stream socket is not ours to remove.
#[test]
fn what_is_no_stream_socket_is_left_alone() {
    let (folder, path) = path();
    let endpoint = Endpoint::naming("any");
    fs::write(&path, "precious").unwrap();
    let error = start_error(settings_on(&path, &endpoint));
    assert!(matches!(error, StartError::NotASocket { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");

    let other = folder.path().join("datagrams.sock");
    let _datagrams = UnixDatagram::bind(&other).unwrap();
    let error = start_error(settings_on(&other, &endpoint));
    assert!(matches!(error, StartError::AddressInUse { .. }), "{error}");

    let missing = folder.path().join("missing/front.sock");
    let error = start_error(settings_on(&missing, &endpoint)).to_string();
    assert!(error.contains("its directory exists"), "{error}");
}

/// Of several starts on one path at one moment exactly one has it, though all find a dead process's socket there.
#[test]
fn two_starts_at_one_moment_never_share_a_path() {
    const STARTS: usize = 6;
    let (_folder, path) = path();
    let endpoint = Endpoint::naming("any");
    let wanted = settings_on(&path, &endpoint);
    for round in 0..20 {
        drop(UnixListener::bind(&path).unwrap());
        let together = Barrier::new(STARTS);
        let start = || {
            together.wait();
            Proxy::start(wanted.clone(), Arc::new(Nobody))
        };
        let results: Vec<_> = thread::scope(|scope| {
            let starts: Vec<_> = (0..STARTS).map(|_| scope.spawn(start)).collect();
            starts.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let winners = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(winners, 1, "round {round}");
    }
}
