//! The line between a process and the one that follows it: packets of JSON, each with the descriptors it speaks of.
//!
//! A pair of sockets of the kind SEQPACKET: a packet arrives whole or not at all, and the end of either process is seen by the
//! other. The new process gets its end as standard input, which every program has and none has to be told the number of. What
//! is said is in [`words`](super::words).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
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
    /// How long a packet may take to be taken, or to come.
    patience: Option<Duration>,
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
        Ok((Self::with(own), other))
    }

    /// The end that somebody else has made, if it is one.
    pub(super) fn of(socket: OwnedFd) -> Option<Self> {
        let is_one = sockopt::socket_domain(&socket).ok()? == AddressFamily::UNIX
            && sockopt::socket_type(&socket).ok()? == SocketType::SEQPACKET;
        is_one.then(|| Self::with(socket))
    }

    const fn with(socket: OwnedFd) -> Self {
        let patience = None;
        Self { socket, patience }
    }

    /// How long a packet may take to be taken, or to come; then the call fails with [`io::ErrorKind::WouldBlock`].
    pub(super) const fn set_patience(&mut self, patience: Duration) {
        self.patience = Some(patience);
    }

    pub(super) fn send(
        &self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let deadline = self.deadline();
        loop {
            self.wait_for(PollFlags::OUT, deadline)?;
            match self.send_now(message, descriptors) {
                Err(error) if is_to_be_tried_again(&error) => {}
                sent => return sent,
            }
        }
    }

    /// The same, without waiting for room.
    pub(super) fn send_now(
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
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        net::sendmsg(&self.socket, &bytes, &mut control, flags)?;
        Ok(())
    }

    /// The next packet; `None` when the other end is closed. Descriptors of a packet that cannot be read are closed.
    pub(super) fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<Packet<T>>> {
        let deadline = self.deadline();
        loop {
            self.wait_for(PollFlags::IN, deadline)?;
            match self.receive_now() {
                Err(error) if is_to_be_tried_again(&error) => {}
                received => return received,
            }
        }
    }

    /// The same, without waiting for one.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`]: there is none.
    pub(super) fn receive_now<T: DeserializeOwned>(&self) -> io::Result<Option<Packet<T>>> {
        let mut bytes = vec![0; PACKET_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = net::recvmsg(&self.socket, &mut into, &mut control, flags)?;
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

    /// Waits for one side of it, or for its end.
    fn wait_for(&self, what: PollFlags, deadline: Option<Instant>) -> io::Result<()> {
        let mut polled = [PollFd::new(&self.socket, what)];
        persist(deadline, |left| poll(&mut polled, left))
    }

    fn deadline(&self) -> Option<Instant> {
        self.patience.map(|patience| Instant::now() + patience)
    }

    /// Says a last word, unless that would have to wait, and ends it for both sides.
    pub(super) fn hang_up_with(&self, word: &impl Serialize) {
        // Whoever is gone needs none.
        let _ = self.send_now(word, &[]);
        self.hang_up();
    }

    /// Ends it for both sides, whoever else has a copy of this end.
    fn hang_up(&self) {
        // Only a line that is dead already refuses.
        let _ = net::shutdown(&self.socket, Shutdown::Both);
    }
}

/// What the other end has not read when it is closed comes back as a reset, once, and before what it has said last.
fn is_to_be_tried_again(error: &io::Error) -> bool {
    let again = [Errno::INTR, Errno::AGAIN, Errno::CONNRESET];
    again
        .into_iter()
        .any(|again| error.raw_os_error() == Some(again.raw_os_error()))
}

/// Waits until something is there. A signal that comes meanwhile is no reason to give up, and wins no time.
fn persist(
    deadline: Option<Instant>,
    mut poll: impl FnMut(Option<&Timespec>) -> rustix::io::Result<usize>,
) -> io::Result<()> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left
            .map(Timespec::try_from)
            .transpose()
            .map_err(io::Error::other)?;
        match poll(left.as_ref()) {
            Ok(0) => return Err(Errno::AGAIN.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) if deadline.is_none_or(|deadline| Instant::now() < deadline) => {}
            Err(Errno::INTR) => return Err(Errno::AGAIN.into()),
            Err(error) => return Err(error.into()),
        }
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
        let (mut ours, theirs) = Channel::pair().unwrap();
        ours.set_patience(Duration::from_millis(1));
        let silent = ours.receive::<String>().err().unwrap();
        assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);

        ours.send(&"unread", &[]).unwrap();
        drop(theirs);

        assert!(ours.receive::<String>().unwrap().is_none());
    }

    /// The last word is heard before the end, also by one whose own words were not heard.
    #[test]
    fn a_last_word_is_heard() {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel::of(theirs).unwrap();
        theirs.send(&"unread", &[]).unwrap();

        ours.hang_up_with(&"farewell");
        drop(ours);

        let heard = theirs.receive::<String>().unwrap().unwrap();
        assert_eq!(heard.message, "farewell");
        assert!(theirs.receive::<String>().unwrap().is_none());
    }

    /// Signals do not end a wait, and what is waited for is still seen.
    #[test]
    fn a_signal_ends_no_wait() {
        let mut signals = 3;
        let poll = |_: Option<&Timespec>| {
            if signals == 0 {
                return Ok(1);
            }
            signals -= 1;
            Err(Errno::INTR)
        };
        persist(Some(Instant::now() + Duration::from_hours(1)), poll).unwrap();
        assert_eq!(signals, 0);
    }

    /// However many signals come, a wait ends at its deadline.
    #[test]
    fn signals_do_not_prolong_a_wait() {
        let storm = |_: Option<&Timespec>| Err(Errno::INTR);
        let error = persist(Some(Instant::now()), storm).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    /// Whatever else standard input may be, it is not taken for a line.
    #[test]
    fn other_things_are_no_line() {
        let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(Channel::of(stream.into()).is_none());
        assert!(Channel::of(File::open("/dev/null").unwrap().into()).is_none());
    }
}
