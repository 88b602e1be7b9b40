//! Carrying out a task's statements on the kernel that runs.
//!
//! Maps, times and tasks are here; what is done to files is in `fileio.rs`. Random choices are drawn from
//! the same streams, in the same order, as on the model (`lowmark-model`, `task/interpreter.rs`).

use super::cgroups;
use super::coordinator::Request;
use super::fileio;
use super::files::Files;
use super::hugetlb;
use super::process::run_process;
use super::procfs::{self, Kswapd};
use super::report::{self, Line, now_ns};
use super::shared::{Process, Shared};
use super::sys::{self, Backing, HUGE_PAGE, Mapping};
use super::time;
use super::touch::{content, touch};
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::random::Stream;
use lowmark_spec::visit::Visit;
use lowmark_spec::workload::{
    Advice, Answer, MapKind, Op, PoolId, Probe, Range, Stmt, Times, Workload, series_number,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::io::{Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a body does not go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// A statement failed; the text says why.
    Failed(String),
    /// The failure was reported.
    Reported,
}

/// The workload as its processes hold it.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) workload: Workload,
    pub(super) seed: u64,
    pub(super) files: Files,
    pub(super) shared: Shared,
    /// Where the coordinator hears requests.
    pub(super) requests: OwnedFd,
    pub(super) kswapd: Kswapd,
    /// Counters of turns: by task, line, statement and fileset.
    pub(super) turns: BTreeMap<(usize, u32, &'static str, usize), usize>,
    /// Directory of the memory cgroups, see [`super::Options::cgroups`].
    pub(super) cgroups: Option<PathBuf>,
    /// The runner's own memory is pinned, see [`super::Options::pin`].
    pub(super) pin: bool,
    /// Pages that are touched are reported, see [`super::Options::touches`].
    pub(super) touches: bool,
}

/// A map.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) mapping: Mapping,
    pub(super) kind: MapKind,
}

/// One running instance, or a thread of it.
pub(super) struct Context {
    pub(super) program: Arc<Program>,
    pub(super) process: Process,
    /// Held while the process's shared state is used.
    pub(super) link: Arc<Mutex<()>>,
    pub(super) stream: Stream,
    pub(super) task: usize,
    pub(super) instance: usize,
    /// Thread of the instance, from 1; 0 if it has not been parted.
    pub(super) thread: u64,
    pub(super) maps: Vec<Option<Arc<Region>>>,
    /// Threads of this instance that `parallel` has started, for their streams.
    pub(super) threads: u64,
    /// Files that stay open: by file, direct, sync, append.
    pub(super) open: BTreeMap<(usize, bool, bool, bool), File>,
    /// Orders in which files of sets are taken, by counter of turns.
    pub(super) picks: BTreeMap<usize, Visit>,
    /// Buffer for reads and writes.
    pub(super) buffer: Option<fileio::Buffer>,
    /// Huge pages that it holds, by pool.
    pub(super) held: BTreeMap<PoolId, u64>,
    /// What the last `probe` of a `sample` found.
    pub(super) answer: Option<Answer>,
}

impl Context {
    /// A thread of the same process that shares the maps.
    fn thread(&mut self) -> Context {
        self.threads += 1;
        let name = &self.program.workload.tasks[self.task].name;
        Context {
            program: self.program.clone(),
            process: self.process,
            link: self.link.clone(),
            stream: Stream::new(self.stream.next_u64(), name, self.threads),
            task: self.task,
            instance: self.instance,
            thread: self.threads,
            maps: self.maps.clone(),
            threads: 0,
            open: BTreeMap::new(),
            picks: BTreeMap::new(),
            buffer: None,
            answer: None,
            held: BTreeMap::new(),
        }
    }

    pub(super) fn locked<T>(&self, act: impl FnOnce(&Process) -> T) -> T {
        let _held = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        act(&self.process)
    }

    /// Asks the coordinator for something and waits until it is done.
    fn request(&self, request: Request) -> Result<(), Stop> {
        self.locked(|process| {
            let before = process.answers();
            let bytes = request.to_bytes(process.number);
            rustix::io::write(&self.program.requests, &bytes).map_err(std::io::Error::from)?;
            process.wait_answer(before);
            Ok(())
        })
    }

    fn region(&self, map: usize) -> Result<Arc<Region>, Stop> {
        let region = self.maps.get(map).and_then(Option::as_ref);
        region
            .cloned()
            .ok_or_else(|| Stop::Failed("the map is not there".into()))
    }

    /// Writes out what is kept.
    pub(super) fn flush(&self) -> Result<(), Stop> {
        Ok(self.locked(Process::flush)?)
    }
}

/// Carries out statements in order. The first that fails is reported and ends it.
pub(super) fn run_body(context: &mut Context, body: &[Stmt]) -> Result<(), Stop> {
    for stmt in body {
        run_stmt(context, stmt).map_err(|stop| {
            if let Stop::Failed(problem) = stop {
                let line = Line::Fault {
                    task: context.task,
                    line: stmt.line,
                    problem: format!("{}: {problem}", stmt.op.name()),
                };
                // If nobody hears it, the exit code still says that something failed.
                let _ = report::write(&line);
            }
            Stop::Reported
        })?;
    }
    Ok(())
}

