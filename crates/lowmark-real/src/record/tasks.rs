//! The busiest tasks.
//!
//! 1. All processes are gone through in turn, some at each look, those that are new first. One that used CPU time,
//!    took a major fault, or runs or waits right now is busy.
//! 2. The busiest are watched: their `stat` stays open and is read at each look. One that has been idle for a while
//!    makes room.
//!
//! So the cost follows the number of busy tasks and not that of all.

use super::parse::{STAT_FIELDS, Stat, stat};
use super::proc_file::ProcFile;
use lowmark_record::CounterLog;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// Most tasks that are watched.
const WATCHED_MAX: usize = 64;
/// Looks without a change after which a task is no longer watched.
const IDLE_LOOKS: u32 = 8;
/// Processes that are gone through at a look, at least.
const LOOKED_AT: usize = 16;
/// Looks in which all processes are gone through, if that takes more at a look.
const ROUND_LOOKS: usize = 40;
/// Looks between two listings of all processes.
const LIST_LOOKS: u64 = 4;
/// Most tasks that are kept.
const KEPT_MAX: usize = 1 << 14;

/// A process as it is told apart from others: its number, and when it started in ticks since boot.
type Id = (u32, u64);

/// What was seen of a process when it was last gone through.
#[derive(Debug, Clone, Copy)]
struct Seen {
    start_ticks: u64,
    ticks: u64,
    major_faults: u64,
}

/// A task that was busy, and what it did.
#[derive(Debug, Clone)]
pub(super) struct TaskLog {
    /// As it was last called.
    pub(super) name: String,
    pub(super) pid: u32,
    pub(super) kthread: bool,
    /// Ticks of 10 ms since boot.
    pub(super) start_ticks: u64,
    /// When it was found to have ended, by the clock of the looks.
    pub(super) end_ns: Option<u64>,
    pub(super) log: CounterLog,
}

/// A task whose `stat` is open.
#[derive(Debug)]
struct Watched {
    id: Id,
    file: ProcFile,
    last: [u64; STAT_FIELDS.len()],
    idle: u32,
}

/// The tasks of a system.
#[derive(Debug)]
pub(super) struct Tasks {
    proc: PathBuf,
    /// Ticks since boot when recording began: what started later counts whole.
    began_ticks: u64,
    looks: u64,
    seen: BTreeMap<u32, Seen>,
    queue: VecDeque<u32>,
    watched: Vec<Watched>,
    logs: BTreeMap<Id, TaskLog>,
    /// Whether a task was not kept because there were too many.
    pub(super) overflowed: bool,
}

impl Tasks {
    pub(super) fn new(proc: &Path, began_ticks: u64) -> Tasks {
        Tasks {
            proc: proc.to_owned(),
            began_ticks,
            looks: 0,
            seen: BTreeMap::new(),
            queue: VecDeque::new(),
            watched: Vec::new(),
            logs: BTreeMap::new(),
            overflowed: false,
        }
    }

    /// All that was busy.
    pub(super) fn logs(&self) -> impl Iterator<Item = &TaskLog> {
        self.logs.values()
    }

    /// Forgets what was before a time.
    pub(super) fn forget_before(&mut self, time_ns: u64) {
        self.logs.retain(|id, task| {
            task.log.forget_before(time_ns);
            let ended = task.end_ns.is_some_and(|end| end < time_ns);
            !task.log.is_empty() || !ended && self.watched.iter().any(|watched| watched.id == *id)
        });
    }

    /// One look.
    pub(super) fn look(&mut self, time_ns: u64) {
        if self.looks.is_multiple_of(LIST_LOOKS) {
            self.list();
        }
        self.looks += 1;
        let logs = &mut self.logs;
        self.watched
            .retain_mut(|watched| watched.look(time_ns, logs));
        let count = LOOKED_AT.max(self.seen.len() / ROUND_LOOKS);
        for _ in 0..count.min(self.queue.len()) {
            if let Some(pid) = self.queue.pop_front() {
                self.go_through(pid, time_ns);
            }
        }
    }

    /// Lists all processes: new ones come first, and the others go on where they were.
    fn list(&mut self) {
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut gone = std::mem::take(&mut self.seen);
        let idle = self.queue.is_empty();
        for pid in pids {
            match gone.remove(&pid) {
                Some(seen) => {
                    self.seen.insert(pid, seen);
                    if idle {
                        self.queue.push_back(pid);
                    }
                }
                None => self.queue.push_front(pid),
            }
        }
    }

    /// Looks at a process that may or may not be busy.
    fn go_through(&mut self, pid: u32, time_ns: u64) {
        let path = self.proc.join(pid.to_string()).join("stat");
        // A process may end while it is looked at.
        let Ok(mut file) = ProcFile::open(&path) else {
            self.seen.remove(&pid);
            return;
        };
        let Some(now) = file.read().ok().and_then(stat) else {
            return;
        };
        let id = (pid, now.start_ticks);
        let seen = Seen {
            start_ticks: now.start_ticks,
            ticks: now.ticks(),
            major_faults: now.major_faults(),
        };
        let before = self.seen.insert(pid, seen);
        let before = before.filter(|before| before.start_ticks == now.start_ticks);
        let used = match before {
            Some(before) => {
                seen.ticks.saturating_sub(before.ticks)
                    + seen.major_faults.saturating_sub(before.major_faults)
            }
            // What it used earlier it did not use now.
            None if now.start_ticks < self.began_ticks => 0,
            None => seen.ticks + seen.major_faults,
        };
        let busy = used + u64::from(now.is_busy());
        if busy > 0 && !self.watched.iter().any(|watched| watched.id == id) {
            self.watch(id, &now, file, time_ns);
        }
    }

