//! From the state of a finished run to its recording, and progress on the way.

mod tasks;

use crate::Options;
use crate::ids::DeviceId;
use crate::invariants;
use crate::looks::Looks;
use crate::mm::types::{Lru, MigrateType, ZoneType};
use crate::not_modelled::remarks;
use crate::time::{MSEC, Nanos};
use crate::world::{Verdict, World};
use lowmark_record::{CounterLog, Gauges, Outcome, Recording, RunInfo, Series, Unit};
use lowmark_spec::Scenario;
use lowmark_spec::machine::{Device, Machine, PAGE_SIZE};
use lowmark_spec::workload::{TimeUnit, series_name};
use std::collections::BTreeMap;
use typed_index_collections::TiSlice;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time, ns.
    pub virtual_ns: Nanos,
    /// Page faults so far.
    pub faults: u64,
    /// Touches so far.
    pub touches: u64,
}

/// Looks at the run after every event.
pub(crate) struct Observer<'a> {
    check_every: u64,
    events: u64,
    looks: Option<Looks>,
    progress: &'a mut dyn FnMut(Progress),
}

/// Progress is told once in so many events.
const EVENTS_PER_REPORT: u64 = 1 << 14;

impl<'a> Observer<'a> {
    pub(crate) fn new(options: &Options, progress: &'a mut dyn FnMut(Progress)) -> Observer<'a> {
        Observer {
            check_every: options.check_every,
            events: 0,
            looks: options.events.then(Looks::new),
            progress,
        }
    }

    pub(crate) fn observe(&mut self, world: &World) {
        self.events += 1;
        // No number of events is a multiple of 0.
        if self.events.is_multiple_of(self.check_every) {
            invariants::check(world);
        }
        if let Some(looks) = &mut self.looks {
            looks.look(world);
        }
        if self.events.is_multiple_of(EVENTS_PER_REPORT) {
            (self.progress)(Progress {
                virtual_ns: world.sched.now(),
                faults: world.mm.stat.pgfault,
                touches: world.workload.touches,
            });
        }
    }
}

impl Observer<'_> {
    /// The state of memory over the run, and what files under `/proc` said.
    pub(crate) fn looks(self) -> (Gauges, Vec<CounterLog>) {
        self.looks.map(Looks::finish).unwrap_or_default()
    }
}

/// The devices of the machine's file by the numbers that they have in the model.
fn devices(machine: &Machine) -> &TiSlice<DeviceId, Device> {
    machine.devices.as_slice().as_ref()
}

/// Sectors of 512 bytes in a page.
const SECTORS_PER_PAGE: u64 = PAGE_SIZE / 512;

impl World {
    /// `/proc/vmstat`: counters and state, by name.
    pub(crate) fn vmstat(&self) -> BTreeMap<String, u64> {
        let mut fields = self.counters();
        fields.extend(self.state());
        fields
    }

    pub(crate) fn counters(&self) -> BTreeMap<String, u64> {
        // On 64 bits the type above Normal is Movable.
        let high = self.mm.zones.iter().any(|z| z.kind == ZoneType::High);
        let highest = if high {
            ZoneType::High.name()
        } else {
            "movable"
        };
        let mut counters = self.mm.stat.by_name(&self.mm.kernel, highest);
        if self.mm.shrinkers.is_on() {
            let of_slab = self.mm.shrinkers.stat.by_name(self.mm.kernel.version);
            let of_slab = of_slab.into_iter();
            counters.extend(of_slab.map(|(name, value)| (name.to_owned(), value)));
        }
        if self.mm.lru_gen {
            counters.insert("lru_gen/max_seq".into(), self.mm.generations_made());
        }
        counters
    }

    /// Work done by the devices, as in `/proc/diskstats`, with the repositionings that only a model
    /// can count.
    fn diskstats(&self, machine: &Machine) -> BTreeMap<String, u64> {
        let served = devices(machine).iter_enumerated().zip(self.block.served());
        let fields = served.flat_map(|((id, device), local)| {
            let remote = self.nfs.counts(id);
            let served = remote.map_or(local, |counts| counts.served);
            let [reads, writes] = served.requests;
            let [pages_read, pages_written] = served.pages;
            let [read_seeks, write_seeks] = served.seeks;
            let fields = [
                ("reads", reads),
                ("sectors_read", pages_read * SECTORS_PER_PAGE),
                ("read_seeks", read_seeks),
                ("writes", writes),
                ("sectors_written", pages_written * SECTORS_PER_PAGE),
                ("write_seeks", write_seeks),
                ("io_ticks_ms", served.busy / MSEC),
            ];
            fields.map(|(name, value)| (format!("{}/{name}", device.name), value))
        });
        fields.collect()
    }

