//! What has been read of a connection and not been used yet.
//!
//! Buffers are a worker's, and lent: a connection that waits for bytes holds none. A read always has a whole
//! large buffer before it; what is left of it when the connection goes to sleep is moved into one of its own size.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// What is read at once. No head can be larger.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;

/// What practically every head fits into.
const SMALL_BYTES: usize = 4 * 1024;

/// How many buffers of each size a worker keeps that nobody uses.
const SPARE_MAX: usize = 32;

/// What a buffer that has been written into may have grown to and still be kept.
const WRITTEN_BYTES_MAX: usize = 256 * 1024;

/// A worker's buffers that nobody uses.
#[derive(Default)]
pub(crate) struct Stock {
    small: RefCell<Vec<Box<[u8]>>>,
    large: RefCell<Vec<Box<[u8]>>>,
    /// For heads and chunks that are written.
    written: RefCell<Vec<Vec<u8>>>,
}

impl Stock {
    fn small(&self) -> Box<[u8]> {
        let spare = self.small.borrow_mut().pop();
        spare.unwrap_or_else(|| vec![0; SMALL_BYTES].into())
    }

    fn large(&self) -> Box<[u8]> {
        let spare = self.large.borrow_mut().pop();
        spare.unwrap_or_else(|| vec![0; LARGE_BYTES].into())
    }

    /// An empty buffer to write into.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.written.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes one back.
    pub(super) fn put_bytes(&self, mut buffer: Vec<u8>) {
        let mut spares = self.written.borrow_mut();
        let is_usual = (1..=WRITTEN_BYTES_MAX).contains(&buffer.capacity());
        if is_usual && spares.len() < SPARE_MAX {
            buffer.clear();
            spares.push(buffer);
        }
    }

    fn put(&self, buffer: Box<[u8]>) {
        let spares = match buffer.len() {
            SMALL_BYTES => &self.small,
            LARGE_BYTES => &self.large,
            _ => return,
        };
        let mut spares = spares.borrow_mut();
        if spares.len() < SPARE_MAX {
            spares.push(buffer);
        }
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Empty where nothing is kept.
    buffer: Box<[u8]>,
    begin: usize,
    end: usize,
}

impl Inbox {
    pub(crate) const fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// What has been read and not been used.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Nothing of it is used.
    pub(crate) fn clear(&mut self) {
        self.begin = 0;
        self.end = 0;
    }

    /// So many bytes have been used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.begin = self.end.min(self.begin + count);
        if self.begin == self.end {
            self.begin = 0;
            self.end = 0;
        }
    }

    /// Reads once, behind what is there. 0 is the end of the stream, or that [`LARGE_BYTES`] are there already.
    pub(crate) fn poll_fill(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        stock: &Stock,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.make_room(stock);
        let mut room = ReadBuf::new(&mut self.buffer[self.end..]);
        ready!(Pin::new(stream).poll_read(cx, &mut room))?;
        let count = room.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }

    fn make_room(&mut self, stock: &Stock) {
        if self.buffer.len() == LARGE_BYTES {
            if self.begin > 0 && self.end == LARGE_BYTES {
                self.buffer.copy_within(self.begin..self.end, 0);
                self.end -= self.begin;
                self.begin = 0;
            }
            return;
        }
        self.move_to(stock.large(), stock);
    }

    /// Before the connection sleeps: holds no larger buffer than it needs.
    pub(crate) fn settle(&mut self, stock: &Stock) {
        let length = self.end - self.begin;
        if length == 0 {
            stock.put(std::mem::take(self).buffer);
        } else if self.buffer.len() > SMALL_BYTES && length <= SMALL_BYTES {
            self.move_to(stock.small(), stock);
        }
    }

    fn move_to(&mut self, mut other: Box<[u8]>, stock: &Stock) {
        let length = self.end - self.begin;
        other[..length].copy_from_slice(self.bytes());
        stock.put(std::mem::replace(&mut self.buffer, other));
        self.begin = 0;
        self.end = length;
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn fill(inbox: &mut Inbox, stock: &Stock, mut bytes: &[u8]) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        match inbox.poll_fill(&mut bytes, stock, &mut cx) {
            Poll::Ready(Ok(count)) => count,
            other => panic!("{other:?}"),
        }
    }

    /// Little that is left moves into a small buffer, and nothing at all into none; the large one is another's.
    #[test]
    fn what_sleeps_holds_no_more_than_it_needs() {
        let (stock, mut inbox) = (Stock::default(), Inbox::default());
        assert_eq!(fill(&mut inbox, &stock, b"GET / HTTP/1.1\r\n"), 16);
        inbox.consume(4);
        inbox.settle(&stock);
        assert_eq!(inbox.bytes(), b"/ HTTP/1.1\r\n");
        assert_eq!(inbox.buffer.len(), SMALL_BYTES);
        assert_eq!(stock.large.borrow().len(), 1);

        inbox.consume(12);
        inbox.settle(&stock);
        assert_eq!(inbox.buffer.len(), 0);
    }

    /// Reading goes on behind what is there, whatever the buffer it is in, up to the bound.
    #[test]
    fn reading_goes_on_behind_what_is_there() {
        let (stock, mut inbox) = (Stock::default(), Inbox::default());
        fill(&mut inbox, &stock, b"one ");
        inbox.settle(&stock);
        fill(&mut inbox, &stock, b"two");
        assert_eq!(inbox.bytes(), b"one two");

        let long = vec![b'x'; LARGE_BYTES];
        assert_eq!(fill(&mut inbox, &stock, &long), LARGE_BYTES - 7);
        assert_eq!(fill(&mut inbox, &stock, &long), 0);
        inbox.consume(4);
        assert_eq!(fill(&mut inbox, &stock, &long), 4);
        assert_eq!(&inbox.bytes()[..4], b"twox");
    }
}
