//! Identities that reclaim obeys: what a trace adds up to is what the kernel counted meanwhile.
//!
//! They hold to the page (43 of 44 captures of 6.1 to 7.2 with the classic LRU, and those with generations), so a
//! recording in which one does not has lost events, or comes of a model that is wrong.

use crate::vmstat::Deltas;
use lowmark_record::{Event, Field, Kind, Recording, Sink, Tables};
use serde::Serialize;
use std::collections::BTreeMap;

/// Pages that `nr_vmscan_write` and the trace of writes may differ by: the counter is folded per CPU, and
/// a write may be counted before the trace begins.
const WRITES_SLACK: u64 = 45;

/// A sum of a trace and the counter that it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// What is added up.
    pub name: &'static str,
    /// Sum of the trace.
    pub trace: u64,
    /// Change of the counters.
    pub counters: u64,
    /// Most that both may differ by.
    pub slack: u64,
}

impl Identity {
    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.trace.abs_diff(self.counters) <= self.slack
    }
}

/// What a trace adds up to, event by event.
#[derive(Debug, Default)]
pub struct Sums {
    /// Whether there was any event at all.
    any: bool,
    /// Who a task of the trace is, by its index.
    actors: Vec<usize>,
    /// Pages of batches that are under way.
    begun: BTreeMap<u32, u64>,
    scanned: [u64; 3],
    /// Pages taken off lists, and those that generations have moved to others meanwhile.
    taken: [u64; 3],
    sorted: u64,
    /// The most pages that a batch was to take.
    largest_request: u64,
    reclaimed: [u64; 3],
    direct_begins: u64,
    memcg_begins: u64,
    writes: u64,
}

/// The most pages that are taken off an inactive list together (`SWAP_CLUSTER_MAX`).
const CLASSIC_BATCH: u64 = 32;

const KSWAPD: usize = 0;
const DIRECT: usize = 1;
const OTHERS: usize = 2;

/// Who reclaims, as counters tell it (`reclaimer_offset` in mm/vmscan.c).
fn actor(name: &str) -> usize {
    match name {
        name if name.starts_with("kswapd") => KSWAPD,
        "khugepaged" => OTHERS,
        _ => DIRECT,
    }
}

/// Whether a list is one of those that are scanned for pages to reclaim (`enum lru_list`).
fn is_inactive(lru: u64) -> bool {
    matches!(lru, 0 | 2)
}

impl Sums {
    fn of(recording: &Recording) -> Sums {
        let mut sums = Sums::default();
        recording.replay(&mut sums);
        sums
    }

    /// Who a task is.
    fn actor(&mut self, task: u32, tables: &Tables) -> usize {
        let known = self.actors.len();
        let new = tables.tasks().iter().skip(known);
        self.actors.extend(new.map(|task| actor(&task.name)));
        self.of_task(task)
    }

    fn of_task(&self, task: u32) -> usize {
        self.actors.get(task as usize).copied().unwrap_or(DIRECT)
    }

    /// Whether pages stood in generations, as far as the trace tells: batches of the classic LRU are of 32 pages at most.
    fn shows_generations(&self) -> bool {
        self.largest_request > CLASSIC_BATCH
    }

    /// Pages scanned, with those of batches that the end found under way: pages are counted when they are isolated,
    /// and nothing else is known of such a batch.
    fn scanned(&self) -> [u64; 3] {
        let mut scanned = self.scanned;
        for (&task, pages) in &self.begun {
            scanned[self.of_task(task)] += pages;
        }
        scanned
    }
}

impl Sink for Sums {
    #[inline]
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.any = true;
        match event.kind {
            Kind::LruIsolate if event.get(Field::Lru).is_some_and(is_inactive) => {
                let actor = self.actor(event.task, tables);
                let field = |field| event.get(field).unwrap_or(0);
                let (scanned, taken) = (field(Field::NrScanned), field(Field::NrTaken));
                self.begun.insert(event.task, scanned);
                self.taken[actor] += taken;
                let gone_past = scanned.saturating_sub(taken);
                self.sorted += gone_past.saturating_sub(field(Field::NrSkipped));
                self.largest_request = self.largest_request.max(field(Field::NrRequested));
            }
            Kind::LruShrinkInactive => {
                let actor = self.actor(event.task, tables);
                self.begun.remove(&event.task);
                self.scanned[actor] += event.get(Field::NrScanned).unwrap_or(0);
                self.reclaimed[actor] += event.get(Field::NrReclaimed).unwrap_or(0);
            }
            Kind::DirectReclaimBegin => self.direct_begins += 1,
            Kind::MemcgReclaimBegin => self.memcg_begins += 1,
            Kind::Writepage | Kind::WriteFolio => self.writes += 1,
            _ => {}
        }
    }
}

