//! "MMTests Statistics: vmstat": rows derived from the change of `/proc/vmstat` over a run.
//!
//! Source: `bin/lib/MMTests/MonitorMmtestsvmstat.pm` of mmtests and its predecessors of 2010 to 2012,
//! checked against published tables. Each row is one entry of [`rows`]; a row exists only where the
//! kernel has its fields, so kernels of different eras print different rows under the same names:
//!
//! * up to 3.3, `kswapd_steal` counts what kswapd reclaimed and `pgsteal_<zone>` everything, so direct
//!   reclaim is the difference; from 3.4 on, each has fields of its own;
//! * up to 4.7 the fields have a zone suffix, from 4.8 on none (`allocstall` the other way round at
//!   4.10); sums over both forms serve all;
//! * `pgscan_direct_throttle` counts tasks, not pages, and is left out.

use crate::stats::Preference;
use std::collections::BTreeMap;

/// Suffixes of zone counters.
const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// How a value is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueFormat {
    /// Whole number.
    Count,
    /// Whole number with a percent sign.
    Percent,
    /// Digits after the point.
    Decimals(usize),
    /// Digits after the point and a percent sign.
    Percents(usize),
    /// Whole number with a unit behind it, `4604ms`.
    With(&'static str),
}

impl ValueFormat {
    /// The value in this form.
    pub fn text(self, value: f64) -> String {
        match self {
            ValueFormat::Count => format!("{value:.0}"),
            ValueFormat::Percent => format!("{value:.0}%"),
            ValueFormat::Decimals(digits) => format!("{value:.digits$}"),
            ValueFormat::Percents(digits) => format!("{value:.digits$}%"),
            ValueFormat::With(unit) => format!("{value:.0}{unit}"),
        }
    }
}

/// A row with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct VmstatRow {
    /// Name as mmtests prints it.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Which values are good.
    pub better: Preference,
    /// How it is printed.
    pub format: ValueFormat,
    /// Value as mmtests has it: efficiencies and shares are cut down to whole percent.
    pub value: f64,
    /// The same before it is cut.
    pub exact: f64,
}

/// The counters of one run, and sums of them.
#[derive(Debug, Clone, Copy)]
pub struct Deltas<'a> {
    counters: &'a BTreeMap<String, u64>,
    elapsed_s: f64,
}

