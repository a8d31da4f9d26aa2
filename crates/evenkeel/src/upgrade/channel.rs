//! The line between a process and the one that follows it: packets of JSON, each with the descriptors it speaks of.
//!
//! A pair of sockets of the kind SEQPACKET: a packet arrives whole or not at all, and the end of either process is seen by the
//! other. The new process gets its end as standard input, which every program has and none has to be told the number of. What
//! is said is in [`words`](super::words).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest packet.
const PACKET_BYTES_MAX: usize = 64 * 1024;
/// The most descriptors that go with one packet; the kernel takes 253.
pub(super) const DESCRIPTORS_MAX: usize = 64;

/// One end.
#[derive(Debug)]
pub(super) struct Channel {
    socket: OwnedFd,
}

/// What came.
pub(super) struct Packet<T> {
    pub(super) message: T,
    pub(super) descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// One's own end, and the other's.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (own, other) = net::socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok((Self { socket: own }, other))
    }

    /// The end that somebody else has made, if it is one.
    pub(super) fn of(socket: OwnedFd) -> Option<Self> {
        let is_one = sockopt::socket_domain(&socket).ok()? == AddressFamily::UNIX
            && sockopt::socket_type(&socket).ok()? == SocketType::SEQPACKET;
        is_one.then_some(Self { socket })
    }

    /// How long a packet may take to be taken, or to come; then the call fails with [`io::ErrorKind::WouldBlock`].
    pub(super) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.socket, Timeout::Send, Some(patience))?;
        sockopt::set_socket_timeout(&self.socket, Timeout::Recv, Some(patience))?;
        Ok(())
    }

    pub(super) fn send(
        &self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > PACKET_BYTES_MAX || descriptors.len() > DESCRIPTORS_MAX {
            return Err(io::Error::other("a packet is too large"));
        }
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let bytes = [IoSlice::new(&bytes)];
        net::sendmsg(&self.socket, &bytes, &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next packet; `None` when the other end is closed. Descriptors of a packet that cannot be read are closed.
    pub(super) fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<Packet<T>>> {
        let mut bytes = vec![0; PACKET_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = match net::recvmsg(&self.socket, &mut into, &mut control, flags) {
            // What the other end has not read when it is closed comes back as a reset.
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            received => received?,
        };
        let descriptors = taken_from(&mut control);
        if received.bytes == 0 {
            return Ok(None);
        }
        let message = serde_json::from_slice(&bytes[..received.bytes])?;
        Ok(Some(Packet {
            message,
            descriptors,
        }))
    }

    /// Ends it for both sides, whoever else has a copy of this end.
    pub(super) fn hang_up(&self) {
        // Only a line that is dead already refuses.
        let _ = net::shutdown(&self.socket, Shutdown::Both);
    }
}

fn taken_from(control: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    rights.flatten().collect()
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    /// A descriptor arrives with the words that it came with, and is another one for the same thing.
    #[test]
    fn descriptors_come_with_their_packet() {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel::of(theirs).unwrap();
        let (mut reader, writer) = io::pipe().unwrap();

        ours.send(&"first", &[]).unwrap();
        ours.send(&"second", &[writer.as_fd()]).unwrap();
        drop(writer);

        let first = theirs.receive::<String>().unwrap().unwrap();
        assert_eq!((&*first.message, first.descriptors.len()), ("first", 0));
        let mut second = theirs.receive::<String>().unwrap().unwrap();
        assert_eq!(second.message, "second");
        let mut copy = File::from(second.descriptors.remove(0));
        copy.write_all(b"through").unwrap();
        drop(copy);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }

    /// The other's end is seen, also when it left something unread; and one that is silent is not waited for.
    #[test]
    fn an_end_is_seen() {
        let (ours, theirs) = Channel::pair().unwrap();
        ours.set_patience(Duration::from_millis(1)).unwrap();
        let silent = ours.receive::<String>().err().unwrap();
        assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);

        ours.send(&"unread", &[]).unwrap();
        drop(theirs);

        assert!(ours.receive::<String>().unwrap().is_none());
    }

    /// Whatever else standard input may be, it is not taken for a line.
    #[test]
    fn other_things_are_no_line() {
        let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(Channel::of(stream.into()).is_none());
        assert!(Channel::of(File::open("/dev/null").unwrap().into()).is_none());
    }
}
