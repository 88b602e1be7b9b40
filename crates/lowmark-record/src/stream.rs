//! Events as they come by, from a recording or from a trace file too large to keep.
//!
//! A source calls a [`Sink`] for one event after the other and ends with an [`Account`] of all that it
//! read. What was not understood is counted there by kind: nothing is dropped in silence.

use crate::event::{Event, EventLog, Names};
use crate::recording::Recording;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Most tasks that are told apart, so that a hostile file can't fill the memory; all beyond it are
/// [`Tables::OTHERS`].
const TASKS_MAX: usize = 1 << 18;

/// Most kinds of things not understood that are told apart.
const KINDS_MAX: usize = 1 << 10;

/// Who an event happened to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Actor {
    /// `comm`; `<...>` where the trace does not know it.
    pub name: String,
    /// Process id; -1 where the trace has none.
    pub pid: i32,
}

/// What the numbers in events stand for.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// Texts.
    pub names: Names,
    tasks: Vec<Actor>,
    indices: HashMap<i32, Vec<u32>>,
}

impl Tables {
    /// Name of what stands for tasks beyond the limit.
    pub const OTHERS: &'static str = "<others>";

    /// The task of this name and process id, added if it is new.
    pub fn task(&mut self, name: &[u8], pid: i32) -> u32 {
        let known = self.indices.get(&pid).into_iter().flatten();
        for &index in known {
            if self.tasks[index as usize].name.as_bytes() == name {
                return index;
            }
        }
        if self.tasks.len() >= TASKS_MAX {
            return self.others();
        }
        let lossy = String::from_utf8_lossy(name);
        if !matches!(lossy, std::borrow::Cow::Borrowed(_)) {
            // Not UTF-8: found again only by the replaced form.
            let same = |index: &&u32| self.tasks[**index as usize].name == lossy;
            if let Some(index) = self
                .indices
                .get(&pid)
                .and_then(|known| known.iter().find(same))
            {
                return *index;
            }
        }
        let index = self.tasks.len() as u32;
        self.tasks.push(Actor {
            name: lossy.into_owned(),
            pid,
        });
        self.indices.entry(pid).or_default().push(index);
        index
    }

    fn others(&mut self) -> u32 {
        let last = self.tasks.len() - 1;
        if self.tasks[last].name != Tables::OTHERS {
            self.tasks.push(Actor {
                name: Tables::OTHERS.to_owned(),
                pid: -1,
            });
            return self.tasks.len() as u32 - 1;
        }
        last as u32
    }

    /// The task of an index, if it was given.
    pub fn actor(&self, task: u32) -> Option<&Actor> {
        self.tasks.get(task as usize)
    }

    /// All tasks, by index.
    pub fn tasks(&self) -> &[Actor] {
        &self.tasks
    }
}

/// Takes events in the order of their source.
pub trait Sink {
    /// One event, understood.
    fn event(&mut self, event: &Event, tables: &Tables);
}

/// What can be wrong with a source as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flaw {
    /// It ends before it should.
    Truncated,
    /// Something in it cannot be what its writer wrote.
    Damaged,
    /// Times go back.
    Unsorted,
    /// Events are missing, as the recorder itself says.
    Lost,
}

/// What a source held and what of it was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Lines of text or records, headers and blank lines apart.
    pub lines: u64,
    /// Those that became events.
    pub understood: u64,
    /// The others, by kind: what and why.
    pub not_understood: BTreeMap<String, u64>,
    /// Events understood by their labels alone, by tracepoint: they may hold fields that are unknown.
    pub by_labels: BTreeMap<String, u64>,
    /// Lines of the header, of lost events and the like.
    pub comments: u64,
    /// Events that the recorder says it lost, as far as it says how many.
    pub lost: u64,
    /// Places where it lost events without saying how many.
    pub gaps: u64,
    /// Events earlier than the one before.
    pub unsorted: u64,
    /// Places left out because they are damaged.
    pub damaged: u64,
    /// Where and what: the first place of each kind of flaw that makes the figures uncertain.
    pub flaws: BTreeMap<Flaw, String>,
    /// First and last time, ns.
    pub span_ns: Option<(u64, u64)>,
}