    /// Begins to watch a task, in the place of the one that has been idle longest if there are too many.
    fn watch(&mut self, id: Id, now: &Stat, file: ProcFile, time_ns: u64) {
        if self.watched.len() >= WATCHED_MAX {
            let idlest = (0..self.watched.len()).max_by_key(|at| self.watched[*at].idle);
            match idlest.filter(|at| self.watched[*at].idle > 0) {
                Some(at) => drop(self.watched.swap_remove(at)),
                None => return,
            }
        }
        if !self.logs.contains_key(&id) && self.logs.len() >= KEPT_MAX {
            self.overflowed = true;
            return;
        }
        let task = self.logs.entry(id).or_insert_with(|| {
            let mut log = CounterLog::new(format!("proc/{}/stat", id.0));
            log.add_names(STAT_FIELDS);
            TaskLog {
                name: now.name.clone(),
                pid: id.0,
                kthread: now.kthread,
                start_ticks: now.start_ticks,
                end_ns: None,
                log,
            }
        });
        task.log.push(time_ns, &now.values);
        self.watched.push(Watched {
            id,
            file,
            last: now.values,
            idle: 0,
        });
    }
}

impl Watched {
    /// One look; whether it is still to be watched.
    fn look(&mut self, time_ns: u64, logs: &mut BTreeMap<Id, TaskLog>) -> bool {
        let Some(task) = logs.get_mut(&self.id) else {
            return false;
        };
        // The file is of this very process: once that has ended, reading is an error.
        let Some(now) = self.file.read().ok().and_then(stat) else {
            task.end_ns = Some(time_ns);
            return false;
        };
        self.idle = if now.values == self.last {
            self.idle + 1
        } else {
            0
        };
        self.last = now.values;
        task.log.push(time_ns, &now.values);
        if task.name != now.name {
            task.name = now.name;
        }
        self.idle < IDLE_LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `/proc` of our own.
    struct Proc(tempfile::TempDir);

    impl Proc {
        fn process(&self, pid: u32, state: char, ticks: u64, start: u64) {
            let directory = self.0.path().join(pid.to_string());
            fs::create_dir_all(&directory).expect("made");
            let zeroes = "0 ".repeat(19);
            let text = format!(
                "{pid} (task {pid}) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {start} 0 7 {zeroes}"
            );
            fs::write(directory.join("stat"), text).expect("written");
        }
    }

    #[test]
    fn the_busy_are_watched_and_the_idle_are_not() {
        let proc = Proc(tempfile::tempdir().expect("a directory"));
        for pid in 1..=100 {
            proc.process(pid, 'S', 1000, 5);
        }
        let mut tasks = Tasks::new(proc.0.path(), 50);
        for look in 0..16 {
            tasks.look(look);
        }
        assert_eq!(tasks.logs().count(), 0);
        proc.process(7, 'S', 1010, 5);
        proc.process(8, 'D', 1000, 5);
        proc.process(500, 'S', 3, 60);
        for look in 16..32 {
            tasks.look(look);
        }
        let busy: Vec<u32> = tasks.logs().map(|task| task.pid).collect();
        assert_eq!(busy, [7, 8, 500]);
        fs::remove_dir_all(proc.0.path().join("500")).expect("removed");
        for look in 32..90 {
            tasks.look(look);
        }
        let watched: Vec<Id> = tasks.watched.iter().map(|watched| watched.id).collect();
        // One that waits is seen to wait, although its counters stand still.
        assert_eq!(watched, [(8, 5)]);
        let of = |pid| tasks.logs().find(|task| task.pid == pid).expect("kept");
        let values = of(7).log.values("utime");
        assert!(values.iter().all(|(_, ticks)| *ticks == 1010));
        assert!(values.len() <= IDLE_LOOKS as usize + 1, "{}", values.len());
        assert_eq!(of(7).log.last("rss"), Some(7));
        assert_eq!(of(8).log.last("state"), Some(u64::from(b'D')));
    }

    #[test]
    fn no_more_than_the_busiest_are_watched() {
        let proc = Proc(tempfile::tempdir().expect("a directory"));
        (1..=90).for_each(|pid| proc.process(pid, 'R', 0, 5));
        let mut tasks = Tasks::new(proc.0.path(), 50);
        for look in 0..12 {
            (1..=90).for_each(|pid| proc.process(pid, 'R', look, 5));
            tasks.look(look);
        }
        assert_eq!(tasks.watched.len(), WATCHED_MAX);
        tasks.forget_before(1_000);
        assert_eq!(tasks.logs().count(), WATCHED_MAX);
        assert!(tasks.logs().all(|task| task.log.is_empty()));
    }

    #[test]
    fn a_task_that_ends_is_seen_to_end() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("started");
        let path = format!("/proc/{}/stat", child.id());
        let mut file = ProcFile::open(Path::new(&path)).expect("opened");
        let now = stat(file.read().expect("read")).expect("a process");
        let mut tasks = Tasks::new(Path::new("/proc"), 0);
        tasks.watch((child.id(), now.start_ticks), &now, file, 1);
        child.kill().expect("killed");
        child.wait().expect("ended");
        tasks
            .watched
            .retain_mut(|watched| watched.look(2, &mut tasks.logs));
        assert!(tasks.watched.is_empty());
        let ended: Vec<_> = tasks.logs().map(|task| task.end_ns).collect();
        assert_eq!(ended, [Some(2)]);
    }
}