/// The identities of a recording; none if it holds no events of reclaim.
///
/// Where pages stand in generations (`lru_gen`), what is taken off their lists counts as scanned, and what is moved between
/// them as `pgrefill`: the trace of reclaimed batches tells those again that are tried again.
///
/// Left out is what the recording cannot say: reclaim by tasks where a memory cgroup was reclaimed from, which
/// counters of the system leave out.
pub fn identities(recording: &Recording) -> Vec<Identity> {
    identities_of(recording, &Sums::of(recording))
}

/// The same of a recording whose events went by `sums`.
pub fn identities_of(recording: &Recording, sums: &Sums) -> Vec<Identity> {
    if !sums.any {
        return Vec::new();
    }
    let generations = lru_gen(recording).is_some() || sums.shows_generations();
    let scanned = if generations {
        sums.taken
    } else {
        sums.scanned()
    };
    let counters = Deltas::new(&recording.counters);
    let mut identities = Vec::new();
    let mut add = |name, trace, counters: Option<u64>, slack| {
        identities.extend(counters.map(|counters| Identity {
            name,
            trace,
            counters,
            slack,
        }));
    };
    let total = |prefix: &str| {
        let parts = |names: [&str; 2]| {
            let parts = names.map(|part| counters.zones(&format!("{prefix}_{part}")));
            parts.into_iter().flatten().reduce(u64::saturating_add)
        };
        parts(["anon", "file"]).or_else(|| parts(["kswapd", "direct"]))
    };
    let all = |sums: [u64; 3]| sums.iter().sum::<u64>();
    let by_tasks = sums.memcg_begins == 0;
    add("pages scanned", all(scanned), total("pgscan"), 0);
    add(
        "pages scanned by kswapd",
        scanned[KSWAPD],
        counters.zones("pgscan_kswapd"),
        0,
    );
    if by_tasks {
        let direct = counters.zones("pgscan_direct");
        add("pages scanned directly", scanned[DIRECT], direct, 0);
    }
    if generations {
        let moved = counters.zones("pgrefill");
        add("pages moved between generations", sums.sorted, moved, 0);
    }
    // Up to 3.3 `pgsteal_<zone>` counts both, and kswapd's share is apart.
    if let Some(kswapd) = counters.kswapd_steal() {
        let direct = counters.direct_steal();
        let both = total("pgsteal").filter(|_| recording.counters.contains_key("pgsteal_anon"));
        let both = both.or_else(|| Some(kswapd.saturating_add(direct?)));
        add("pages reclaimed", all(sums.reclaimed), both, 0);
        add(
            "pages reclaimed by kswapd",
            sums.reclaimed[KSWAPD],
            Some(kswapd),
            0,
        );
        if by_tasks {
            add(
                "pages reclaimed directly",
                sums.reclaimed[DIRECT],
                direct,
                0,
            );
        }
    }
    add(
        "direct reclaims",
        sums.direct_begins,
        counters.zones("allocstall"),
        0,
    );
    let writes = counters.zones("nr_vmscan_write");
    add("page writes by reclaim", sums.writes, writes, WRITES_SLACK);
    identities
}

