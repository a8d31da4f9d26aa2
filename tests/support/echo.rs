//! An echo endpoint in a process of its own, for tests that need more descriptors than one process may have.
//!
//! It is this test program, started a second time to run nothing but [`echo_endpoint_process`].

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::process::{self, Process};
use super::{client, ports, wait};

const ADDRESS_VARIABLE: &str = "EVENKEEL_TEST_ECHO_ADDRESS";

/// The listener's own event; connections are numbered by their descriptors, which are never this large.
const LISTENER: u64 = u64::MAX;

/// The echo endpoint; it ends when dropped.
pub(crate) struct EchoProcess {
    pub(crate) address: SocketAddr,
    _process: Process,
}

impl EchoProcess {
    pub(crate) fn start() -> Self {
        let address = ports::free();
        let itself = std::env::current_exe().expect("a test program has a path");
        let mut command = process::command(itself);
        command
            .args([
                "--ignored",
                "--exact",
                "support::echo::echo_endpoint_process",
            ])
            .env(ADDRESS_VARIABLE, address.to_string())
            .stdout(std::process::Stdio::null());
        let process = Process::start(command);
        wait::until_so("the echo endpoint listens", || {
            client::try_connect(address).is_ok()
        });
        Self {
            address,
            _process: process,
        }
    }
}

#[test]
#[ignore = "not a test: EchoProcess starts it as a process of its own"]
fn echo_endpoint_process() {
    let address = std::env::var(ADDRESS_VARIABLE).expect("EchoProcess sets it");
    raise_descriptor_limit();
    let listener = TcpListener::bind(&address).expect("the address is free");
    serve(&listener).expect("epoll works");
}

/// Raises the soft limit of this process to its hard limit.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("a soft limit may be raised");
}

/// One thread for all connections, for ever.
fn serve(listener: &TcpListener) -> io::Result<()> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(
        &poll,
        listener,
        EventData::new_u64(LISTENER),
        EventFlags::IN,
    )?;
    let mut connections = HashMap::new();
    let mut events = Vec::with_capacity(1024);
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            match event.data.u64() {
                LISTENER => accept(&poll, listener, &mut connections)?,
                number => echo_some(&mut connections, number),
            }
        }
    }
}

fn accept(
    poll: &impl std::os::fd::AsFd,
    listener: &TcpListener,
    connections: &mut HashMap<u64, TcpStream>,
) -> io::Result<()> {
    let (stream, _) = listener.accept()?;
    let number = stream.as_raw_fd().unsigned_abs().into();
    epoll::add(poll, &stream, EventData::new_u64(number), EventFlags::IN)?;
    connections.insert(number, stream);
    Ok(())
}

/// Closing a descriptor takes it out of the poll.
fn echo_some(connections: &mut HashMap<u64, TcpStream>, number: u64) {
    let Some(stream) = connections.get_mut(&number) else {
        return;
    };
    let mut bytes = [0; 4096];
    let echoed = match stream.read(&mut bytes) {
        Ok(0) | Err(_) => false,
        Ok(count) => stream.write_all(&bytes[..count]).is_ok(),
    };
    if !echoed {
        connections.remove(&number);
    }
}
