//! The rows of the reports, by the field's names.
//!
//! 1. "FTrace Reclaim Statistics: vmscan": the rows of 2010 in their order, with their formulas
//!    ([`Derived`]), and behind them what those tables leave out: reclaim for memory cgroups, other actors,
//!    a kswapd still awake.
//! 2. "congestion_wait" and "mm_vmscan_writepage" as mmtests prints them; "mm_vmscan_throttled" in the same
//!    form, for kernels that throttle instead.
//! 3. Stall times by quantile, and reclaim efficiency.
//! 4. "MMTests Statistics: vmstat", where `/proc/vmstat` was given.
//!
//! A row whose value is not known is left out; [`ReclaimFigures::missing`] says which and why.

use super::figures::{ReclaimFigures, Totals};
use super::pages::{Actor, Writes};
use super::sink::{ReclaimReport, Waits};
use super::tasks::Span;
use crate::comparison::{BlockInput, Comparison, Measured, Rows};
use crate::stats::Preference;
use crate::vmstat::ValueFormat;

/// A column of reports to be set side by side.
#[derive(Debug, Clone)]
pub struct ReportColumn<'a> {
    /// Heading, usually the trace or the kernel.
    pub name: String,
    /// Repeats of the same run, which are averaged.
    pub reports: Vec<&'a ReclaimFigures>,
}

/// What the last rows of the vmscan block are computed from.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measures {
    /// `Direct reclaim pages scanned`.
    pub direct_scanned: f64,
    /// `Kswapd pages scanned`.
    pub kswapd_scanned: f64,
    /// `Direct reclaim pages reclaimed`, if it is known.
    pub direct_reclaimed: Option<f64>,
    /// `Kswapd pages reclaimed`, if it is known.
    pub kswapd_reclaimed: Option<f64>,
    /// Pages that direct reclaim wrote: file asynchronous, anon asynchronous, file and anon synchronous.
    pub direct_writes: [f64; 4],
    /// The same of kswapd.
    pub kswapd_writes: [f64; 4],
    /// `Time stalled direct reclaim`, s.
    pub stalled_s: f64,
    /// `Time kswapd awake`, s.
    pub awake_s: f64,
    /// User and system time of the test, s, if they are known.
    pub user_system_s: Option<f64>,
    /// Elapsed time of the test, s, if it is known.
    pub elapsed_s: Option<f64>,
}

/// The last rows of the vmscan block; none where something is missing or there is nothing to divide by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Derived {
    /// `Total pages scanned`.
    pub scanned: f64,
    /// `Total pages reclaimed`.
    pub reclaimed: Option<f64>,
    /// `%age total pages scanned/reclaimed`: reclaimed per scanned, whatever it is called.
    pub reclaimed_percent: Option<f64>,
    /// `%age total pages scanned/written`, without what kswapd writes synchronously.
    pub written_percent: Option<f64>,
    /// `%age file pages scanned/written`.
    pub file_written_percent: Option<f64>,
    /// `Percentage Time Spent Direct Reclaim`: of user and system time and the stall itself.
    pub stalled_percent: Option<f64>,
    /// `Percentage Time kswapd Awake`, of elapsed time.
    pub awake_percent: Option<f64>,
}

impl Derived {
    /// Computes them as the tables of 2010 do.
    pub fn of(m: &Measures) -> Derived {
        let percent = |part: f64, whole: f64| (whole > 0.0).then(|| 100.0 * part / whole);
        let scanned = m.direct_scanned + m.kswapd_scanned;
        let reclaimed = m.direct_reclaimed.zip(m.kswapd_reclaimed);
        let reclaimed = reclaimed.map(|(direct, kswapd)| direct + kswapd);
        let [file_async, anon_async, file_sync, anon_sync] = m.direct_writes;
        let [kswapd_file, kswapd_anon, ..] = m.kswapd_writes;
        let file = file_async + file_sync + kswapd_file;
        Derived {
            scanned,
            reclaimed,
            reclaimed_percent: reclaimed.and_then(|r| percent(r, scanned)),
            written_percent: percent(file + anon_async + anon_sync + kswapd_anon, scanned),
            file_written_percent: percent(file, scanned),
            stalled_percent: m
                .user_system_s
                .and_then(|s| percent(m.stalled_s, s + m.stalled_s)),
            awake_percent: m.elapsed_s.and_then(|s| percent(m.awake_s, s)),
        }
    }
}