    /// What was asked of servers, as `/proc/self/mountstats` counts it, with the pages of the largest COMMIT and
    /// those that a server wrote because somebody waited for it.
    fn mountstats(&self, machine: &Machine) -> BTreeMap<String, u64> {
        let devices = devices(machine).iter_enumerated();
        let remote = devices.filter_map(|(id, device)| Some((device, self.nfs.counts(id)?)));
        let fields = remote.flat_map(|(device, counts)| {
            let fields = [
                ("rpc_read", counts.calls.reads),
                ("rpc_write", counts.calls.writes),
                ("rpc_write_stable", counts.calls.stable_writes),
                ("rpc_commit", counts.calls.commits),
                ("commit_pages_max", counts.commit_pages_max),
                ("synced_pages", counts.synced),
            ];
            fields.map(|(name, value)| (format!("{}/{name}", device.name), value))
        });
        fields.collect()
    }

    /// Writes that failed, on a machine whose devices may: requests of each device, pages of files whose
    /// content is lost, calls that returned EIO.
    fn errors(&self, machine: &Machine) -> BTreeMap<String, u64> {
        let mut errors = BTreeMap::new();
        for (id, device) in devices(machine).iter_enumerated() {
            if let Some(failed) = self.block.write_errors(id) {
                errors.insert(format!("{}/write_errors", device.name), failed);
                errors.insert("pages_lost".into(), self.mm.nr_lost);
                errors.insert("fsync_eio".into(), self.mm.nr_eio);
            }
        }
        errors
    }