fn run_stmt(context: &mut Context, stmt: &Stmt) -> Result<(), Stop> {
    match &stmt.op {
        Op::Map {
            map,
            kind,
            length,
            offset,
            advice,
            lock,
            exec,
        } => {
            // An old map of the name goes first, as on the model.
            context.maps[*map] = None;
            let region = new_region(context, *kind, *length, *offset, *exec)?;
            if let Some(advice) = advice {
                region.mapping.advise(*advice, whole(&region))?;
            }
            if *lock {
                region.mapping.lock(true, whole(&region))?;
            }
            context.maps[*map] = Some(Arc::new(region));
        }
        Op::Unmap { map, range, every } => match range {
            None => {
                if let Some(region) = context.maps[*map].take() {
                    // Other threads may hold it; its pages go at once all the same.
                    region.mapping.unmap(whole(&region))?;
                }
            }
            Some(range) => {
                let region = context.region(*map)?;
                for range in range.repeated(*every, region.mapping.length()) {
                    region.mapping.unmap(range)?;
                }
            }
        },
        Op::Punch { map, range, every } => {
            let region = context.region(*map)?;
            for range in range.repeated(*every, region.mapping.length()) {
                match region.kind {
                    MapKind::AnonShared | MapKind::FileShared(_) => region.mapping.remove(range)?,
                    _ => region.mapping.advise(Advice::Dontneed, range)?,
                }
            }
        }
        Op::Touch { map, what } => {
            let region = context.region(*map)?;
            touch(context, &region, what)?;
        }
        Op::Memset { map, range } => {
            let region = context.region(*map)?;
            let range = range.unwrap_or(whole(&region));
            let end = range
                .offset
                .saturating_add(range.length)
                .min(region.mapping.length());
            let mut at = range.offset;
            while at < end {
                let next = ((at / PAGE_SIZE + 1) * PAGE_SIZE).min(end);
                region.mapping.fill(at, next - at, content(at));
                at = next;
            }
        }
        Op::Advise { map, advice, range } => {
            let region = context.region(*map)?;
            region
                .mapping
                .advise(*advice, range.unwrap_or(whole(&region)))?;
        }
        Op::Probe { map, offset, what } => {
            let region = context.region(*map)?;
            let yes = match what {
                Probe::Resident => region.mapping.resident(*offset)?,
                Probe::Huge => is_huge(&region.mapping, *offset)?,
            };
            context.answer = Some(Answer::to(*what, yes));
        }
        Op::Mlock { map, lock, range } => {
            let region = context.region(*map)?;
            let range = range.unwrap_or(whole(&region));
            region.mapping.lock(*lock, range)?;
        }
        Op::Node { node } => sys::prefer_node(*node)?,
        Op::Sleep(duration) | Op::Think(duration) => {
            time::sleep(duration.draw(&mut context.stream));
        }
        Op::Burn(duration) => time::burn(duration.draw(&mut context.stream)),
        Op::Barrier(index) => {
            let parties = context.program.workload.barriers[*index].parties;
            context.program.shared.barrier_wait(*index, parties);
        }
        Op::StopSelf => {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::STOP)
                .map_err(std::io::Error::from)?;
        }
        Op::Resume { task } => context.request(Request::Resume { task: *task })?,
        Op::Spawn { task, count } => context.request(Request::Spawn {
            task: *task,
            count: *count,
        })?,
        Op::Kill { task } => {
            // Killed by it, the process could not write out what it keeps.
            if *task == context.task {
                context.flush()?;
            }
            context.request(Request::Kill { task: *task })?;
        }
        Op::Wait { task } => context.program.shared.wait_ended(*task),
        Op::Repeat { times, body } => repeat(context, *times, body, run_body)?,
        Op::Build { times, body } => repeat(context, *times, body, run_process)?,
        Op::Alloc(what) => hugetlb::alloc(context, what)?,
        Op::Free { pool } => hugetlb::free(context, *pool)?,
        Op::Until {
            condition,
            poll_ns,
            body,
        } => {
            while !procfs::holds(condition, &context.program.kswapd)? {
                run_body(context, body)?;
                time::sleep(*poll_ns);
            }
        }
        Op::Parallel { bodies } => parallel(context, bodies)?,
        Op::Phase(phase) => report::write(&Line::Phase {
            phase: *phase,
            task: context.task,
            time_ns: now_ns(),
        })?,
        Op::Sample { series, body } => {
            context.answer = None;
            let start = now_ns();
            run_body(context, body)?;
            let end = now_ns();
            let series = series_number(*series, context.answer.take()) as usize;
            context.locked(|process| process.sample(series, end, end - start))?;
        }
        Op::Sysctl { name, value } => procfs::set(name, value)?,
        Op::Reclaim { cgroup, size } => cgroups::reclaim(&context.program, *cgroup, *size)?,
        Op::DropCaches { what } => procfs::set("drop_caches", &what.to_string())?,
        Op::Sync => rustix::fs::sync(),
        Op::Read(_)
        | Op::Write(_)
        | Op::Append(_)
        | Op::Fsync { .. }
        | Op::SyncRange { .. }
        | Op::Create { .. }
        | Op::Delete { .. }
        | Op::Truncate { .. }
        | Op::StatWalk { .. }
        | Op::Copy { .. } => fileio::run(context, stmt)?,
        Op::Pipe { .. } | Op::Expect { .. } => {
            return Err(Stop::Failed("the runner cannot do this yet".into()));
        }
    }
    Ok(())
}