/// `lru_gen.enabled` of the kernel of a recording, if pages stood in generations.
pub fn lru_gen(recording: &Recording) -> Option<u64> {
    const FILE: &str = "sys/kernel/mm/lru_gen/enabled";
    let enabled = recording.system.as_deref()?.before.get(FILE)?;
    let bits = u64::from_str_radix(enabled.trim().trim_start_matches("0x"), 16).ok()?;
    Some(bits).filter(|&bits| bits != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_record::{Event, EventLog, Names, System, TaskTimes};

    fn recording() -> Recording {
        let counters = [
            ("pgscan_anon", 40),
            ("pgscan_file", 24),
            ("pgscan_kswapd", 32),
            ("pgscan_direct", 32),
            ("pgsteal_anon", 8),
            ("pgsteal_file", 1),
            ("pgsteal_kswapd", 5),
            ("pgsteal_direct", 4),
            ("allocstall_normal", 1),
            ("nr_vmscan_write", 45),
        ];
        let counters = counters.map(|(name, value)| (name.to_owned(), value));
        let mut recording = crate::comparison::recording_of(counters.into());
        recording.tasks = ["kswapd0", "main"]
            .into_iter()
            .zip(1..)
            .map(|(name, pid)| TaskTimes {
                name: name.into(),
                pid,
                kthread: false,
                user_ns: 0,
                system_ns: 0,
                start_ns: 0,
                end_ns: None,
            })
            .collect();
        let shrink = |task, scanned, reclaimed| {
            Event::new(Kind::LruShrinkInactive, 1, 0, task)
                .with(&[(Field::NrScanned, scanned), (Field::NrReclaimed, reclaimed)])
        };
        let events = [
            Event::new(Kind::DirectReclaimBegin, 1, 0, 1),
            shrink(0, 32, 5),
            shrink(1, 32, 4),
        ];
        recording.events = EventLog::of(Names::default(), &events);
        recording
    }

    fn broken(recording: &Recording) -> Vec<&'static str> {
        let identities = identities(recording).into_iter();
        identities.filter(|i| !i.holds()).map(|i| i.name).collect()
    }

    #[test]
    fn a_whole_trace_agrees_with_the_counters() {
        let mut recording = recording();
        assert_eq!(identities(&recording).len(), 8);
        assert_eq!(broken(&recording), Vec::<&str>::new());
        recording.counters.insert("nr_vmscan_write".into(), 46);
        recording.counters.insert("pgsteal_direct".into(), 3);
        recording.counters.insert("allocstall_movable".into(), 1);
        assert_eq!(
            broken(&recording),
            [
                "pages reclaimed directly",
                "direct reclaims",
                "page writes by reclaim"
            ]
        );
    }

    #[test]
    fn a_batch_that_the_end_found_under_way_was_scanned() {
        let mut recording = recording();
        let isolate = |task, lru, scanned| {
            Event::new(Kind::LruIsolate, 1, 0, task)
                .with(&[(Field::Lru, lru), (Field::NrScanned, scanned)])
        };
        let mut events: Vec<Event> = recording.events.iter().collect();
        events.insert(1, isolate(0, 0, 32));
        events.extend([isolate(0, 1, 7), isolate(0, 2, 20)]);
        recording.events = EventLog::of(Names::default(), &events);
        assert_eq!(
            broken(&recording),
            ["pages scanned", "pages scanned by kswapd"]
        );
        recording.counters.insert("pgscan_anon".into(), 60);
        recording.counters.insert("pgscan_kswapd".into(), 52);
        assert_eq!(broken(&recording), Vec::<&str>::new());
    }

    /// A batch that is tried again is told twice; what was taken off the lists tells what was scanned.
    #[test]
    fn generations_have_identities_of_their_own() {
        let mut recording = recording();
        let isolate = |task, requested| {
            let fields = [
                (Field::Lru, 0),
                (Field::NrRequested, requested),
                (Field::NrScanned, 50),
                (Field::NrSkipped, 7),
                (Field::NrTaken, 32),
            ];
            Event::new(Kind::LruIsolate, 1, 0, task).with(&fields)
        };
        let shrink = |task| {
            Event::new(Kind::LruShrinkInactive, 1, 0, task)
                .with(&[(Field::NrScanned, 50), (Field::NrReclaimed, 0)])
        };
        recording.counters.insert("pgrefill".into(), 22);
        let told: Vec<Event> = recording.events.iter().collect();
        for requested in [32, 4096] {
            let mut events = told.clone();
            events.extend([isolate(0, requested), isolate(1, requested)]);
            events.extend([shrink(0), shrink(1)]);
            recording.events = EventLog::of(Names::default(), &events);
            let scans = broken(&recording).len();
            assert_eq!(scans, if requested == 32 { 3 } else { 0 });
        }
        // Kernels say it themselves.
        let mut system = System::default();
        let file = "sys/kernel/mm/lru_gen/enabled".to_owned();
        system.before.insert(file.clone(), "0x0000\n".into());
        recording.system = Some(Box::new(system.clone()));
        assert_eq!(lru_gen(&recording), None);
        system.before.insert(file, "0x0007\n".into());
        recording.system = Some(Box::new(system));
        assert_eq!(lru_gen(&recording), Some(7));
        assert_eq!(identities(&recording).len(), 9);
    }

    #[test]
    fn nothing_is_said_of_a_recording_without_events() {
        let mut recording = recording();
        recording.events = EventLog::default();
        assert!(identities(&recording).is_empty());
    }
}
