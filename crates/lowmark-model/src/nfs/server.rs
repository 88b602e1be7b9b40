//! The server: its memory, its disk, and the threads of nfsd.
//!
//! 1. A thread takes the oldest call. An unstable write is done when its pages are in memory, but waits while
//!    a fifth of memory is dirty.
//! 2. A COMMIT, or a stable write, keeps its thread until all pages of the file that are dirty then (of the
//!    write: its own) are on the disk, and the log after them.
//! 3. Above a tenth of memory, or when a file has been dirty for 30 s, the server writes of its own: the file
//!    that has been dirty longest, from its first dirty page on.
//! 4. The disk works off one command at a time: reads, then what calls wait for, oldest first, then what
//!    nobody waits for.
//!
//! A file lies on the disk where its [`Extents`](crate::fs::Extents) say.

use super::rpc::{Call, CallId, Procedure};
use crate::device::{Dir, Disk, Served};
use crate::ids::InodeId;
use crate::mm::files::inode::Inode;
use crate::time::{Nanos, SECOND};
use lowmark_spec::machine::{Device, PAGE_SIZE, Server as Spec};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use typed_index_collections::TiSlice;

/// `dirty_expire_centisecs` of the server.
const EXPIRE: Nanos = 30 * SECOND;
/// Largest command that its disk gets, bytes, if the machine does not say.
const COMMAND: u64 = 512 << 10;

/// What of a file is in the server's memory alone.
#[derive(Debug, Default)]
struct Dirty {
    pages: BTreeSet<u32>,
    since: Nanos,
}

/// A call that keeps its thread until the disk has done its part.
#[derive(Debug)]
struct Job {
    call: CallId,
    dir: Dir,
    inode: InodeId,
    /// What is still to be read or written.
    pages: BTreeSet<u32>,
    /// The log is to be written after the pages.
    log: bool,
}

/// What the disk does.
#[derive(Debug)]
struct Command {
    dir: Dir,
    inode: InodeId,
    /// Pages of the file, none of the log.
    pages: std::ops::Range<u32>,
}

/// A server.
#[derive(Debug)]
pub(super) struct Server {
    disk: Disk,
    /// Pages of a command at most.
    command_pages: u32,
    /// Where its file system has the log: in the middle of the disk.
    log: u64,
    threads: u32,
    busy: u32,
    /// Calls that no thread has taken yet.
    waiting: VecDeque<CallId>,
    /// Writes that wait until less is dirty; each has a thread.
    held: VecDeque<CallId>,
    jobs: VecDeque<Job>,
    files: BTreeMap<InodeId, Dirty>,
    /// Pages in memory alone.
    dirty: u64,
    background: u64,
    limit: u64,
    command: Option<Command>,
    /// Calls that are done.
    replies: VecDeque<CallId>,
    /// Pages written for COMMITs and stable writes.
    pub(super) synced: u64,
    pub(super) served: Served,
}

impl Server {
    pub(super) fn new(device: &Device, spec: &Spec) -> Server {
        let memory = spec.ram / PAGE_SIZE;
        Server {
            disk: Disk::new(device),
            command_pages: (device.max_request.unwrap_or(COMMAND) / PAGE_SIZE)
                .clamp(1, u64::from(u32::MAX)) as u32,
            log: device.size / PAGE_SIZE / 2,
            threads: spec.threads,
            busy: 0,
            waiting: VecDeque::new(),
            held: VecDeque::new(),
            jobs: VecDeque::new(),
            files: BTreeMap::new(),
            dirty: 0,
            background: memory / 10,
            limit: memory / 5,
            command: None,
            replies: VecDeque::new(),
            synced: 0,
            served: Served::default(),
        }
    }

    /// A call has arrived.
    pub(super) fn accept(&mut self, id: CallId) {
        self.waiting.push_back(id);
    }

    /// A call that is done.
    pub(super) fn next_reply(&mut self) -> Option<CallId> {
        self.replies.pop_front()
    }

