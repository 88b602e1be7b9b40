//! Calls on their way to the server and back (`net/sunrpc`).
//!
//! 1. A call takes a slot, or waits in the backlog: the higher its priority the earlier it goes, and among
//!    equals the oldest (`xprt_reserve`).
//! 2. Its data go over the network one call after another, and half a round trip later it is there.
//! 3. The reply comes back the same way, and the slot is free.

use crate::ids::InodeId;
use crate::mm::types::Pfn;
use crate::time::Nanos;
use lowmark_spec::machine::Server;
use std::collections::VecDeque;

/// Index of a call.
pub(crate) type CallId = u32;

/// What is asked of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Procedure {
    Read,
    /// To the disk before the reply (`NFS_FILE_SYNC`), or only to the server's memory (`NFS_UNSTABLE`).
    Write {
        stable: bool,
        /// The turn of the inode that it belongs to, if somebody waits for the end of that.
        completion: Option<usize>,
    },
    /// With its number, which the pages that it is for have.
    Commit(u32),
}

/// A call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) procedure: Procedure,
    pub(super) inode: InodeId,
    /// First page of the file.
    pub(super) first: u32,
    /// Its pages, contiguous in the file.
    pub(super) pages: Vec<Pfn>,
}

/// How urgent a call is (`RPC_PRIORITY_*`), the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    High,
    Normal,
    Low,
}

/// Calls since the run began, and what they moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) stable_writes: u64,
    pub(crate) commits: u64,
}

/// The connection to a server (`struct rpc_xprt`).
#[derive(Debug)]
pub(super) struct Transport {
    slots: u32,
    in_flight: u32,
    backlog: [VecDeque<CallId>; 3],
    /// When the way there and the way back are free for the next data.
    free: [Nanos; 2],
    one_way: Nanos,
    page: Nanos,
    calls: Vec<Call>,
    unused: Vec<CallId>,
    pub(super) counts: Calls,
}

impl Transport {
    pub(super) fn new(server: &Server) -> Transport {
        Transport {
            slots: server.slots,
            in_flight: 0,
            backlog: Default::default(),
            free: [0; 2],
            one_way: server.round_trip_ns / 2,
            page: server.page_ns,
            calls: Vec::new(),
            unused: Vec::new(),
            counts: Calls::default(),
        }
    }

    /// A call that is under way or waits.
    pub(super) fn call(&self, id: CallId) -> &Call {
        &self.calls[id as usize]
    }

    /// `rpc_run_task`: it goes when there is a slot.
    pub(super) fn add(&mut self, call: Call, priority: Priority) {
        match call.procedure {
            Procedure::Read => self.counts.reads += 1,
            Procedure::Write { stable, .. } => {
                self.counts.writes += 1;
                self.counts.stable_writes += u64::from(stable);
            }
            Procedure::Commit(_) => self.counts.commits += 1,
        }
        let id = match self.unused.pop() {
            Some(id) => {
                self.calls[id as usize] = call;
                id
            }
            None => {
                self.calls.push(call);
                self.calls.len() as CallId - 1
            }
        };
        self.backlog[priority as usize].push_back(id);
    }

    /// The next call that has a slot, and how long it takes to the server.
    pub(super) fn send(&mut self, now: Nanos) -> Option<(CallId, Nanos)> {
        if self.in_flight == self.slots {
            return None;
        }
        let id = self.backlog.iter_mut().find_map(VecDeque::pop_front)?;
        self.in_flight += 1;
        let call = &self.calls[id as usize];
        let pages = match call.procedure {
            Procedure::Write { .. } => call.pages.len(),
            Procedure::Read | Procedure::Commit(_) => 0,
        };
        Some((id, self.carry(0, pages, now)))
    }

    /// How long the reply to a call takes back.
    pub(super) fn reply(&mut self, id: CallId, now: Nanos) -> Nanos {
        let call = &self.calls[id as usize];
        let pages = match call.procedure {
            Procedure::Read => call.pages.len(),
            Procedure::Write { .. } | Procedure::Commit(_) => 0,
        };
        self.carry(1, pages, now)
    }

    /// Time until so many pages are at the other end, behind all that went that way before.
    fn carry(&mut self, direction: usize, pages: usize, now: Nanos) -> Nanos {
        let free = &mut self.free[direction];
        *free = (*free).max(now) + pages as Nanos * self.page;
        *free - now + self.one_way
    }

    /// The reply has arrived: the slot is free, and the call is what it was for.
    pub(super) fn done(&mut self, id: CallId) -> Call {
        self.in_flight -= 1;
        self.unused.push(id);
        let call = &mut self.calls[id as usize];
        let none = Call {
            procedure: Procedure::Read,
            inode: call.inode,
            first: 0,
            pages: Vec::new(),
        };
        std::mem::replace(call, none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Server = Server {
        round_trip_ns: 200,
        page_ns: 10,
        slots: 2,
        wsize: 1 << 20,
        threads: 8,
        ram: 1 << 30,
    };

    fn write(pages: usize) -> Call {
        Call {
            procedure: Procedure::Write {
                stable: false,
                completion: None,
            },
            inode: InodeId::from(0),
            first: 0,
            pages: vec![0; pages],
        }
    }

    #[test]
    fn data_queue_for_the_network_and_calls_for_slots() {
        let mut transport = Transport::new(&SERVER);
        for _ in 0..3 {
            transport.add(write(4), Priority::Low);
        }
        assert_eq!(transport.send(0), Some((0, 40 + 100)));
        assert_eq!(transport.send(0), Some((1, 80 + 100)));
        assert_eq!(transport.send(0), None);
        assert_eq!(transport.reply(0, 140), 100);
        transport.done(0);
        assert_eq!(transport.send(240), Some((2, 40 + 100)));
    }

    #[test]
    fn what_is_urgent_overtakes_what_has_no_slot() {
        let mut transport = Transport::new(&SERVER);
        transport.add(write(4), Priority::Low);
        transport.add(
            Call {
                procedure: Procedure::Commit(1),
                ..write(0)
            },
            Priority::Normal,
        );
        assert_eq!(transport.send(0), Some((1, 100)));
        assert_eq!(transport.send(0), Some((0, 40 + 100)));
    }
}
