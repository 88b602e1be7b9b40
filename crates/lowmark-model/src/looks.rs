//! What files under `/proc` say over the run, looked at now and then: state and counters of `/proc/vmstat`, free pages and
//! watermarks of `/proc/zoneinfo`, sizes of `/proc/meminfo`.
//!
//! 1. A look is taken at the first event after each tick of virtual time.
//! 2. When there are [`LOOKS_MAX`], every second one is dropped and ticks get twice as far apart, so that
//!    a run of any length has between half as many and all of them.

use crate::mm::types::Mark;
use crate::time::{MSEC, Nanos};
use crate::world::World;
use lowmark_record::{CounterLog, Gauges, vmstat};
use lowmark_spec::machine::PAGE_SIZE;
use std::collections::BTreeMap;

/// Looks that are kept at most.
const LOOKS_MAX: usize = 1024;
/// Distance of the first looks.
const FIRST_INTERVAL: Nanos = MSEC;

/// Looks so far.
#[derive(Debug)]
pub(crate) struct Looks {
    interval: Nanos,
    next: Nanos,
    state: Gauges,
    /// By the name of the file.
    files: [(&'static str, Gauges); 3],
}

impl Looks {
    pub(crate) fn new() -> Looks {
        Looks {
            interval: FIRST_INTERVAL,
            next: 0,
            state: Gauges::default(),
            files: [vmstat::FILE, "proc/zoneinfo", "proc/meminfo"]
                .map(|file| (file, Gauges::default())),
        }
    }

    /// Takes a look if it is time.
    #[inline]
    pub(crate) fn look(&mut self, world: &World) {
        if world.sched.now() >= self.next {
            self.take(world);
        }
    }

    #[cold]
    fn take(&mut self, world: &World) {
        let now = world.sched.now();
        add(&mut self.state, now, world.state());
        let said = [world.counters(), world.zoneinfo(), world.meminfo()];
        for ((_, rows), fields) in self.files.iter_mut().zip(said) {
            add(rows, now, fields);
        }
        if self.state.samples.len() == LOOKS_MAX {
            thin(&mut self.state);
            self.files.iter_mut().for_each(|(_, rows)| thin(rows));
            self.interval *= 2;
        }
        self.next = (now / self.interval + 1) * self.interval;
    }

    /// The state of memory, and what else the files said.
    pub(crate) fn finish(self) -> (Gauges, Vec<CounterLog>) {
        let logs = self.files.iter();
        let logs = logs.map(|(file, rows)| CounterLog::of(*file, rows));
        (self.state, logs.collect())
    }
}

/// Adds a look. A name that came up since, as `nr_mlock` does with the first mlock(2), was 0 at the looks before.
fn add(rows: &mut Gauges, now: Nanos, fields: BTreeMap<String, u64>) {
    if !rows.names.iter().eq(fields.keys()) {
        let column = |name| rows.names.iter().position(|known| known == name);
        let columns: Vec<Option<usize>> = fields.keys().map(column).collect();
        for (_, values) in &mut rows.samples {
            let value = |column: &Option<usize>| column.map_or(0, |column| values[column]);
            *values = columns.iter().map(value).collect();
        }
        rows.names = fields.keys().cloned().collect();
    }
    rows.samples.push((now, fields.into_values().collect()));
}

/// Drops every second look.
fn thin(rows: &mut Gauges) {
    let mut at = 0;
    rows.samples.retain(|_| {
        at += 1;
        at % 2 == 1
    });
}

impl World {
    /// `/proc/zoneinfo` of each zone, pages, as `NODE/ZONE/FIELD`.
    fn zoneinfo(&self) -> BTreeMap<String, u64> {
        let fields = self.mm.zones.iter().flat_map(|zone| {
            let fields = [
                ("free", zone.free),
                ("min", zone.unboosted(Mark::Min)),
                ("low", zone.unboosted(Mark::Low)),
                ("high", zone.unboosted(Mark::High)),
                ("boost", zone.watermark_boost),
                ("managed", zone.managed),
            ];
            let (node, kind) = (usize::from(zone.node), zone.kind.zone_name());
            fields.map(|(field, pages)| (format!("{node}/{kind}/{field}"), pages))
        });
        fields.collect()
    }

    /// What `/proc/meminfo` says of the size of memory and swap, kB.
    fn meminfo(&self) -> BTreeMap<String, u64> {
        const KB: u64 = PAGE_SIZE / 1024;
        let managed: u64 = self.mm.zones.iter().map(|zone| zone.managed).sum();
        let swap = &self.mm.swap;
        let fields = [
            ("MemTotal", managed * KB),
            ("SwapTotal", swap.total_slots() * KB),
            (
                "SwapFree",
                swap.total_slots().saturating_sub(swap.in_use()) * KB,
            ),
        ];
        fields
            .into_iter()
            .map(|(name, kb)| (name.to_owned(), kb))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_comes_up_was_0_before() {
        let mut rows = Gauges::default();
        let fields = |names: &[&str]| -> BTreeMap<String, u64> {
            let values = names.iter().zip(1..);
            values
                .map(|(name, value)| ((*name).to_owned(), value))
                .collect()
        };
        add(&mut rows, 5, fields(&["a", "c"]));
        add(&mut rows, 6, fields(&["a", "b", "c"]));
        assert_eq!(rows.names, ["a", "b", "c"]);
        assert_eq!(rows.samples, [(5, vec![1, 0, 2]), (6, vec![1, 2, 3])]);
    }
}
