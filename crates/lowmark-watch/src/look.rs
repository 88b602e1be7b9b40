//! What memory looked like at one time.

use crate::rates::{Rate, Totals};
use lowmark_record::vmstat;
use lowmark_report::vmstat::Deltas;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page that `/proc/meminfo` counts in kB.
const PAGE_KB: u64 = 4;

/// What a file under `/proc`, or the files of a cgroup, said: fields by name, as in the log of a recording.
pub type Fields = BTreeMap<String, u64>;

/// A zone of a node, pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// `NODE/ZONE`, as `0/DMA32`.
    pub name: String,
    /// Free pages.
    pub free: u64,
    /// Its watermarks min, low and high, the boost included.
    pub marks: [u64; 3],
}

/// What memory is used for, pages. Where a kernel does not say one of them, it is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Levels {
    /// All that the allocator manages; 0 if nothing says it.
    pub total: u64,
    /// Free pages.
    pub free: u64,
    /// Anonymous and shared memory on the LRU lists.
    pub anon: u64,
    /// Pages of files on the LRU lists.
    pub file: u64,
    /// Pages of slabs.
    pub slab: u64,
    /// Dirty pages.
    pub dirty: u64,
    /// Pages on their way to a device.
    pub writeback: u64,
    /// Dirty pages from which on flushers write, and those at which writers are throttled; 0 if nothing says it.
    pub dirty_thresholds: [u64; 2],
    /// Size of swap.
    pub swap: u64,
    /// Slots of it in use.
    pub swapped: u64,
}

/// A memory cgroup, bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its directory.
    pub name: String,
    /// What is charged to it.
    pub current: u64,
    /// What may be; none without a limit.
    pub max: Option<u64>,
}

impl Group {
    /// The last part of its directory.
    pub fn short(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// A task that was busy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its process id.
    pub pid: u32,
    /// `comm`.
    pub name: Arc<str>,
    /// Its state, the letter of `/proc/PID/stat`.
    pub state: char,
    /// Pages of it in memory.
    pub rss: u64,
    /// CPU time that it has used, ns.
    pub cpu_ns: u64,
    /// Major faults that it has taken.
    pub major_faults: u64,
}

impl Task {
    /// A task by what its `stat` said, as in the log of a recording; none if that was nothing.
    pub fn new(pid: u32, name: impl Into<Arc<str>>, fields: &Fields) -> Option<Task> {
        // USER_HZ
        const TICK_NS: u64 = 10_000_000;
        let field = |name: &str| fields.get(name).copied();
        let state = field("state").and_then(|letter| u8::try_from(letter).ok());
        Some(Task {
            pid,
            name: name.into(),
            state: state.map_or('?', char::from),
            rss: field("rss")?,
            cpu_ns: (field("utime")?.saturating_add(field("stime")?)).saturating_mul(TICK_NS),
            major_faults: field("majflt")?,
        })
    }
}

/// What memory looked like at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// When, ns.
    pub time_ns: u64,
    /// What memory is used for.
    pub levels: Levels,
    /// Zones that have pages, in the order of their nodes.
    pub zones: Vec<Zone>,
    /// Memory cgroups.
    pub groups: Vec<Group>,
    /// Tasks that were busy about then.
    pub tasks: Vec<Task>,
    /// What was counted until then.
    pub totals: Totals,
}

impl Look {
    /// The look of files that said something by then; `said` gives what one of them said.
    pub fn new<'a>(time_ns: u64, files: impl IntoIterator<Item = (&'a str, Fields)>) -> Look {
        let mut look = Look {
            time_ns,
            levels: Levels::default(),
            zones: Vec::new(),
            groups: Vec::new(),
            tasks: Vec::new(),
            totals: Totals::default(),
        };
        for (file, fields) in files {
            match file {
                vmstat::FILE => look.vmstat(&fields),
                "proc/zoneinfo" => look.zones = zones(&fields),
                "proc/meminfo" => look.meminfo(&fields),
                "proc/pressure/memory" => look.pressure(&fields),
                _ => look.groups.extend(group(file, &fields)),
            }
        }
        look
    }

    fn vmstat(&mut self, fields: &Fields) {
        let sum = |names: &[&str]| {
            let values = names.iter().filter_map(|name| fields.get(*name));
            values.fold(0, |sum: u64, value| sum.saturating_add(*value))
        };
        self.levels.free = sum(&["nr_free_pages"]);
        self.levels.anon = sum(&["nr_inactive_anon", "nr_active_anon"]);
        self.levels.file = sum(&["nr_inactive_file", "nr_active_file"]);
        self.levels.slab = sum(&["nr_slab_reclaimable", "nr_slab_unreclaimable"]);
        self.levels.dirty = sum(&["nr_dirty"]);
        self.levels.writeback = sum(&["nr_writeback"]);
        self.levels.dirty_thresholds =
            ["nr_dirty_background_threshold", "nr_dirty_threshold"].map(|name| sum(&[name]));
        let counters = Deltas::new(fields);
        for rate in Rate::ALL {
            if let Some(total) = rate.total(counters) {
                self.totals.set(rate, total);
            }
        }
    }

    fn meminfo(&mut self, fields: &Fields) {
        let pages = |name| fields.get(name).map_or(0, |kb| kb / PAGE_KB);
        self.levels.total = pages("MemTotal");
        self.levels.swap = pages("SwapTotal");
        self.levels.swapped = self.levels.swap.saturating_sub(pages("SwapFree"));
    }

    fn pressure(&mut self, fields: &Fields) {
        for (name, rate) in [("some", Rate::SomeWait), ("full", Rate::FullWait)] {
            if let Some(&us) = fields.get(name) {
                self.totals.set(rate, us);
            }
        }
    }
}

