//! Other settings for a proxy that runs.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};

use evenkeel_core::units::Weight;
use evenkeel_proxy::settings::Settings;
use evenkeel_proxy::{ReloadError, StartError};

use crate::world::{Endpoint, World, exchange, patient, read_all, read_exactly, settings};

fn connect(address: SocketAddr) -> TcpStream {
    patient(TcpStream::connect(address).unwrap())
}

/// Who serves the next client there, told by an endpoint that says its name.
fn served_by(address: SocketAddr) -> String {
    String::from_utf8(exchange(&mut connect(address), b"")).unwrap()
}

fn address_of(world: &World, name: &str) -> SocketAddr {
    let listeners = world.proxy.listeners();
    let named = listeners.iter().find(|listener| &*listener.name == name);
    named
        .expect("a listener of that name")
        .address
        .ip()
        .unwrap()
}

/// One more listener for the same cluster, on a port of the kernel's choice.
fn add_listener(settings: &mut Settings, name: &str) {
    let mut listener = settings.listeners[0].clone();
    listener.name = name.into();
    settings.listeners.push(listener);
}

/// A session goes on with its endpoint when that is removed; whoever comes next gets the new one.
#[test]
fn a_removed_endpoint_keeps_its_sessions() {
    let (old, new) = (Endpoint::echoing("old"), Endpoint::naming("new"));
    let world = World::of(&[&old]);
    let mut client = world.connect();
    client.write_all(b"one").unwrap();
    read_exactly(&mut client, 3);

    world.proxy.reload(settings(&[&new])).unwrap();

    assert_eq!(served_by(world.address()), "new");
    client.write_all(b"two").unwrap();
    assert_eq!(read_exactly(&mut client, 3), b"two");
    assert_eq!(world.endpoint("old").in_flight, 1);
}

/// The version tells whether anything has changed.
#[test]
fn the_version_grows_with_each_change() {
    let endpoint = Endpoint::naming("a");
    let world = World::of(&[&endpoint]);
    let before = world.proxy.version();

    let nothing = world.proxy.reload(settings(&[&endpoint])).unwrap();
    assert!(nothing.is_empty());
    assert_eq!(world.proxy.version(), before);

    let mut heavier = settings(&[&endpoint]);
    heavier.clusters[0].spec.endpoints[0].weight = Weight::new(7).unwrap();
    world.proxy.reload(heavier).unwrap();
    assert!(world.proxy.version() > before);
    assert_eq!(world.endpoint("a").weight.get(), 7);
}

/// A listener is added, serves, and is removed; its session goes on and is counted to its end.
#[test]
fn listeners_come_and_go() {
    let endpoint = Endpoint::echoing("echo");
    let world = World::of(&[&endpoint]);
    let mut two = settings(&[&endpoint]);
    add_listener(&mut two, "second");
    world.proxy.reload(two).unwrap();
    let second = address_of(&world, "second");
    let mut client = connect(second);
    client.write_all(b"one").unwrap();
    read_exactly(&mut client, 3);

    world.proxy.reload(settings(&[&endpoint])).unwrap();

    assert!(TcpStream::connect(second).is_err());
    assert_eq!(world.proxy.listeners().len(), 1);
    client.write_all(b"two").unwrap();
    assert_eq!(read_exactly(&mut client, 3), b"two");
    assert_eq!(world.proxy.sessions(), 1);
    drop(client);
    assert_eq!(&*world.next_record().listener, "second");
}

/// Another name, target and timeout leave the address to whom it was: the same sockets serve, by the new settings.
#[test]
fn a_listener_changes_without_its_sockets() {
    let (old, new) = (Endpoint::naming("old"), Endpoint::naming("new"));
    let world = World::of(&[&old]);
    let address = world.address();
    let mut changed = settings(&[&old]);
    let mut other = settings(&[&new]).clusters.remove(0);
    other.spec.name = "other".into();
    changed.clusters.push(other);
    changed.listeners[0].name = "renamed".into();
    changed.listeners[0].to = Some("other".into());

    world.proxy.reload(changed).unwrap();

    assert_eq!(address_of(&world, "renamed"), address);
    assert_eq!(served_by(address), "new");
    assert_eq!(&*world.next_record().listener, "renamed");
}

/// One of two new addresses is a stranger's: nothing changes, and the other address is free again.
#[test]
fn a_bind_that_fails_changes_nothing() {
    let (old, new) = (Endpoint::naming("old"), Endpoint::naming("new"));
    let world = World::of(&[&old]);
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut changed = settings(&[&new]);
    for (name, bind) in [("free", free), ("taken", stranger.local_addr().unwrap())] {
        add_listener(&mut changed, name);
        changed.listeners.last_mut().unwrap().bind = bind.into();
    }
    let before = world.proxy.version();

    let error = world.proxy.reload(changed).unwrap_err();

    assert!(
        matches!(&error, ReloadError::Start(StartError::AddressInUse { listener, .. }) if &**listener == "taken"),
        "{error}"
    );
    assert_eq!(world.proxy.version(), before);
    assert_eq!(served_by(world.address()), "old");
    drop(TcpListener::bind(free).expect("it is free again"));
}

/// A listener moves from one address to all of them, on the same port.
#[test]
fn an_address_may_become_a_wildcard() {
    let endpoint = Endpoint::naming("a");
    let world = World::of(&[&endpoint]);
    let port = world.address().port();
    let mut wide = settings(&[&endpoint]);
    wide.listeners[0].bind = SocketAddr::from(([0, 0, 0, 0], port)).into();

    world.proxy.reload(wide).unwrap();

    assert_eq!(served_by(([127, 0, 0, 1], port).into()), "a");
    assert_eq!(served_by(([127, 0, 0, 2], port).into()), "a");
}

/// A cluster that is removed and added again while a session uses it is the same one: its limit holds over both lives.
#[test]
fn a_cluster_that_comes_back_in_time_goes_on() {
    let mut endpoint = Endpoint::naming("a");
    endpoint.max_connections = Some(1);
    let other = Endpoint::naming("b");
    let world = World::of(&[&endpoint]);
    let mut client = world.connect();
    read_exactly(&mut client, 1);
    let mut without = settings(&[&other]);
    without.clusters[0].spec.name = "other".into();
    without.listeners[0].to = Some("other".into());
    world.proxy.reload(without).unwrap();
    assert_eq!(served_by(world.address()), "b");

    world.proxy.reload(settings(&[&endpoint])).unwrap();

    let mut waiting = world.connect();
    crate::world::eventually("the second one waits", || {
        world.proxy.clusters()[0].status(world.proxy.now()).waiting == 1
    });
    drop(client);
    waiting.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut waiting), b"a");
}

/// Once it accepts nothing more, a proxy takes no other settings.
#[test]
fn a_reload_while_stopping_is_refused() {
    let endpoint = Endpoint::naming("a");
    let world = World::of(&[&endpoint]);

    world.proxy.drain();

    let refused = world.proxy.reload(settings(&[]));
    assert!(matches!(refused, Err(ReloadError::Stopping)));
}
