//! Files on an NFS server (`fs/nfs`, `net/sunrpc`, and the server itself).
//!
//! 1. Pages are collected into calls of `wsize` at most ([`pageio`]), which go over the network ([`rpc`]).
//! 2. The server has a written page in its memory at once ([`server`]); the page is under writeback no more
//!    but *unstable*, until a COMMIT has brought it to the server's disk ([`commit`]).
//! 3. What a turn of the flusher writes as a single call, with nothing to commit, goes to the disk at once.
//!
//! The page cache, the flusher and the throttling of writers are the same as for any device.

mod commit;
mod pageio;
mod rpc;
mod server;

pub(crate) use commit::{CommitInfo, nfs_commit_and_wait};
pub(crate) use pageio::How;
pub(crate) use rpc::{CallId, Calls};

use crate::device::{Completed, Dir, Served};
use crate::ids::{DeviceId, InodeId};
use crate::time::WaitQueue;
use crate::world::{Interrupt, World};
use lowmark_spec::machine::{Device, Machine, PAGE_SIZE};
use pageio::{Completion, PageIo};
use rpc::{Call, Priority, Procedure, Transport};
use server::Server;
use typed_index_collections::TiVec;

/// Most that may be under writeback to a server by itself, bytes (`nfs_init_writepagecache`).
const CONGESTION_MAX: u64 = 256 << 20;

/// What happens between the machine and a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    /// A call is at the server.
    Arrived(CallId),
    /// The disk of the server is idle.
    DiskDone,
    /// Pages in the server's memory may have become old.
    Expired,
    /// The reply to a call is here.
    Replied(CallId),
}

/// A server as its client sees it (`struct nfs_server`), and the server.
#[derive(Debug)]
struct Client {
    rpc: Transport,
    server: Server,
    /// Pages of a call at most.
    wsize: usize,
    /// Pages under writeback, and above how many that is too much.
    writeback: u64,
    congestion: u64,
    congested: bool,
    completions: Vec<Completion>,
    commits: u32,
    commit_pages_max: u64,
    /// Who waits for a COMMIT.
    waiters: WaitQueue,
}

impl Client {
    fn new(device: &Device, memory: u64) -> Option<Client> {
        let spec = device.server?;
        // nfs_congestion_kb
        let congestion = (16 * memory.isqrt()).min(CONGESTION_MAX / PAGE_SIZE);
        Some(Client {
            rpc: Transport::new(&spec),
            server: Server::new(device, &spec),
            wsize: (spec.wsize / PAGE_SIZE).max(1) as usize,
            writeback: 0,
            congestion,
            congested: false,
            completions: Vec::new(),
            commits: 0,
            commit_pages_max: 0,
            waiters: WaitQueue::default(),
        })
    }
}

/// Calls to a server and what became of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerCounts {
    pub(crate) calls: Calls,
    pub(crate) served: Served,
    /// Pages of the largest COMMIT.
    pub(crate) commit_pages_max: u64,
    /// Pages that the server wrote because a call waited for it.
    pub(crate) synced: u64,
}

/// All servers, by device; none for devices of the machine.
#[derive(Debug, Default)]
pub(crate) struct Nfs {
    clients: TiVec<DeviceId, Option<Client>>,
    any: bool,
    /// Calls that are being put together.
    pageio: Vec<PageIo>,
}

impl Nfs {
    /// The servers of a machine with so many pages (`totalram_pages`).
    pub(crate) fn new(machine: &Machine, memory: u64) -> Nfs {
        let devices = machine.devices.iter();
        let clients: TiVec<_, _> = devices.map(|device| Client::new(device, memory)).collect();
        Nfs {
            any: clients.iter().any(Option::is_some),
            clients,
            pageio: Vec::new(),
        }
    }

    /// Whether there is any.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// Whether a device is in a server.
    #[inline]
    pub(crate) fn is_remote(&self, device: DeviceId) -> bool {
        self.any && self.clients[device].is_some()
    }

    fn client(&mut self, device: DeviceId) -> Option<&mut Client> {
        self.clients[device].as_mut()
    }

    /// More is under writeback than the flusher should add to (`write_congested`).
    pub(crate) fn is_congested(&self, device: DeviceId) -> bool {
        let client = self.clients[device].as_ref();
        client.is_some_and(|client| client.congested)
    }