/// The zones of `/proc/zoneinfo` that have pages.
fn zones(fields: &Fields) -> Vec<Zone> {
    let names = fields.keys().filter_map(|name| name.strip_suffix("/free"));
    let zone = |name: &str| {
        let field = |field: &str| fields.get(&format!("{name}/{field}")).copied();
        let boost = field("boost").unwrap_or(0);
        let zone = Zone {
            name: name.to_owned(),
            free: field("free")?,
            marks: ["min", "low", "high"]
                .map(|mark| field(mark).unwrap_or(0).saturating_add(boost)),
        };
        // To 3.8 kernels do not say what the allocator manages.
        let pages = field("managed").or_else(|| field("present"))?;
        (pages > 0).then_some(zone)
    };
    let mut zones: Vec<Zone> = names.filter_map(zone).collect();
    // Lower zones lie below: DMA, DMA32, Normal, HighMem, Movable.
    zones.sort_by_key(|zone| {
        let (node, kind) = zone.name.split_once('/').unwrap_or(("", &zone.name));
        let order = ["DMA", "DMA32", "Normal", "HighMem", "Movable"];
        let place = order.iter().position(|known| *known == kind);
        (
            node.parse().unwrap_or(u64::MAX),
            place.unwrap_or(order.len()),
        )
    });
    zones
}

/// The files of a cgroup of either version.
fn group(directory: &str, fields: &Fields) -> Option<Group> {
    let first = |names: [&str; 2]| names.iter().find_map(|name| fields.get(*name)).copied();
    // Version 1 writes a limit of none as the largest number of whole pages that fits.
    const NONE: u64 = i64::MAX as u64 / 4096 * 4096;
    Some(Group {
        name: directory.to_owned(),
        current: first(["memory.current", "memory.usage_in_bytes"])?,
        max: first(["memory.max", "memory.limit_in_bytes"]).filter(|&max| max < NONE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        let words: Vec<&str> = text.split_whitespace().collect();
        let pairs = words.chunks(2);
        let pair = |pair: &[&str]| (pair[0].to_owned(), pair[1].parse().expect("a number"));
        pairs.map(pair).collect()
    }

    #[test]
    fn a_look_is_what_files_said() {
        let vmstat = "nr_free_pages 10 nr_inactive_anon 3 nr_active_anon 4 nr_dirty 2 pgscan_kswapd_dma 5 \
                      pgscan_kswapd_normal 6 allocstall 7";
        let zoneinfo = "0/Normal/free 8 0/Normal/min 1 0/Normal/low 2 0/Normal/high 3 0/Normal/boost 10 \
                        0/Normal/managed 99 0/DMA/free 2 0/DMA/managed 9 0/Movable/free 0 0/Movable/managed 0 10/DMA/free \
                        1 10/DMA/present 1 2/DMA/free 1 2/DMA/present 1";
        let look = Look::new(
            5,
            [
                ("proc/vmstat", fields(vmstat)),
                ("proc/zoneinfo", fields(zoneinfo)),
                (
                    "proc/meminfo",
                    fields("MemTotal 400 SwapTotal 80 SwapFree 60"),
                ),
                ("proc/pressure/memory", fields("some 11 full 3")),
                (
                    "sys/fs/cgroup/a",
                    fields("memory.current 7 memory.max 18446744073709551615"),
                ),
                ("proc/diskstats", fields("vda/reads 1")),
            ],
        );
        let levels = Levels {
            total: 100,
            free: 10,
            anon: 7,
            dirty: 2,
            swap: 20,
            swapped: 5,
            ..Levels::default()
        };
        assert_eq!(look.levels, levels);
        let names: Vec<&str> = look.zones.iter().map(|zone| zone.name.as_str()).collect();
        assert_eq!(names, ["0/DMA", "0/Normal", "2/DMA", "10/DMA"]);
        assert_eq!(look.zones[1].marks, [11, 12, 13]);
        assert_eq!(look.groups[0].max, None);
        let totals = [
            Rate::KswapdScan,
            Rate::DirectStall,
            Rate::SomeWait,
            Rate::SwapIn,
        ];
        let totals = totals.map(|rate| look.totals.get(rate));
        assert_eq!(totals, [Some(11), Some(7), Some(11), None]);
    }
}