    /// `/proc/PID/io` of all tasks together, in a workload with files.
    fn task_io(&self) -> BTreeMap<String, u64> {
        let (read, written) = (self.workload.rchar, self.workload.wchar);
        let fields = [("io/rchar", read), ("io/wchar", written)];
        let any = fields.into_iter().filter(|_| read + written > 0);
        any.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// `/proc/lock_stat` of the lock over the lists of dirty inodes, if anybody took it.
    fn lock_stat(&self) -> BTreeMap<String, u64> {
        let stat = self.list_locks.stat();
        let fields = [
            ("acquisitions", stat.acquisitions),
            ("contentions", stat.contentions),
            ("waittime_ns", stat.wait),
            ("waittime_max_ns", stat.wait_max),
            ("holdtime_ns", stat.hold),
            ("holdtime_max_ns", stat.hold_max),
        ];
        let taken = fields.into_iter().filter(|_| stat.acquisitions > 0);
        taken
            .map(|(name, value)| (format!("list_lock/{name}"), value))
            .collect()
    }

    pub(crate) fn state(&self) -> BTreeMap<String, u64> {
        let (background, thresh) = self.mm.dirty_thresholds();
        let list = |lru: Lru| self.mm.lruvecs.iter().map(|lists| lists.len(lru)).sum();
        let fields = [
            (
                "nr_free_pages",
                self.mm.zones.iter().map(|zone| zone.free).sum(),
            ),
            ("nr_inactive_anon", list(Lru::InactiveAnon)),
            ("nr_active_anon", list(Lru::ActiveAnon)),
            ("nr_inactive_file", list(Lru::InactiveFile)),
            ("nr_active_file", list(Lru::ActiveFile)),
            ("nr_file_pages", self.mm.nr_file_pages),
            ("nr_dirty", self.mm.nr_dirty),
            ("nr_writeback", self.mm.nr_writeback),
            ("nr_unstable", self.mm.nr_unstable),
            ("nr_dirty_threshold", thresh),
            ("nr_dirty_background_threshold", background),
            ("swap_used", self.mm.swap.in_use()),
        ];
        // Runs without objects of the kind have no such counters.
        let (nodes, files) = (self.mm.slub.is_on(), self.mm.shrinkers.is_on());
        let reclaimable = nodes || files || self.mm.kernel.coverage.buffer_heads;
        let pages = |kind| self.mm.slub.pages(kind);
        let slab = [
            reclaimable.then(|| ("nr_slab_reclaimable", pages(MigrateType::Reclaimable))),
            nodes.then(|| ("nr_slab_unreclaimable", pages(MigrateType::Unmovable))),
            (files && self.mm.counts_shadow_nodes())
                .then(|| ("workingset_nodes", self.mm.shadow_nodes())),
        ];
        let unevictable = self.mm.nr_unevictable;
        let locked = self
            .workload
            .locks
            .then_some([("nr_unevictable", unevictable), ("nr_mlock", unevictable)]);
        let slab = slab
            .into_iter()
            .flatten()
            .chain(locked.into_iter().flatten());
        fields
            .into_iter()
            .chain(slab)
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

fn outcome(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Completed => Outcome::Completed,
        Verdict::OutOfMemory {
            task,
            order,
            verdict,
        } => Outcome::OutOfMemory {
            task,
            order,
            verdict,
        },
        Verdict::Failed {
            task,
            line,
            verdict,
        } => Outcome::Failed {
            task,
            line,
            verdict,
        },
        Verdict::Deadlock { verdict } => Outcome::Deadlock { verdict },
    }
}

fn unit(unit: TimeUnit) -> Unit {
    match unit {
        TimeUnit::Nanoseconds => Unit::Nanoseconds,
        TimeUnit::Microseconds => Unit::Microseconds,
        TimeUnit::Milliseconds => Unit::Milliseconds,
        TimeUnit::Centiseconds => Unit::Centiseconds,
        TimeUnit::Seconds => Unit::Seconds,
    }
}

/// The samples of each series, those with an answer of a probe apart; a series without samples is there, too.
fn series(world: &World, scenario: &Scenario) -> Vec<Series> {
    let mut found = Vec::new();
    for (at, spec) in scenario.workload.series.iter().enumerate() {
        let of_this = world
            .workload
            .samples
            .iter()
            .filter_map(|(number, samples)| {
                let (series, suffix) = series_name(*number);
                (series == at).then_some((suffix, samples.clone()))
            });
        let mut of_this: Vec<_> = of_this.collect();
        if of_this.is_empty() {
            of_this.push(("", Vec::new()));
        }
        found.extend(of_this.into_iter().map(|(suffix, samples)| Series {
            name: format!("{}{suffix}", spec.name),
            unit: unit(spec.unit),
            samples,
        }));
    }
    found
}

/// The recording of a run that is over.
pub(crate) fn recording(world: &mut World, scenario: &Scenario, verdict: Verdict) -> Recording {
    let (tasks, events) = tasks::with_events(world);
    let ends = world
        .sched
        .tasks()
        .iter()
        .filter(|task| !task.kthread)
        .filter_map(|task| task.end);
    let last_end = ends.max().unwrap_or(0);
    let all_ended = world.sched.live() == 0;
    Recording {
        run: RunInfo {
            workload: scenario.workload.name.clone(),
            params: scenario.params.clone(),
            machine: scenario.machine.name.clone(),
            kernel: scenario.kernel.text.clone(),
            backend: "model".into(),
            lowmark: env!("CARGO_PKG_VERSION").into(),
            seed: scenario.seed,
            left_out: world
                .mm
                .kernel
                .coverage
                .left_out_of(world.mm.kernel.version)
                .into_iter()
                .map(str::to_owned)
                .collect(),
        },
        outcome: outcome(verdict),
        not_modelled: remarks(scenario, &world.mm.kernel),
        elapsed_ns: if all_ended {
            last_end
        } else {
            world.sched.now()
        },
        counters: {
            let mut counters = world.counters();
            counters.extend(world.diskstats(&scenario.machine));
            counters.extend(world.mm.memcg_counters());
            counters.extend(world.errors(&scenario.machine));
            counters.extend(world.mountstats(&scenario.machine));
            counters.extend(world.lock_stat());
            counters.extend(world.task_io());
            counters
        },
        state: {
            let mut state = world.state();
            state.extend(world.mm.memcg_state());
            state
        },
        tasks,
        phases: world.workload.phases.clone(),
        series: series(world, scenario),
        events,
        gauges: Gauges::default(),
        history: Vec::new(),
        system: None,
    }
}