impl<'a> Deltas<'a> {
    /// Those of a run of unknown length.
    pub fn new(counters: &'a BTreeMap<String, u64>) -> Deltas<'a> {
        Deltas {
            counters,
            elapsed_s: 0.0,
        }
    }

    /// One counter; none if the kernel does not have it.
    pub fn get(self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }

    /// Sum of `prefix` and `prefix_<zone>`, if any of them exists.
    pub fn zones(self, prefix: &str) -> Option<u64> {
        let zoned = ZONES
            .iter()
            .map(|zone| self.get(&format!("{prefix}_{zone}")));
        std::iter::once(self.get(prefix))
            .chain(zoned)
            .flatten()
            .reduce(u64::saturating_add)
    }

    fn first(self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Pages that kswapd reclaimed.
    pub fn kswapd_steal(self) -> Option<u64> {
        self.get("kswapd_steal")
            .or_else(|| self.zones("pgsteal_kswapd"))
    }

    /// Pages that direct reclaim reclaimed.
    pub fn direct_steal(self) -> Option<u64> {
        match self.get("kswapd_steal") {
            Some(kswapd) => Some(self.zones("pgsteal")?.saturating_sub(kswapd)),
            None => self.zones("pgsteal_direct"),
        }
    }

    /// Pages that kswapd scanned.
    pub fn kswapd_scan(self) -> Option<u64> {
        self.zones("pgscan_kswapd")
    }

    /// Pages that direct reclaim scanned.
    pub fn direct_scan(self) -> Option<u64> {
        self.zones("pgscan_direct")
    }

    fn velocity(self, scanned: Option<u64>) -> Option<f64> {
        (self.elapsed_s > 0.0)
            .then(|| scanned.map(|s| s as f64 / self.elapsed_s))
            .flatten()
    }

    fn compaction_cost(self) -> Option<f64> {
        // The cost model of mmtests in abstract units. Its term for free scanning reads a field that
        // no kernel has (`compact_migrate_free`) and is therefore 0 in every published figure.
        let [scan, moved, failed, isolated] = [7.0, 1038.0, 14.0, 19.0];
        let part = |weight: f64, name: &str| weight * self.get(name).unwrap_or(0) as f64;
        self.get("compact_migrate_scanned")?;
        let sum = part(scan, "compact_migrate_scanned")
            + part(isolated, "compact_isolated")
            + part(moved, "pgmigrate_success")
            + part(failed, "pgmigrate_fail");
        Some(sum / 1e6)
    }
}

/// Where the value of a row comes from.
#[derive(Clone, Copy)]
enum Formula {
    /// The first of these fields that exists.
    Field(&'static [&'static str]),
    /// Sum of a field and its zone forms.
    Zones(&'static str),
    /// Computed.
    Of(fn(Deltas<'_>) -> Option<f64>),
    /// A part in percent of a whole, cut to whole percent.
    Share(fn(Deltas<'_>) -> Option<Share>),
}

/// A part of a whole.
#[derive(Clone, Copy)]
struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    /// trunc(100·part/whole), exactly.
    fn whole_percent(self) -> f64 {
        (u128::from(self.part) * 100 / u128::from(self.whole).max(1)) as f64
    }

    fn percent(self) -> f64 {
        100.0 * self.part as f64 / self.whole.max(1) as f64
    }
}

/// One row of the block.
struct Definition {
    name: &'static str,
    unit: &'static str,
    better: Preference,
    format: ValueFormat,
    formula: Formula,
}

const fn row(
    name: &'static str,
    unit: &'static str,
    better: Preference,
    format: ValueFormat,
    formula: Formula,
) -> Definition {
    Definition {
        name,
        unit,
        better,
        format,
        formula,
    }
}

/// A counter of mere activity.
const fn neutral(
    name: &'static str,
    unit: &'static str,
    fields: &'static [&'static str],
) -> Definition {
    row(
        name,
        unit,
        Preference::None,
        ValueFormat::Count,
        Formula::Field(fields),
    )
}

/// A counter of which less is better.
const fn lower(name: &'static str, unit: &'static str, formula: Formula) -> Definition {
    row(name, unit, Preference::Lower, ValueFormat::Count, formula)
}

fn number(count: Option<u64>) -> Option<f64> {
    count.map(|c| c as f64)
}

/// Reclaimed per scanned; 100 % where nothing was scanned.
fn efficiency(reclaimed: Option<u64>, scanned: Option<u64>) -> Option<Share> {
    let (part, whole) = (reclaimed?, scanned?);
    Some(if whole == 0 {
        Share { part: 1, whole: 1 }
    } else {
        Share { part, whole }
    })
}

/// The rows in printed order.
const ROWS: &[Definition] = {
    use Formula::{Field, Of, Share as Cut, Zones};
    use Preference::{Higher, None as Neutral};
    use ValueFormat::{Count, Decimals, Percent};
    &[
        neutral("Page Ins", "KiB", &["pgpgin"]),
        neutral("Page Outs", "KiB", &["pgpgout"]),
        row(
            "Minor Faults",
            "faults",
            Neutral,
            Count,
            Of(|d| number(Some(d.get("pgfault")?.saturating_sub(d.get("pgmajfault")?)))),
        ),
        neutral("Major Faults", "faults", &["pgmajfault"]),
        lower("Swap Ins", "pages", Field(&["pswpin"])),
        lower("Swap Outs", "pages", Field(&["pswpout"])),
        lower("Allocation stalls", "stalls", Zones("allocstall")),
        neutral("DMA allocs", "pages", &["pgalloc_dma"]),
        neutral("DMA32 allocs", "pages", &["pgalloc_dma32"]),
        neutral("Normal allocs", "pages", &["pgalloc_normal"]),
        neutral("High allocs", "pages", &["pgalloc_high"]),
        neutral("Movable allocs", "pages", &["pgalloc_movable"]),
        lower("Direct pages scanned", "pages", Zones("pgscan_direct")),
        row(
            "Kswapd pages scanned",
            "pages",
            Neutral,
            Count,
            Zones("pgscan_kswapd"),
        ),
        row(
            "Kswapd pages reclaimed",
            "pages",
            Neutral,
            Count,
            Of(|d| number(d.kswapd_steal())),
        ),
        row(
            "Direct pages reclaimed",
            "pages",
            Neutral,
            Count,
            Of(|d| number(d.direct_steal())),
        ),
        row(
            "Kswapd efficiency",
            "%",
            Higher,
            Percent,
            Cut(|d| efficiency(d.kswapd_steal(), d.kswapd_scan())),
        ),
        row(
            "Kswapd velocity",
            "pages/s",
            Neutral,
            Decimals(3),
            Of(|d| d.velocity(d.kswapd_scan())),
        ),
        row(
            "Direct efficiency",
            "%",
            Higher,
            Percent,
            Cut(|d| efficiency(d.direct_steal(), d.direct_scan())),
        ),
        row(
            "Direct velocity",
            "pages/s",
            Neutral,
            Decimals(3),
            Of(|d| d.velocity(d.direct_scan())),
        ),
        row(
            "Percentage direct scans",
            "%",
            Neutral,
            Percent,
            Cut(|d| {
                let part = d.direct_scan()?;
                let whole = part.saturating_add(d.kswapd_scan()?);
                Some(Share { part, whole })
            }),
        ),
        lower(
            "Page writes by reclaim",
            "pages",
            Field(&["nr_vmscan_write"]),
        ),
        lower(
            "Page writes file",
            "pages",
            Of(|d| {
                number(Some(
                    d.get("nr_vmscan_write")?
                        .saturating_sub(d.get("pswpout").unwrap_or(0)),
                ))
            }),
        ),
        lower("Page writes anon", "pages", Field(&["pswpout"])),
        neutral(
            "Page reclaim immediate",
            "pages",
            &["nr_vmscan_immediate_reclaim"],
        ),
        neutral("Page rescued immediate", "pages", &["pgrescued"]),
        neutral("Slabs scanned", "objects", &["slabs_scanned"]),
        neutral("Direct inode steals", "inodes", &["pginodesteal"]),
        neutral("Kswapd inode steals", "inodes", &["kswapd_inodesteal"]),
        neutral(
            "Kswapd skipped wait",
            "waits",
            &["kswapd_skip_congestion_wait"],
        ),
        neutral("THP fault alloc", "huge pages", &["thp_fault_alloc"]),
        neutral("THP collapse alloc", "huge pages", &["thp_collapse_alloc"]),
        neutral("THP splits", "huge pages", &["thp_split", "thp_split_page"]),
        neutral("THP fault fallback", "faults", &["thp_fault_fallback"]),
        neutral(
            "THP collapse fail",
            "huge pages",
            &["thp_collapse_alloc_failed"],
        ),
        lower("Compaction stalls", "stalls", Field(&["compact_stall"])),
        neutral("Compaction success", "stalls", &["compact_success"]),
        neutral("Compaction failures", "stalls", &["compact_fail"]),
        neutral(
            "Compaction pages moved",
            "pages",
            &["compact_pages_moved", "pgmigrate_success"],
        ),
        neutral(
            "Compaction move failure",
            "pages",
            &["compact_pagemigrate_failed", "pgmigrate_fail"],
        ),
        neutral("Compaction pages isolated", "pages", &["compact_isolated"]),
        neutral(
            "Compaction migrate scanned",
            "pages",
            &["compact_migrate_scanned"],
        ),
        neutral(
            "Compaction free scanned",
            "pages",
            &["compact_free_scanned"],
        ),
        row(
            "Compaction cost",
            "cost",
            Neutral,
            Count,
            Of(|d| d.compaction_cost()),
        ),
    ]
};

/// Names of all rows in printed order.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|r| r.name)
}

/// The rows whose fields the kernel has, in printed order.
///
/// `counters` are the changes of `/proc/vmstat` fields over the run, `elapsed_s` its length in seconds.
pub fn rows(counters: &BTreeMap<String, u64>, elapsed_s: f64) -> Vec<VmstatRow> {
    let deltas = Deltas {
        counters,
        elapsed_s,
    };
    let same = |value: f64| (value, value);
    let value = |formula: Formula| match formula {
        Formula::Field(names) => number(deltas.first(names)).map(same),
        Formula::Zones(prefix) => number(deltas.zones(prefix)).map(same),
        Formula::Of(compute) => compute(deltas).map(same),
        Formula::Share(share) => share(deltas).map(|s| (s.whole_percent(), s.percent())),
    };
    let row = |d: &Definition| {
        let (name, unit, better, format) = (d.name, d.unit, d.better, d.format);
        value(d.formula).map(|(value, exact)| VmstatRow {
            name,
            unit,
            better,
            format,
            value,
            exact,
        })
    };
    ROWS.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::{self, Evaluation};

    fn counters(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
        list.iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    fn value(list: &[(&str, u64)], elapsed_s: f64, name: &str) -> Option<f64> {
        rows(&counters(list), elapsed_s)
            .into_iter()
            .find(|r| r.name == name)
            .map(|r| r.value)
    }

    #[test]
    fn steal_of_every_era() {
        let old = [
            ("kswapd_steal", 729),
            ("pgsteal_dma", 1000),
            ("pgsteal_dma32", 2000),
        ];
        assert_eq!(value(&old, 1.0, "Kswapd pages reclaimed"), Some(729.0));
        assert_eq!(value(&old, 1.0, "Direct pages reclaimed"), Some(2271.0));
        let zoned = [
            ("pgsteal_kswapd_normal", 5),
            ("pgsteal_kswapd_dma", 6),
            ("pgsteal_direct_high", 7),
        ];
        assert_eq!(value(&zoned, 1.0, "Kswapd pages reclaimed"), Some(11.0));
        assert_eq!(value(&zoned, 1.0, "Direct pages reclaimed"), Some(7.0));
        let plain = [
            ("pgsteal_kswapd", 5),
            ("pgsteal_direct", 6),
            ("pgsteal_anon", 11),
        ];
        assert_eq!(value(&plain, 1.0, "Kswapd pages reclaimed"), Some(5.0));
        assert_eq!(value(&plain, 1.0, "Direct pages reclaimed"), Some(6.0));
    }

    #[test]
    fn throttle_is_no_scan_and_stalls_are_summed() {
        let list = [("pgscan_direct_normal", 5), ("pgscan_direct_throttle", 100)];
        assert_eq!(value(&list, 1.0, "Direct pages scanned"), Some(5.0));
        let stalls = [
            ("allocstall_dma32", 1),
            ("allocstall_normal", 2),
            ("allocstall_movable", 3),
        ];
        assert_eq!(value(&stalls, 1.0, "Allocation stalls"), Some(6.0));
        assert_eq!(
            value(&[("allocstall", 4)], 1.0, "Allocation stalls"),
            Some(4.0)
        );
    }

    #[test]
    fn nothing_scanned_is_full_efficiency() {
        let list = [
            ("pgscan_kswapd", 0),
            ("pgsteal_kswapd", 0),
            ("pgscan_direct", 0),
        ];
        assert_eq!(value(&list, 1.0, "Kswapd efficiency"), Some(100.0));
        assert_eq!(value(&list, 1.0, "Percentage direct scans"), Some(0.0));
        assert_eq!(value(&list, 0.0, "Kswapd velocity"), None);
    }

    #[test]
    fn rows_exist_only_with_their_fields() {
        assert_eq!(rows(&BTreeMap::new(), 1.0), Vec::new());
        let names: Vec<_> = rows(&counters(&[("pgpgin", 1)]), 1.0)
            .iter()
            .map(|r| r.name)
            .collect();
        assert_eq!(names, ["Page Ins"]);
        assert_eq!(
            value(
                &[("pswpout", 5), ("nr_vmscan_write", 3)],
                1.0,
                "Page writes file"
            ),
            Some(0.0)
        );
    }

    #[test]
    fn no_sum_overflows() {
        let list = [
            ("pgscan_kswapd", u64::MAX),
            ("pgscan_direct", u64::MAX),
            ("pgsteal_direct", u64::MAX),
        ];
        assert_eq!(value(&list, 1.0, "Direct efficiency"), Some(100.0));
        assert_eq!(value(&list, 1.0, "Percentage direct scans"), Some(100.0));
    }

    /// Counters of a kernel from 3.4 on that would have printed this column.
    fn printed_counters(evaluation: &Evaluation, column: usize) -> BTreeMap<String, u64> {
        let table = evaluation.table("vmstat").expect("a vmstat table");
        let fields = [
            ("Direct pages scanned", "pgscan_direct_normal"),
            ("Kswapd pages scanned", "pgscan_kswapd_normal"),
            ("Kswapd pages reclaimed", "pgsteal_kswapd_normal"),
            ("Direct pages reclaimed", "pgsteal_direct_normal"),
            ("Swap Outs", "pswpout"),
            ("Page writes by reclaim", "nr_vmscan_write"),
        ];
        let counter = |(name, field): (&str, &str)| {
            table
                .row(name)
                .map(|r| (field.to_owned(), r.values[column].value as u64))
        };
        fields.into_iter().filter_map(counter).collect()
    }

    #[test]
    fn derived_rows_of_published_tables() {
        let derived = [
            "Kswapd efficiency",
            "Kswapd velocity",
            "Direct efficiency",
            "Direct velocity",
            "Percentage direct scans",
            "Page writes file",
            "Page writes anon",
        ];
        let mut compared = 0;
        for id in ["fs_mark", "postmark", "micro", "stress-highalloc"] {
            let id = format!("lumpy-removal-2012-{id}");
            let evaluation = evaluation::get(&id).expect("embedded");
            let vmstat = evaluation.table("vmstat").expect("a vmstat table");
            let duration = evaluation.table("duration").expect("a duration table");
            let elapsed = duration
                .row("Total Elapsed Time (seconds)")
                .expect("elapsed time");
            for column in 0..evaluation.columns.len() {
                let counters = printed_counters(&evaluation, column);
                let computed = rows(&counters, elapsed.values[column].value);
                for name in derived {
                    let Some(printed) = vmstat.row(name) else {
                        continue;
                    };
                    let row = computed.iter().find(|r| r.name == name).expect(name);
                    let text = row.format.text(row.value);
                    let expected = printed.values[column].text();
                    assert_eq!(text.trim_end_matches('%'), expected, "{id} {name} {column}");
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 92);
    }
}