impl Account {
    /// Notes an event's time; `place` says where it stands if it is earlier than the one before.
    #[inline]
    pub fn saw(&mut self, time_ns: u64, place: impl FnOnce() -> String) {
        let (first, last) = self.span_ns.unwrap_or((time_ns, time_ns));
        if time_ns < last {
            self.unsorted += 1;
            // Files that were put together have millions of them.
            if self.unsorted == 1 {
                self.flaw(Flaw::Unsorted, || {
                    let (at, after) = (time_ns as f64 / 1e9, last as f64 / 1e9);
                    format!("{}: time {at:.6} s after {after:.6} s", place())
                });
            }
        }
        self.span_ns = Some((first.min(time_ns), last.max(time_ns)));
    }

    /// Notes a flaw; the first of its kind keeps its place.
    pub fn flaw(&mut self, flaw: Flaw, place: impl FnOnce() -> String) {
        self.flaws.entry(flaw).or_insert_with(place);
    }

    /// Notes something that was not understood.
    pub fn miss(&mut self, kind: &str) {
        if let Some(count) = self.not_understood.get_mut(kind) {
            *count += 1;
            return;
        }
        let kind = if self.not_understood.len() < KINDS_MAX {
            kind
        } else {
            "others"
        };
        *self.not_understood.entry(kind.to_owned()).or_default() += 1;
    }

    /// How many were not understood.
    pub fn missed(&self) -> u64 {
        self.not_understood.values().sum()
    }

    /// Seconds from the first event to the last.
    pub fn span_s(&self) -> f64 {
        self.span_ns
            .map_or(0.0, |(first, last)| (last - first) as f64 / 1e9)
    }
}

/// What a source leaves behind when all its events have gone by.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// What it held.
    pub account: Account,
    /// What the numbers in its events stand for.
    pub tables: Tables,
}

/// The events of one run on their way to a sink: those of a recording, or of a run that is not over.
#[derive(Debug, Default)]
pub struct Passing {
    pub(crate) tables: Tables,
    account: Account,
    /// Tasks as the tables number them, by those of the recording.
    indices: Vec<u32>,
}

impl Passing {
    pub(crate) fn of(recording: &Recording) -> Passing {
        let mut passing = Passing::default();
        for task in &recording.tasks {
            passing.task(&task.name, task.pid);
        }
        passing
    }

    /// Number of tasks that it was told of.
    pub fn tasks(&self) -> usize {
        self.indices.len()
    }

    /// Tells it of one more task; events name tasks by their numbers in this order.
    pub fn task(&mut self, name: &str, pid: u32) {
        let index = self.tables.task(name.as_bytes(), pid.cast_signed());
        self.indices.push(index);
    }

    /// Lets all events of a log go by. The log keeps its texts and no events.
    pub fn drain(&mut self, log: &mut EventLog, sink: &mut dyn Sink) {
        std::mem::swap(&mut self.tables.names, &mut log.names);
        for event in log.iter() {
            self.pass(event, sink);
        }
        std::mem::swap(&mut self.tables.names, &mut log.names);
        log.forget();
    }

    /// Lets an event go by.
    pub(crate) fn pass(&mut self, mut event: Event, sink: &mut dyn Sink) {
        let task = self.indices.get(event.task as usize);
        event.task = task.copied().unwrap_or(u32::MAX);
        let account = &mut self.account;
        account.lines += 1;
        account.understood += 1;
        let number = account.lines;
        account.saw(event.time_ns, || format!("event {number}"));
        sink.event(&event, &self.tables);
    }

    /// All events have gone by; `names` holds the texts that they name.
    pub fn end(mut self, names: Names) -> Source {
        self.tables.names = names;
        self.done()
    }

    pub(crate) fn done(self) -> Source {
        Source {
            account: self.account,
            tables: self.tables,
        }
    }
}

impl Recording {
    /// Lets the recording's events go by.
    pub fn replay(&self, sink: &mut dyn Sink) -> Source {
        let mut passing = Passing::of(self);
        passing.tables.names = self.events.names.clone();
        for event in &self.events {
            passing.pass(event, sink);
        }
        passing.done()
    }
}