fn row(
    name: impl Into<String>,
    unit: &'static str,
    better: Preference,
    format: ValueFormat,
    value: f64,
) -> Measured {
    Measured {
        name: name.into(),
        unit,
        better,
        format,
        value,
        exact: value,
    }
}

fn number(name: impl Into<String>, unit: &'static str, value: f64) -> Measured {
    row(name, unit, Preference::None, ValueFormat::Count, value)
}

fn seconds(name: &str, value: f64) -> Measured {
    row(
        name,
        "s",
        Preference::Lower,
        ValueFormat::Decimals(2),
        value,
    )
}

/// In the order in which the block prints them.
fn write_counts(writes: &Writes) -> [f64; 4] {
    [
        writes.file_async,
        // A page of both kinds is printed as the script counts it: what is not file is anon.
        writes.anon_async + writes.mixed_async,
        writes.file_sync,
        writes.anon_sync + writes.mixed_sync,
    ]
    .map(|count| count as f64)
}

const WRITE_KINDS: [&str; 4] = ["file async", "anon async", "file sync", "anon sync"];

impl ReclaimFigures {
    /// What the derived rows need.
    pub fn measures(&self) -> Measures {
        let (direct, kswapd) = (self.totals(Actor::Direct), self.totals(Actor::Kswapd));
        let known = |totals: &Totals| totals.reclaimed.map(|pages| pages as f64);
        let context = &self.context;
        Measures {
            direct_scanned: direct.scanned as f64,
            kswapd_scanned: kswapd.scanned as f64,
            direct_reclaimed: known(direct),
            kswapd_reclaimed: known(kswapd),
            direct_writes: write_counts(&direct.writes),
            kswapd_writes: write_counts(&kswapd.writes),
            stalled_s: self.span(Span::Direct).sum_s(),
            awake_s: self.kswapd.awake_ns as f64 / 1e9,
            user_system_s: context.user_s.zip(context.system_s).map(|(u, s)| u + s),
            elapsed_s: context.elapsed_s,
        }
    }

    /// Rows that are left out because something is not known: their name and what is missing.
    pub fn missing(&self) -> Vec<(&'static str, &'static str)> {
        let mut missing = Vec::new();
        if self.totals(Actor::Kswapd).reclaimed.is_none() {
            let why =
                "the trace has no mm_vmscan_lru_shrink_inactive, and /proc/vmstat was not given";
            missing.push(("Kswapd pages reclaimed", why));
            missing.push(("Total pages reclaimed", why));
        }
        if self.measures().direct_scanned + self.measures().kswapd_scanned == 0.0 {
            let why = "neither direct reclaim nor kswapd scanned anything";
            missing.push(("%age total pages scanned/reclaimed", why));
            missing.push(("%age total pages scanned/written", why));
            missing.push(("%age file pages scanned/written", why));
        }
        if self.measures().user_system_s.is_none() {
            let why = "user and system time of the test are not known";
            missing.push(("Percentage Time Spent Direct Reclaim", why));
        }
        if self.context.elapsed_s.is_none() {
            let why = "the elapsed time of the test is not known";
            missing.push(("Percentage Time kswapd Awake", why));
            if self.context.vmstat.is_some() {
                missing.push(("Kswapd velocity", why));
                missing.push(("Direct velocity", why));
            }
        }
        missing
    }

