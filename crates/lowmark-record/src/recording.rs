//! The recording itself.

use crate::counter_log::CounterLog;
use crate::event::EventLog;
use crate::vmstat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What was run, on what, by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Name of the workload.
    pub workload: String,
    /// Values of its parameters.
    pub params: Vec<(String, String)>,
    /// Name of the machine.
    pub machine: String,
    /// Kernel as asked for, for example `v3.6+swapin_readahead=hugh-new`.
    pub kernel: String,
    /// `model`, `guest`, `host` or `trace`.
    pub backend: String,
    /// Version of lowmark that made it.
    pub lowmark: String,
    /// Seed of the run.
    pub seed: u64,
    /// Parts of the kernel that the model left out of the run though the kernel has them, by their names in
    /// `lowmark list coverage`; none of a real kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// As the workload says.
    Completed,
    /// The kernel had nothing left to reclaim.
    OutOfMemory {
        /// Task whose allocation failed.
        task: String,
        /// Order of that allocation.
        order: u32,
        /// What memory looked like, one line.
        verdict: String,
    },
    /// A statement of the workload could not be carried out.
    Failed {
        /// Task whose statement it is.
        task: String,
        /// Line of the workload file.
        line: u32,
        /// The statement and what went wrong, one line.
        verdict: String,
    },
    /// Nothing could ever happen again: every task waits for another.
    Deadlock {
        /// Who waits for what.
        verdict: String,
    },
}

/// CPU times of one task or kernel thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTimes {
    /// `comm`.
    pub name: String,
    /// Process id, unique in the run.
    pub pid: u32,
    /// Kernel thread.
    pub kthread: bool,
    /// User time, ns.
    pub user_ns: u64,
    /// System time, ns.
    pub system_ns: u64,
    /// Start, ns.
    pub start_ns: u64,
    /// End, ns; absent if it was still running.
    pub end_ns: Option<u64>,
}

/// A label on a stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Label.
    pub label: String,
    /// Task that set it.
    pub task: String,
    /// When, ns.
    pub time_ns: u64,
}

/// Unit of a series for printing; values are kept in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// ns
    Nanoseconds,
    /// µs
    Microseconds,
    /// ms
    Milliseconds,
    /// 10 ms
    Centiseconds,
    /// s
    Seconds,
}

impl Unit {
    /// Nanoseconds in one unit.
    pub fn nanoseconds(self) -> u64 {
        match self {
            Unit::Nanoseconds => 1,
            Unit::Microseconds => 1_000,
            Unit::Milliseconds => 1_000_000,
            Unit::Centiseconds => 10_000_000,
            Unit::Seconds => 1_000_000_000,
        }
    }

    /// Symbol for table heads.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::Centiseconds => "cs",
            Unit::Seconds => "s",
        }
    }
}

/// Samples of one latency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Name.
    pub name: String,
    /// Unit for printing.
    pub unit: Unit,
    /// Each sample's time of completion and value, ns.
    pub samples: Vec<(u64, u64)>,
}

/// Values that go up and down (`nr_*` of `/proc/vmstat`), looked at now and then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauges {
    /// Names.
    pub names: Vec<String>,
    /// Time, ns, and the value of each name then.
    pub samples: Vec<(u64, Vec<u64>)>,
}

impl Gauges {
    /// Whether nothing was looked at.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

/// What a real kernel said of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// `uname -r`.
    pub release: String,
    /// What executed it: `tcg` or `kvm` for a guest.
    pub executed_by: String,
    /// Events that the ring buffer lost; none if none were asked for.
    pub lost_events: Option<u64>,
    /// What was done otherwise than asked for.
    pub notes: Vec<String>,
    /// Files under `/proc` and `/sys` before the first task, by path without the leading slash.
    pub before: BTreeMap<String, String>,
    /// The same after the last task.
    pub after: BTreeMap<String, String>,
    /// The counters of `/proc/vmstat` over the run, as they stood then.
    #[serde(default)]
    pub vmstat: Gauges,
    /// What files under `/proc` and `/sys` said over the run. Of a recording that has `proc/vmstat` here,
    /// [`System::vmstat`] and [`Recording::gauges`] are what follows from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<CounterLog>,
    /// What recorded it, and at what cost; none of a run of lowmark's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<Recorder>,
}