    /// What a server was asked and did.
    pub(crate) fn counts(&self, device: DeviceId) -> Option<ServerCounts> {
        let client = self.clients[device].as_ref()?;
        Some(ServerCounts {
            calls: client.rpc.counts,
            served: client.server.served,
            commit_pages_max: client.commit_pages_max,
            synced: client.server.synced,
        })
    }

    /// Pages that are in the memory of servers alone, with their files, and how many the servers count.
    pub(crate) fn volatile(&self) -> (Vec<(InodeId, u32)>, u64) {
        let servers = || self.clients.iter().flatten().map(|client| &client.server);
        let pages = servers().flat_map(Server::volatile).collect();
        (pages, servers().map(Server::dirty).sum())
    }
}

impl World {
    /// Sends a call.
    fn nfs_call(&mut self, device: DeviceId, call: Call, priority: Priority) {
        if let Some(client) = self.nfs.client(device) {
            client.rpc.add(call, priority);
            self.nfs_send(device);
        }
    }

    fn nfs_send(&mut self, device: DeviceId) {
        let now = self.sched.now();
        while let Some(client) = self.nfs.client(device)
            && let Some((id, after)) = client.rpc.send(now)
        {
            self.nfs_signal_after(after, device, Signal::Arrived(id));
        }
    }

    fn nfs_signal_after(&mut self, after: u64, device: DeviceId, signal: Signal) {
        self.sched
            .interrupt_after(after, Interrupt::Nfs { device, signal });
    }

    /// Deals with what happens.
    pub(crate) fn nfs_interrupt(&mut self, device: DeviceId, signal: Signal) {
        let Some(client) = self.nfs.client(device) else {
            return;
        };
        match signal {
            Signal::Arrived(id) => client.server.accept(id),
            Signal::DiskDone => client.server.disk_done(),
            Signal::Expired => {}
            Signal::Replied(id) => {
                let call = client.rpc.done(id);
                self.nfs_send(device);
                return self.nfs_replied(device, call);
            }
        }
        self.nfs_serve(device);
    }

    /// The server does what it can now.
    fn nfs_serve(&mut self, device: DeviceId) {
        let now = self.sched.now();
        let mut signals = Vec::new();
        let Some(client) = self.nfs.client(device) else {
            return;
        };
        let Client { rpc, server, .. } = client;
        // The disk may end a call at once, whose thread then takes the next.
        loop {
            if server.work(|id| rpc.call(id), now) {
                signals.push((server.expires_after(), Signal::Expired));
            }
            if let Some(time) = server.start_disk(&self.mm.inodes, now) {
                signals.push((time, Signal::DiskDone));
            }
            let mut idle = true;
            while let Some(id) = server.next_reply() {
                signals.push((rpc.reply(id, now), Signal::Replied(id)));
                idle = false;
            }
            if idle {
                break;
            }
        }
        for (after, signal) in signals {
            self.nfs_signal_after(after, device, signal);
        }
    }

    /// A reply is here.
    fn nfs_replied(&mut self, device: DeviceId, call: Call) {
        let completed = |dir| Completed { dir, failed: 0..0 };
        match call.procedure {
            Procedure::Read => self.end_io(&completed(Dir::Read), &call.pages),
            Procedure::Write { stable, completion } => {
                self.end_io(&completed(Dir::Write), &call.pages);
                let pages = call.pages.len() as u32;
                self.nfs_end_page_writeback(device, u64::from(pages));
                if !stable {
                    self.nfs_mark_commit(call.inode, call.first, pages);
                }
                if let Some(completion) = completion {
                    self.nfs_io_completion_put(device, completion);
                }
            }
            Procedure::Commit(number) => self.nfs_commit_done(call.inode, number),
        }
    }

    /// A file got shorter, or is gone: the server has nothing of it from `page` on.
    pub(crate) fn nfs_truncate(&mut self, inode: InodeId, page: u32) {
        let device = self.mm.inodes[inode].device;
        if self.nfs.is_remote(device)
            && let Some(client) = self.nfs.client(device)
        {
            client.server.forget(inode, page..u32::MAX);
        }
    }
}