    fn vmscan_rows(&self) -> Rows {
        let m = self.measures();
        let d = Derived::of(&m);
        let mut rows = vec![
            number(
                "Direct reclaims",
                "reclaims",
                self.pairs[Span::Direct as usize].begins as f64,
            ),
            number("Direct reclaim pages scanned", "pages", m.direct_scanned),
        ];
        let reclaimed = |name: &str, value: Option<f64>| value.map(|v| number(name, "pages", v));
        rows.extend(reclaimed(
            "Direct reclaim pages reclaimed",
            m.direct_reclaimed,
        ));
        let writes = |actor: &'static str, counts: [f64; 4]| {
            WRITE_KINDS.iter().zip(counts).map(move |(kind, count)| {
                let name = format!("{actor} reclaim write {kind} I/O");
                row(name, "pages", Preference::None, ValueFormat::Count, count)
            })
        };
        rows.extend(writes("Direct", m.direct_writes));
        rows.push(number(
            "Wake kswapd requests",
            "requests",
            self.requests as f64,
        ));
        rows.push(number(
            "Kswapd wakeups",
            "wakeups",
            self.kswapd.wakeups as f64,
        ));
        rows.push(number("Kswapd pages scanned", "pages", m.kswapd_scanned));
        rows.extend(reclaimed("Kswapd pages reclaimed", m.kswapd_reclaimed));
        rows.extend(writes("Kswapd", m.kswapd_writes));
        rows.push(seconds(
            "Time stalled direct reclaim (seconds)",
            m.stalled_s,
        ));
        rows.push(seconds("Time kswapd awake (seconds)", m.awake_s));
        rows.push(number("Total pages scanned", "pages", d.scanned));
        rows.extend(reclaimed("Total pages reclaimed", d.reclaimed));
        let percent = |name: &str, better, value: Option<f64>| {
            value.map(|v| row(name, "%", better, ValueFormat::Percents(2), v))
        };
        use Preference::{Higher, Lower};
        let percents = [
            percent(
                "%age total pages scanned/reclaimed",
                Higher,
                d.reclaimed_percent,
            ),
            percent("%age total pages scanned/written", Lower, d.written_percent),
            percent(
                "%age file pages scanned/written",
                Lower,
                d.file_written_percent,
            ),
            percent(
                "Percentage Time Spent Direct Reclaim",
                Lower,
                d.stalled_percent,
            ),
            percent("Percentage Time kswapd Awake", Lower, d.awake_percent),
        ];
        rows.extend(percents.into_iter().flatten());
        rows.extend(self.further_rows());
        rows
    }

    /// What the tables of 2010 leave out.
    fn further_rows(&self) -> Rows {
        let mut rows = Rows::new();
        let memcg = self.pairs[Span::Memcg as usize];
        if memcg.begins + memcg.ends > 0 {
            rows.push(number("MemCG reclaims", "reclaims", memcg.begins as f64));
        }
        for (actor, head) in [
            (Actor::Memcg, "MemCG reclaim"),
            (Actor::Other, "Other reclaim"),
        ] {
            let totals = self.totals(actor);
            let any = totals.scanned + totals.written > 0;
            let limited = actor == Actor::Memcg && memcg.begins > 0;
            if !(any || limited) {
                continue;
            }
            let reclaimed = totals.reclaimed.map(|pages| pages as f64);
            let name = |what: &str| format!("{head} pages {what}");
            rows.push(number(name("scanned"), "pages", totals.scanned as f64));
            rows.extend(reclaimed.map(|v| number(name("reclaimed"), "pages", v)));
            rows.push(number(name("written"), "pages", totals.written as f64));
        }
        if memcg.begins + memcg.ends > 0 {
            let stalled = self.span(Span::Memcg).sum_s();
            rows.push(seconds("Time stalled memcg reclaim (seconds)", stalled));
        }
        let (scanned, reclaimed) = self.totals.iter().fold((0u64, 0u64), |(s, r), t| {
            (
                s.saturating_add(t.named_scanned),
                r.saturating_add(t.named_reclaimed),
            )
        });
        if scanned > 0 {
            rows.push(number("Pages scanned by name", "pages", scanned as f64));
            rows.push(number("Pages reclaimed by name", "pages", reclaimed as f64));
        }
        if self.kswapd.awake_at_end > 0 {
            let open = self.kswapd.open_ns as f64 / 1e9;
            rows.push(seconds("Time kswapd awake at the end (seconds)", open));
        }
        rows
    }

    fn congestion_rows(&self) -> Rows {
        let congestion = self.congestion.as_flattened();
        if congestion.iter().all(|waits| waits.number == 0) {
            Rows::new()
        } else {
            self.all_congestion_rows()
        }
    }

    /// The block also if nobody waited.
    fn all_congestion_rows(&self) -> Rows {
        let mut rows = Rows::new();
        for (class, waits) in ["Direct", "KSwapd"].iter().zip(&self.congestion) {
            for (kind, waits) in ["congest", "conditional"].iter().zip(waits) {
                rows.extend(wait_rows(class, &format!("{kind} waited"), waits));
            }
        }
        rows
    }

    fn throttled_rows(&self) -> Rows {
        let reasons = ["writeback", "isolated", "noprogress", "congested", "other"];
        let mut rows = Rows::new();
        for (class, by_reason) in ["Direct", "KSwapd"].iter().zip(&self.throttled) {
            for (reason, waits) in reasons.iter().zip(by_reason) {
                if waits.number > 0 {
                    rows.extend(wait_rows(class, &format!("{reason} throttled"), waits));
                }
            }
        }
        rows
    }

    fn writepage_rows(&self) -> Rows {
        if self.writes.iter().all(|writes| writes.total() == 0) {
            Rows::new()
        } else {
            self.all_writepage_rows()
        }
    }

    /// The block also if nothing was written.
    fn all_writepage_rows(&self) -> Rows {
        let mut rows = Rows::new();
        for (class, w) in ["Direct", "KSwapd"].iter().zip(&self.writes) {
            let kinds = [
                ("anon sync", w.anon_sync),
                ("anon async", w.anon_async),
                ("file sync", w.file_sync),
                ("file async", w.file_async),
                ("mixed sync", w.mixed_sync),
                ("mixed async", w.mixed_async),
            ];
            for (kind, pages) in kinds {
                let name = format!("{class} writes {kind}");
                rows.push(number(name, "pages", pages as f64));
            }
        }
        rows
    }

    fn stall_rows(&self) -> Rows {
        let mut rows = Rows::new();
        for span in Span::ALL {
            let q = self.span(span).quantiles();
            if q.count == 0 {
                continue;
            }
            let name = |what: &str| format!("{} {what}", span.label());
            rows.push(number(name("number"), "stalls", q.count as f64));
            let quantiles = [
                ("p50 (us)", q.p50_us),
                ("p95 (us)", q.p95_us),
                ("p99 (us)", q.p99_us),
                ("max (us)", q.max_us),
            ];
            for (what, us) in quantiles {
                let value = us.unwrap_or(0) as f64;
                let (better, format) = (Preference::Lower, ValueFormat::Count);
                rows.push(row(name(what), "us", better, format, value));
            }
        }
        rows
    }

    fn efficiency_rows(&self) -> Rows {
        let actors = Actor::ALL.map(Some).into_iter().chain([None]);
        let rows = actors.filter_map(|actor| {
            let label = actor.map_or("Total", Actor::label);
            let value = self.efficiency(actor)?;
            let name = format!("{label} efficiency");
            let format = ValueFormat::Percents(2);
            Some(row(name, "%", Preference::Higher, format, value))
        });
        rows.collect()
    }

    fn vmstat_rows(&self) -> Rows {
        let Some(vmstat) = &self.context.vmstat else {
            return Rows::new();
        };
        let rows = vmstat.rows(self.context.elapsed_s);
        rows.into_iter().map(Measured::from).collect()
    }
}