/// How a system that was in use was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorder {
    /// `counters` or `events`.
    pub level: String,
    /// The time 0 of the recording, ns since 1970.
    pub began_unix_ns: u64,
    /// How long it recorded, ns; longer than the recording if that holds the last minutes only.
    pub wall_ns: u64,
    /// CPU time that it used from its first look to its last, ns; the snapshots before and after are not in it.
    pub cpu_ns: u64,
    /// Looks at counters that it took.
    pub looks: u64,
    /// Looks that were due and did not take place, because the recorder did not get to run in time.
    pub missed_looks: u64,
}

impl System {
    /// The log of a file, by path without the leading slash.
    pub fn history_of(&self, file: &str) -> Option<&CounterLog> {
        self.history.iter().find(|log| log.file == file)
    }
}

/// Something that was asked for and that the backend left out, though the results mean something without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// Line of the workload file; absent if it is about the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What is left out, and what happens instead.
    pub text: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => write!(f, "{}", self.text),
        }
    }
}

/// What one run showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// What was run.
    pub run: RunInfo,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What the workload or the machine asked for and the backend left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_modelled: Vec<Remark>,
    /// Time from start to end, ns.
    pub elapsed_ns: u64,
    /// Change of every vmstat counter over the run, by its `/proc/vmstat` name.
    pub counters: BTreeMap<String, u64>,
    /// State at the end (`nr_*` of `/proc/vmstat`), by name.
    pub state: BTreeMap<String, u64>,
    /// Tasks and kernel threads.
    pub tasks: Vec<TaskTimes>,
    /// Phase marks in order of time.
    pub phases: Vec<Phase>,
    /// Latency series.
    pub series: Vec<Series>,
    /// The state of memory over the run; empty when it was not asked for.
    #[serde(default, skip_serializing_if = "Gauges::is_empty")]
    pub gauges: Gauges,
    /// Of a run on the model, what files under `/proc` said over the run; of `proc/vmstat` the counters, as its state is in
    /// [`Recording::gauges`]. What those of a real kernel said is in [`System::history`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<CounterLog>,
    /// Of a run on a real kernel, what that said of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Box<System>>,
    /// Events in order of time; empty when none were asked for.
    #[serde(skip)]
    pub events: EventLog,
}

/// Most values that [`Recording::unfold`] makes rows of: half an hour of looks at a tenth of a second has a tenth of it.
const UNFOLDED_MAX: usize = 1 << 25;

impl Recording {
    /// The log of a file over the run, by path without the leading slash, whatever the backend.
    pub fn log_of(&self, file: &str) -> Option<&CounterLog> {
        let own = self.history.iter().find(|log| log.file == file);
        own.or_else(|| self.system.as_deref()?.history_of(file))
    }

    /// Gives [`Recording::gauges`] and [`System::vmstat`] what the log of `/proc/vmstat` says, if there is one and
    /// they are not there. Of a log of many hours every second look is taken, or fewer.
    pub(crate) fn unfold(&mut self) {
        let Some(system) = &mut self.system else {
            return;
        };
        let Some(log) = system.history_of(vmstat::FILE) else {
            return;
        };
        let step = (log.names().len() * log.len())
            .div_ceil(UNFOLDED_MAX)
            .max(1);
        let gauges = log.gauges(step, |name| !vmstat::is_counter(name));
        let counters = log.gauges(step, vmstat::is_counter);
        if self.gauges.is_empty() {
            self.gauges = gauges;
        }
        if system.vmstat.is_empty() {
            system.vmstat = counters;
        }
    }
}