fn whole(region: &Region) -> Range {
    Range {
        offset: 0,
        length: region.mapping.length(),
    }
}

fn new_region(
    context: &Context,
    kind: MapKind,
    length: u64,
    offset: u64,
    exec: bool,
) -> Result<Region, Stop> {
    let files = &context.program.files;
    let file = match kind {
        MapKind::FileShared(file) | MapKind::FilePrivate(file) => {
            Some(files.open(file, Default::default())?)
        }
        MapKind::AnonPrivate | MapKind::AnonShared => None,
    };
    let offset = offset / PAGE_SIZE * PAGE_SIZE;
    let backing = match (&kind, &file) {
        (MapKind::AnonShared, _) => Backing::AnonShared,
        (MapKind::FileShared(_), Some(file)) => Backing::FileShared(file, offset),
        (MapKind::FilePrivate(_), Some(file)) => Backing::FilePrivate(file, offset),
        _ => Backing::AnonPrivate,
    };
    let mapping = Mapping::new(&backing, length, exec)?;
    if context.program.pin {
        // New maps of a pinned process are pinned too; those of the workload must not be.
        let all = Range {
            offset: 0,
            length: mapping.length(),
        };
        mapping.lock(false, all)?;
    }
    Ok(Region { mapping, kind })
}

/// What one round of a loop is.
type Round = fn(&mut Context, &[Stmt]) -> Result<(), Stop>;

fn repeat(context: &mut Context, times: Times, body: &[Stmt], round: Round) -> Result<(), Stop> {
    match times {
        Times::Count(count) => (0..count).try_for_each(|_| round(context, body)),
        Times::For(time) => {
            let end = now_ns().saturating_add(time);
            while now_ns() < end {
                round(context, body)?;
            }
            Ok(())
        }
        Times::Forever => loop {
            round(context, body)?;
        },
    }
}

/// Bodies as threads that share the maps of the instance.
fn parallel(context: &mut Context, bodies: &[Vec<Stmt>]) -> Result<(), Stop> {
    let threads: Vec<(Context, &Vec<Stmt>)> =
        bodies.iter().map(|body| (context.thread(), body)).collect();
    let results: Vec<Result<(), Stop>> = std::thread::scope(|scope| {
        let started: Vec<_> = threads
            .into_iter()
            .map(|(mut thread, body)| {
                scope.spawn(move || {
                    run_body(&mut thread, body)?;
                    hugetlb::free_all(&mut thread)
                })
            })
            .collect();
        let failed = |_| Err(Stop::Failed("a thread of the runner panicked".into()));
        started
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(failed))
            .collect()
    });
    results.into_iter().collect()
}

/// Whether a page is part of a huge page: the flags of its frame and its neighbours in `/proc/kpageflags`, for which one
/// must be root, say that all frames of the block are one page. Documentation/admin-guide/mm/pagemap.rst.
fn is_huge(mapping: &Mapping, offset: u64) -> std::io::Result<bool> {
    const PRESENT: u64 = 1 << 63;
    const FRAME: u64 = (1 << 55) - 1;
    const HEAD: u64 = 1 << 15;
    const TAIL: u64 = 1 << 16;
    const FRAMES: usize = (HUGE_PAGE / PAGE_SIZE) as usize;
    let entries = |path: &str, first: u64, bytes: &mut [u8]| {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(first * 8))?;
        file.read_exact(bytes)
    };
    let mut bytes = [0; 8];
    entries(
        "/proc/self/pagemap",
        mapping.virtual_page(offset),
        &mut bytes,
    )?;
    let page = u64::from_le_bytes(bytes);
    if page & PRESENT == 0 {
        return Ok(false);
    }
    let first = (page & FRAME) / FRAMES as u64 * FRAMES as u64;
    let mut block = [0; FRAMES * 8];
    entries("/proc/kpageflags", first, &mut block)?;
    let (flags, _) = block.as_chunks::<8>();
    let mut kinds = flags
        .iter()
        .map(|flags| u64::from_le_bytes(*flags) & (HEAD | TAIL));
    Ok(kinds.next() == Some(HEAD) && kinds.all(|kind| kind == TAIL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_page_stores_zero() {
        assert!((0..1024).all(|page| content(page * PAGE_SIZE) != 0));
    }
}