/// Rows of the blocks by name, as recipes ask for them.
impl ReclaimFigures {
    /// Names of the rows of the vmscan block in the order of the tables of 2010.
    pub fn vmscan_names() -> Vec<String> {
        let writes =
            |actor: &str| WRITE_KINDS.map(|kind| format!("{actor} reclaim write {kind} I/O"));
        let named = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        [
            named(&[
                "Direct reclaims",
                "Direct reclaim pages scanned",
                "Direct reclaim pages reclaimed",
            ]),
            writes("Direct").to_vec(),
            named(&[
                "Wake kswapd requests",
                "Kswapd wakeups",
                "Kswapd pages scanned",
                "Kswapd pages reclaimed",
            ]),
            writes("Kswapd").to_vec(),
            named(&[
                "Time stalled direct reclaim (seconds)",
                "Time kswapd awake (seconds)",
                "Total pages scanned",
                "Total pages reclaimed",
                "%age total pages scanned/reclaimed",
                "%age total pages scanned/written",
                "%age file pages scanned/written",
                "Percentage Time Spent Direct Reclaim",
                "Percentage Time kswapd Awake",
            ]),
        ]
        .concat()
    }

    /// Names of the rows of the congestion_wait block.
    pub fn congestion_names() -> Vec<String> {
        let nobody = ReclaimReport::default().finish(
            &Default::default(),
            Default::default(),
            Default::default(),
        );
        let rows = nobody.all_congestion_rows().into_iter();
        rows.map(|row| row.name).collect()
    }