    /// Threads take calls as long as there are some of either. True if a file became dirty, so that in
    /// [`EXPIRE`] there may be something to write.
    pub(super) fn work<'a>(&mut self, call: impl Fn(CallId) -> &'a Call, now: Nanos) -> bool {
        let files = self.files.len();
        while self.dirty <= self.limit
            && let Some(id) = self.held.pop_front()
        {
            self.absorb(call(id), now);
            self.finish(id);
        }
        while self.busy < self.threads
            && let Some(id) = self.waiting.pop_front()
        {
            self.busy += 1;
            self.begin(id, call(id), now);
        }
        self.files.len() > files
    }

    /// How long until dirty pages are old.
    pub(super) fn expires_after(&self) -> Nanos {
        EXPIRE
    }

    fn begin(&mut self, id: CallId, call: &Call, now: Nanos) {
        let own = call.first..call.first + call.pages.len() as u32;
        let pages = match call.procedure {
            Procedure::Write { stable: false, .. } if self.dirty > self.limit => {
                return self.held.push_back(id);
            }
            Procedure::Write { stable: false, .. } => {
                self.absorb(call, now);
                return self.finish(id);
            }
            Procedure::Write { stable: true, .. } => {
                self.forget(call.inode, own.clone());
                self.dirty += own.len() as u64;
                own.collect()
            }
            Procedure::Read => own.collect(),
            Procedure::Commit(_) => self.files.remove(&call.inode).unwrap_or_default().pages,
        };
        let read = call.procedure == Procedure::Read;
        self.synced += if read { 0 } else { pages.len() as u64 };
        self.jobs.push_back(Job {
            call: id,
            dir: if read { Dir::Read } else { Dir::Write },
            inode: call.inode,
            pages,
            log: !read,
        });
    }

    /// The pages of a write are in memory.
    fn absorb(&mut self, call: &Call, now: Nanos) {
        let file = self.files.entry(call.inode).or_insert_with(|| Dirty {
            pages: BTreeSet::new(),
            since: now,
        });
        for page in call.first..call.first + call.pages.len() as u32 {
            self.dirty += u64::from(file.pages.insert(page));
        }
    }

    /// A call is done, and its thread free.
    fn finish(&mut self, id: CallId) {
        self.busy -= 1;
        self.replies.push_back(id);
    }

    /// Pages of a file are not wanted any more, or come anew.
    pub(super) fn forget(&mut self, inode: InodeId, pages: std::ops::Range<u32>) {
        let writes = self.jobs.iter_mut();
        let writes = writes.filter(|job| job.dir == Dir::Write && job.inode == inode);
        let sets = writes.map(|job| &mut job.pages);
        let file = self.files.get_mut(&inode).map(|file| &mut file.pages);
        for set in sets.chain(file) {
            let before = set.len();
            set.retain(|page| !pages.contains(page));
            self.dirty -= (before - set.len()) as u64;
        }
        if self
            .files
            .get(&inode)
            .is_some_and(|file| file.pages.is_empty())
        {
            self.files.remove(&inode);
        }
    }

    /// Gives the disk something to do if it has nothing: how long that takes.
    pub(super) fn start_disk(
        &mut self,
        inodes: &TiSlice<InodeId, Inode>,
        now: Nanos,
    ) -> Option<Nanos> {
        if self.command.is_some() {
            return None;
        }
        let (command, position) = self.next_command(inodes, now)?;
        let pages = (command.pages.len() as u64).max(1);
        let (time, seek) = self.disk.serve(command.dir, position, pages, now);
        let dir = command.dir as usize;
        self.served.requests[dir] += 1;
        self.served.pages[dir] += pages;
        self.served.seeks[dir] += u64::from(seek);
        self.served.busy += time;
        self.command = Some(command);
        Some(time)
    }

    fn next_command(
        &mut self,
        inodes: &TiSlice<InodeId, Inode>,
        now: Nanos,
    ) -> Option<(Command, u64)> {
        let most = self.command_pages;
        // A job may have nothing left that has a place.
        while !self.jobs.is_empty() {
            let read = self.jobs.iter().position(|job| job.dir == Dir::Read);
            let at = read.unwrap_or(0);
            let job = &mut self.jobs[at];
            let (dir, inode) = (job.dir, job.inode);
            let before = job.pages.len();
            let run = take_run(&mut job.pages, &inodes[inode], most);
            let placed = run.as_ref().map_or(0, |(pages, _)| pages.len());
            if dir == Dir::Write {
                self.dirty -= (before - job.pages.len() - placed) as u64;
            }
            if let Some((pages, position)) = run {
                return Some((Command { dir, inode, pages }, position));
            }
            if std::mem::take(&mut job.log) {
                let pages = 0..0;
                return Some((Command { dir, inode, pages }, self.log));
            }
            let id = job.call;
            self.jobs.remove(at);
            self.finish(id);
        }
        loop {
            let oldest = self.files.iter().min_by_key(|(_, file)| file.since);
            let (&inode, file) = oldest?;
            if self.dirty <= self.background && file.since + EXPIRE > now {
                return None;
            }
            let file = self.files.get_mut(&inode)?;
            let before = file.pages.len();
            let run = take_run(&mut file.pages, &inodes[inode], most);
            let placed = run.as_ref().map_or(0, |(pages, _)| pages.len());
            self.dirty -= (before - file.pages.len() - placed) as u64;
            if file.pages.is_empty() {
                self.files.remove(&inode);
            }
            if let Some((pages, position)) = run {
                let dir = Dir::Write;
                return Some((Command { dir, inode, pages }, position));
            }
        }
    }

    /// The disk has done what it had to.
    pub(super) fn disk_done(&mut self) {
        if let Some(Command {
            dir: Dir::Write,
            pages,
            ..
        }) = self.command.take()
        {
            self.dirty -= pages.len() as u64;
        }
    }

    /// Pages that are in memory alone, with their files; more than once if they were written anew.
    pub(crate) fn volatile(&self) -> impl Iterator<Item = (InodeId, u32)> + '_ {
        let files = self.files.iter();
        let files = files.flat_map(|(&inode, file)| file.pages.iter().map(move |&at| (inode, at)));
        let jobs = self.jobs.iter().filter(|job| job.dir == Dir::Write);
        let jobs = jobs.flat_map(|job| job.pages.iter().map(|&at| (job.inode, at)));
        let command = self.command.iter().filter(|it| it.dir == Dir::Write);
        let command = command.flat_map(|it| it.pages.clone().map(|at| (it.inode, at)));
        files.chain(jobs).chain(command)
    }

    /// How many these should be.
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty
    }
}

/// Takes the first pages that lie side by side, up to `most`: which, and where they lie. Pages before them
/// that have no place, because their file was cut short, are dropped.
fn take_run(
    pages: &mut BTreeSet<u32>,
    inode: &Inode,
    most: u32,
) -> Option<(std::ops::Range<u32>, u64)> {
    loop {
        let first = pages.pop_first()?;
        let Some(position) = inode.extents.find(first) else {
            continue;
        };
        let mut end = first + 1;
        while end - first < most
            && inode.extents.find(end) == Some(position + u64::from(end - first))
            && pages.remove(&end)
        {
            end += 1;
        }
        return Some((first..end, position));
    }
}
