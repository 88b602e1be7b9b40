//! Input that may have no end, such as `trace_pipe`: it ends at a SIGINT.
//!
//! A thread reads, because nothing wakes who waits in a read; what it read and the signal come in one queue, so that
//! what was read before the signal is given before the end.

use crate::interrupt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes read at a time.
const CHUNK: usize = 64 << 10;
/// Chunks that may wait.
const WAITING: usize = 16;

/// What the thread, or the signal, says.
type Message = io::Result<Vec<u8>>;

/// A file that ends at a SIGINT.
pub(crate) struct Endless {
    messages: Receiver<Message>,
    chunk: Vec<u8>,
    given: usize,
    ended: bool,
}

impl Endless {
    /// Reads a file from where it stands; whether it was interrupted is known once it has been read.
    pub(crate) fn new(file: File) -> (Endless, Arc<AtomicBool>) {
        let (sender, messages) = sync_channel(WAITING);
        let interrupted = Arc::new(AtomicBool::new(false));
        let (end, flag) = (sender.clone(), Arc::clone(&interrupted));
        interrupt::instead_of_end(move || {
            flag.store(true, Ordering::SeqCst);
            // Who has stopped reading needs no end.
            let _ = end.send(Ok(Vec::new()));
        });
        std::thread::spawn(move || pass(file, &sender));
        let endless = Endless {
            messages,
            chunk: Vec::new(),
            given: 0,
            ended: false,
        };
        (endless, interrupted)
    }
}

/// Passes on what can be read, up to the end or an error.
fn pass(mut file: File, sender: &SyncSender<Message>) {
    loop {
        let mut chunk = vec![0; CHUNK];
        let message = match file.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(count) => {
                chunk.truncate(count);
                Ok(chunk)
            }
            Err(error) => Err(error),
        };
        let last = message.as_ref().map_or(true, Vec::is_empty);
        if sender.send(message).is_err() || last {
            return;
        }
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        interrupt::nothing_instead();
    }
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.chunk.len() && !self.ended {
            // Without a sender there is nothing more to come.
            self.chunk = self.messages.recv().unwrap_or(Ok(Vec::new()))?;
            self.given = 0;
            self.ended = self.chunk.is_empty();
        }
        let rest = &self.chunk[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn all_is_given_up_to_the_end() {
        let bytes: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&bytes).expect("written");
        io::Seek::rewind(&mut file).expect("rewound");
        let (mut endless, interrupted) = Endless::new(file);
        let mut read = Vec::new();
        endless.read_to_end(&mut read).expect("read");
        assert!(read == bytes);
        assert!(!interrupted.load(Ordering::SeqCst));
        assert_eq!(endless.read(&mut [0; 8]).expect("the end again"), 0);
    }
}