    /// Names of the rows of the mm_vmscan_writepage block.
    pub fn writepage_names() -> Vec<String> {
        let nobody = ReclaimReport::default().finish(
            &Default::default(),
            Default::default(),
            Default::default(),
        );
        let rows = nobody.all_writepage_rows().into_iter();
        rows.map(|row| row.name).collect()
    }

    /// A row of the vmscan block; none if it is not known.
    pub fn vmscan_row(&self, name: &str) -> Option<f64> {
        value(self.vmscan_rows(), name)
    }

    /// A row of the congestion_wait block, 0 if nobody waited.
    pub fn congestion_row(&self, name: &str) -> Option<f64> {
        value(self.all_congestion_rows(), name)
    }

    /// A row of the mm_vmscan_writepage block, 0 if nothing was written.
    pub fn writepage_row(&self, name: &str) -> Option<f64> {
        value(self.all_writepage_rows(), name)
    }
}

fn value(rows: Rows, name: &str) -> Option<f64> {
    rows.into_iter()
        .find(|row| row.name == name)
        .map(|r| r.value)
}

fn wait_rows(class: &str, kind: &str, waits: &Waits) -> Rows {
    let time = waits.time_us as f64 / 1000.0;
    let (lower, ms) = (Preference::Lower, ValueFormat::With("ms"));
    vec![
        number(
            format!("{class} number {kind}"),
            "waits",
            waits.number as f64,
        ),
        row(format!("{class} time {kind}"), "ms", lower, ms, time),
        number(format!("{class} full {kind}"), "waits", waits.full as f64),
    ]
}

/// The rows of one block of one trace.
type RowsOf = fn(&ReclaimFigures) -> Rows;

const BLOCKS: [(&str, &str, RowsOf); 7] = [
    (
        "ftrace-vmscan",
        "FTrace Reclaim Statistics: vmscan",
        ReclaimFigures::vmscan_rows,
    ),
    (
        "congestion-wait",
        "FTrace Reclaim Statistics: congestion_wait",
        ReclaimFigures::congestion_rows,
    ),
    (
        "throttled",
        "FTrace Reclaim Statistics: mm_vmscan_throttled",
        ReclaimFigures::throttled_rows,
    ),
    (
        "writepage",
        "FTrace Reclaim Statistics: mm_vmscan_writepage",
        ReclaimFigures::writepage_rows,
    ),
    ("stalls", "Stall times", ReclaimFigures::stall_rows),
    (
        "efficiency",
        "Reclaim efficiency",
        ReclaimFigures::efficiency_rows,
    ),
    (
        "vmstat",
        "MMTests Statistics: vmstat",
        ReclaimFigures::vmstat_rows,
    ),
];

impl Comparison {
    /// Compares traces; the first column is the baseline.
    pub fn of_traces(columns: &[ReportColumn<'_>]) -> Comparison {
        let headings = columns.iter().map(|c| (c.name.clone(), c.reports.len()));
        let blocks = BLOCKS.iter().map(|(id, title, rows)| {
            let of_column = |c: &ReportColumn<'_>| c.reports.iter().map(|r| rows(r)).collect();
            BlockInput {
                id,
                title,
                columns: columns.iter().map(of_column).collect(),
            }
        });
        Comparison::of_blocks(headings.collect(), blocks)
    }
}
