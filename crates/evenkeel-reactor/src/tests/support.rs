//! What the tests share: a worker whose handler does what a test says, and a single stream with its peer.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::pipe::{PipeBudget, Pipes};
use crate::poller::{Batch, Poller, read_event};
use crate::{
    Clock, Fate, Gear, Handler, Inherited, Key, Lent, Listener, Mail, Mailbox, Origin,
    READ_BUFFER_BYTES, Readiness, Remote, Rest, Sharing, Slots, Stream, StreamOptions, Tag, Turn,
    Worker,
};

/// Only a fault makes anything wait that long.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What a test does with a connection when one of its sockets is ready.
pub(super) type OnReady = Box<dyn FnMut(&mut Turn<'_>, Key, &mut Stream, Readiness) -> Fate + Send>;

/// A connection of the test worker.
pub(super) struct Connection {
    key: Key,
    stream: Stream,
}

/// What tests tell a connection.
pub(super) enum Message {
    /// Report that it was reached.
    Greet(Sender<Key>),
    /// Set its timer, and report when it fires.
    Arm(Duration, Sender<Key>),
}

/// What tests tell their worker.
pub(super) enum Instruction {
    /// Report the keys of all connections.
    Keys(Sender<Vec<Key>>),
    /// Do nothing until something is sent.
    Hold(Receiver<()>),
    /// Accept on one more listener, and report.
    Listen(u32, Listener, SyncSender<()>),
    /// Close a listener, and report.
    StopListening(u32, SyncSender<()>),
    /// Give away duplicates of all sockets.
    Lend(SyncSender<Lent>),
    Finish,
}

struct TestHandler {
    on_ready: OnReady,
    fired: Option<Sender<Key>>,
}

impl Handler for TestHandler {
    type Connection = Connection;
    type Message = Message;
    type Instruction = Instruction;
    type Place = ();
    type Refusal = Infallible;

    fn accepted(
        &mut self,
        turn: &mut Turn<'_>,
        connections: &mut Slots<Connection>,
        _: u32,
        stream: Stream,
        _: Origin,
        (): (),
    ) {
        connections
            .insert_with(|key| {
                turn.watch(&stream, key, 0)
                    .map(|()| Connection { key, stream })
            })
            .unwrap();
    }

    fn place(&mut self, _: u32) -> Result<(), Infallible> {
        Ok(())
    }

    fn unused(&mut self, (): ()) {}

    fn rested(&mut self, _: &mut Turn<'_>, _: u32, _: Rest<Infallible>) {}

    fn went_on(&mut self, _: &mut Turn<'_>, _: u32) {}

    fn closed(&mut self, _: u32) {}

    fn ready(
        &mut self,
        turn: &mut Turn<'_>,
        connection: &mut Connection,
        _: Tag,
        readiness: Readiness,
    ) -> Fate {
        connection.stream.note(readiness);
        (self.on_ready)(turn, connection.key, &mut connection.stream, readiness)
    }

    fn resumed(&mut self, _: &mut Turn<'_>, _: &mut Connection) -> Fate {
        Fate::Keep
    }

    fn expired(&mut self, _: &mut Turn<'_>, connection: &mut Connection) -> Fate {
        if let Some(fired) = &self.fired {
            fired.send(connection.key).unwrap();
        }
        Fate::Remove
    }

    fn told(&mut self, turn: &mut Turn<'_>, connection: &mut Connection, message: Message) -> Fate {
        match message {
            Message::Greet(answer) => answer.send(connection.key).unwrap(),
            Message::Arm(delay, fired) => {
                self.fired = Some(fired);
                turn.arm(connection.key, turn.now.after(delay));
            }
        }
        Fate::Keep
    }

    fn instructed(
        &mut self,
        turn: &mut Turn<'_>,
        connections: &mut Slots<Connection>,
        instruction: Instruction,
    ) {
        match instruction {
            Instruction::Keys(answer) => answer.send(connections.keys()).unwrap(),
            Instruction::Hold(released) => released.recv_timeout(PATIENCE).unwrap(),
            Instruction::Listen(number, listener, done) => {
                turn.listen(number, listener).unwrap();
                turn.report(done);
            }
            Instruction::StopListening(number, done) => {
                turn.stop_listening(number);
                turn.report(done);
            }
            Instruction::Lend(to) => turn.lend(to),
            Instruction::Finish => turn.finish(),
        }
    }
}

/// A running worker with one listener.
pub(super) struct Running {
    pub(super) address: SocketAddr,
    pub(super) mailbox: Mailbox<Message, Instruction>,
    thread: JoinHandle<()>,
}

impl Running {
    pub(super) fn with(on_ready: OnReady) -> Self {
        let listener = listening();
        let address = listener.address().unwrap();
        let mailbox = Mailbox::new().unwrap();
        let handler = TestHandler {
            on_ready,
            fired: None,
        };
        let mut worker = Worker::new(handler, mailbox.clone(), Clock::start(), pipes(0)).unwrap();
        worker.listen(0, listener).unwrap();
        let thread = thread::spawn(move || worker.run().unwrap());
        Self {
            address,
            mailbox,
            thread,
        }
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(super) fn tell(&self, instruction: Instruction) {
        assert!(self.mailbox.post(Mail::Worker(instruction)).is_ok());
    }

    /// Gives an instruction that is reported on, and waits until it is carried out.
    pub(super) fn have(&self, instruction: impl FnOnce(SyncSender<()>) -> Instruction) {
        let (sender, done) = sync_channel(1);
        self.tell(instruction(sender));
        done.recv_timeout(PATIENCE).unwrap();
    }

    /// The keys of all connections, once there are so many.
    pub(super) fn keys(&self, count: usize) -> Vec<Key> {
        loop {
            let (sender, receiver) = channel();
            self.tell(Instruction::Keys(sender));
            let keys = receiver.recv_timeout(PATIENCE).unwrap();
            if keys.len() == count {
                return keys;
            }
        }
    }

    /// Duplicates of the sockets of one listener.
    pub(super) fn lent(&self, number: u32) -> Vec<Inherited> {
        let (sender, lent) = sync_channel(1);
        self.tell(Instruction::Lend(sender));
        let lent = lent.recv_timeout(PATIENCE).unwrap().unwrap();
        let of_it = lent.into_iter().filter(|loan| loan.number == number);
        of_it
            .map(|loan| Inherited::examine(loan.socket).unwrap())
            .collect()
    }

    /// Ends the worker, which its connections must let it do.
    pub(super) fn finish(self) {
        self.tell(Instruction::Finish);
        self.join();
    }

    /// Waits until the worker has ended.
    pub(super) fn join(self) {
        self.thread.join().unwrap();
    }
}

/// A listener on a port of the kernel's choice.
pub(super) fn listening() -> Listener {
    let loopback = ([127, 0, 0, 1], 0).into();
    Listener::bind(loopback, Sharing::Workers, StreamOptions::default()).unwrap()
}

/// A stream of the reactor and its peer, and a poller that tells the stream what the kernel says.
pub(super) struct Pair {
    pub(super) stream: Stream,
    pub(super) peer: TcpStream,
    poller: Poller,
}

impl Pair {
    pub(super) fn connected() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let remote = Remote::Ip(listener.local_addr().unwrap());
        let stream = Stream::connect(remote, StreamOptions::default()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        peer.set_write_timeout(Some(PATIENCE)).unwrap();
        let poller = Poller::new().unwrap();
        poller.watch(&stream, Key::from_u64(0), 0).unwrap();
        let mut pair = Self {
            stream,
            peer,
            poller,
        };
        pair.note_until(Stream::is_writable);
        pair
    }

    /// Takes in the events that are there.
    pub(super) fn note_now(&mut self) {
        let mut batch = Batch::new();
        self.poller.wait(&mut batch, Some(Duration::ZERO)).unwrap();
        for event in &batch {
            self.stream.note(read_event(event).1);
        }
    }

    /// Takes in events until the stream is so.
    pub(super) fn note_until(&mut self, is_so: impl Fn(&Stream) -> bool) {
        while !is_so(&self.stream) {
            self.note_events();
        }
    }

    /// Takes in the next events, of which there must be some.
    pub(super) fn note_events(&mut self) {
        let mut batch = Batch::new();
        self.poller.wait(&mut batch, Some(PATIENCE)).unwrap();
        assert!(!batch.is_empty(), "the kernel says nothing more");
        for event in &batch {
            self.stream.note(read_event(event).1);
        }
    }
}

/// A buffer like a worker's.
pub(super) fn buffer() -> Vec<u8> {
    vec![0; READ_BUFFER_BYTES]
}

/// At most so many pipes.
pub(super) fn pipes(most: usize) -> Pipes {
    Pipes::new(PipeBudget::new(most))
}

/// A worker's gear with these pipes.
pub(super) fn gear(pipes: Pipes) -> Gear {
    Gear {
        buffer: buffer().into_boxed_slice(),
        pipes,
    }
}
