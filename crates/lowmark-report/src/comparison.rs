//! Recordings in columns: the table that mmtests prints for a set of kernels.
//!
//! 1. Each column is one kernel (or machine, or setting) with one or more recordings; the first column
//!    is the baseline.
//! 2. Every recording is turned into rows: *duration*, the statistics of each sample series, *vmstat*, memory cgroups.
//! 3. Rows of repeats are averaged by name; a row that only some columns have stays, with gaps.
//! 4. Percentages are computed from the averages at full precision, by the rule of the row: plus is
//!    better, the baseline shows 0.00 %, rows that are neither good nor bad have none.
//! 5. Of repeats it is asked whether the difference is beyond their noise ([`noise`]); one that is not is neither good
//!    nor bad.

pub mod noise;
mod plots;
pub mod selected;

use crate::document::Section;
use crate::percent::PercentRule;
use crate::stats::{self, Preference};
use crate::table::{Align, Field, Role, Style, TextTable};
use crate::vmstat::{self, ValueFormat};
use lowmark_record::{Recording, Series, Unit};
use serde::Serialize;

/// Version of the JSON form of a comparison.
const JSON_VERSION: u32 = 2;

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// Which statistics are printed of a sample series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeriesRows {
    /// Quartiles and upper quantiles, as the stutter tables of 2016 have them.
    #[default]
    Quartiles,
    /// Min, Amean, Stddev, CoeffVar, Max and means of the best 50, 95 and 99 %.
    Means,
}

/// A column to be compared.
#[derive(Debug, Clone)]
pub struct ColumnInput<'a> {
    /// Heading, usually the kernel.
    pub name: String,
    /// Repeats of the same run.
    pub recordings: Vec<&'a Recording>,
}

/// A row of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedRow {
    /// Name as mmtests prints it.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// Which values are good.
    pub better: Preference,
    /// How values are printed.
    pub format: ValueFormat,
    /// Average of each column; none where the kernel has no such row.
    pub values: Vec<Option<f64>>,
    /// Percentage beside each value; none for rows without good and bad.
    pub percents: Vec<Option<f64>>,
    /// Standard deviation of the repeats of each column, in percent of their mean; none without repeats or where the
    /// mean is 0.
    pub spreads: Vec<Option<f64>>,
    /// Values where the printed ones are cut to whole numbers; else those themselves.
    pub exact_values: Vec<Option<f64>>,
    /// Percentages of these.
    pub exact_percents: Vec<Option<f64>>,
    /// Whether each column differs from the first by more than noise; none without repeats of both.
    pub significant: Vec<Option<bool>>,
    /// Whether some repeats of a column have more than the same repeat of the first, and others less; none without
    /// repeats of both.
    pub sign_flips: Vec<Option<bool>>,
    /// The value of each repeat of each column.
    pub samples: Vec<Vec<f64>>,
}

/// Rows that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Stable name: `duration`, `series`, `vmstat`, `cgroups`; of traces also `ftrace-vmscan`, `dirty-throttling` and others.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Rows in printed order.
    pub rows: Vec<ComparedRow>,
}

/// Recordings side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Heading of each column and how many recordings it averages.
    pub columns: Vec<(String, usize)>,
    /// Blocks that have rows.
    pub blocks: Vec<Block>,
    /// Rows of which it was asked together whether they differ beyond noise, also of those that are not shown.
    pub tests: usize,
}

/// One row of one recording or trace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) better: Preference,
    pub(crate) format: ValueFormat,
    pub(crate) value: f64,
    /// The value before it was cut to what is printed.
    pub(crate) exact: f64,
}

pub(crate) type Rows = Vec<Measured>;

/// All rows of a recording: duration, sample series, vmstat, memory cgroups.
pub(crate) fn rows(recording: &Recording, series: SeriesRows) -> Rows {
    let mut rows = duration_rows(recording);
    rows.extend(series_rows(&recording.series, series));
    rows.extend(vmstat_rows(recording));
    rows.extend(cgroup_rows(recording));
    rows
}

impl From<vmstat::VmstatRow> for Measured {
    fn from(row: vmstat::VmstatRow) -> Measured {
        Measured {
            name: row.name.to_owned(),
            unit: row.unit,
            better: row.better,
            format: row.format,
            value: row.value,
            exact: row.exact,
        }
    }
}

/// A block before it is compared: the rows of each repeat of each column.
pub(crate) struct BlockInput {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) columns: Vec<Vec<Rows>>,
}

impl Comparison {
    /// Compares columns; the first is the baseline.
    pub fn new(columns: &[ColumnInput<'_>], series: SeriesRows) -> Comparison {
        let block = |id, title, rows: &dyn Fn(&Recording) -> Rows| {
            let of_column = |c: &ColumnInput<'_>| c.recordings.iter().map(|r| rows(r)).collect();
            BlockInput {
                id,
                title,
                columns: columns.iter().map(of_column).collect(),
            }
        };
        let blocks = [
            block("duration", "Duration", &duration_rows),
            block("series", "Samples", &|r| series_rows(&r.series, series)),
            block("vmstat", "VM statistics", &vmstat_rows),
            block("cgroups", "Memory cgroups", &cgroup_rows),
        ];
        let headings = columns.iter().map(|c| (c.name.clone(), c.recordings.len()));
        Comparison::of_blocks(headings.collect(), blocks)
    }

    /// Compares what was measured, whatever by; blocks without rows are left out.
    pub(crate) fn of_blocks(
        columns: Vec<(String, usize)>,
        blocks: impl IntoIterator<Item = BlockInput>,
    ) -> Comparison {
        let compared = blocks.into_iter().map(|block| Block {
            id: block.id,
            title: block.title,
            rows: compared(block.columns),
        });
        let mut blocks: Vec<Block> = compared.filter(|b| !b.rows.is_empty()).collect();
        noise::judge(&mut blocks, columns.len());
        let tests = noise::tests(&blocks, columns.len());
        Comparison {
            columns,
            blocks,
            tests,
        }
    }

    /// The same without percentages, for tables that have none.
    #[must_use]
    pub fn without_percents(mut self) -> Comparison {
        for row in self.blocks.iter_mut().flat_map(|block| &mut block.rows) {
            row.percents.fill(None);
            row.significant.fill(None);
            row.exact_percents.fill(None);
        }
        self
    }

    /// The same with what happened first: rows that are 0 in every column behind the others of their block, and blocks
    /// of such rows alone behind all others.
    #[must_use]
    pub(crate) fn what_happened_first(mut self) -> Comparison {
        use selected::is_zero;
        for block in &mut self.blocks {
            block.rows.sort_by_key(is_zero);
        }
        self.blocks
            .sort_by_key(|block| block.rows.iter().all(is_zero));
        self
    }

    /// The comparison as mmtests prints it; wider than `width` it goes on in further bands.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        self.section().text(style, width)
    }

    /// The comparison, to be written.
    pub fn section(&self) -> Section<'static> {
        self.section_with_labels(0)
    }

    /// The same with names of rows padded to `labels` characters.
    pub(crate) fn section_with_labels(&self, labels: usize) -> Section<'static> {
        let mut section = Section::new();
        section.answers = self.answers();
        section.plots = self.plots();
        for (at, block) in self.blocks.iter().enumerate() {
            if at > 0 {
                section.blank();
            }
            section.title(block.title);
            section.table(self.block_table(block, labels));
        }
        let legend = noise::legend(self);
        if !legend.is_empty() {
            section.blank();
        }
        for line in legend {
            section.paragraph(line, 3);
        }
        section
    }

    fn block_table(&self, block: &Block, labels: usize) -> TextTable {
        let mut table = TextTable::new().column("", Align::Left);
        for (name, repeats) in &self.columns {
            let heading = if *repeats > 1 {
                format!("{name} (mean of {repeats})")
            } else {
                name.clone()
            };
            table = table.column(heading, Align::Right);
        }
        for row in &block.rows {
            let fields = (0..self.columns.len()).map(|column| field(row, column));
            let name = format!("{:<labels$}", row.name);
            table.row(std::iter::once(Field::from(name)).chain(fields));
        }
        table
    }

    /// The comparison as JSON with stable field names. Values and percentages are exact where the table has
    /// those of mmtests, which are cut to whole numbers.
    pub fn json(&self) -> serde_json::Value {
        let columns = self
            .columns
            .iter()
            .map(|(name, recordings)| ColumnJson {
                name,
                recordings: *recordings,
            })
            .collect();
        let blocks = self
            .blocks
            .iter()
            .map(|b| BlockJson {
                id: b.id,
                rows: b.rows.iter().map(RowJson::of).collect(),
            })
            .collect();
        let document = ComparisonJson {
            version: JSON_VERSION,
            columns,
            blocks,
        };
        serde_json::to_value(document).unwrap_or_default()
    }
}

pub(crate) fn field(row: &ComparedRow, column: usize) -> Field {
    let Some(value) = row.values[column] else {
        return Field::with_role("-", Role::Unknown);
    };
    let spread = row.spreads[column].map_or(String::new(), |spread| {
        let decimals = usize::from(spread < 10.0);
        format!(" ±{spread:.decimals$}%")
    });
    let text = row.format.text(value) + &spread;
    match row.percents[column] {
        None => Field::from(text),
        Some(p) if row.significant[column] == Some(false) && p != 0.0 => {
            Field::with_percent(text, p, Role::Unknown).noted("~")
        }
        Some(p) if p > 0.0 => Field::with_percent(text, p, Role::Good),
        Some(p) if p < 0.0 => Field::with_percent(text, p, Role::Bad),
        Some(p) => Field::with_percent(text, p, Role::Plain),
    }
}

/// Rows of all columns, merged by name in the order in which they first appear.
fn compared(columns: Vec<Vec<Rows>>) -> Vec<ComparedRow> {
    let averaged: Vec<Rows> = columns.iter().map(|repeats| average(repeats)).collect();
    let mut order: Vec<&Measured> = Vec::new();
    for column in &averaged {
        merge_order(&mut order, column);
    }
    order
        .into_iter()
        .map(|row| compared_row(row, &averaged, &columns))
        .collect()
}

/// Adds the rows of a column that are new, each behind its predecessor, so that the rows of two eras
/// interleave as each prints them.
fn merge_order<'r>(order: &mut Vec<&'r Measured>, rows: &'r Rows) {
    let mut at = 0;
    for row in rows {
        match order.iter().position(|known| known.name == row.name) {
            Some(known) => at = known + 1,
            None => {
                order.insert(at, row);
                at += 1;
            }
        }
    }
}

fn compared_row(row: &Measured, averaged: &[Rows], columns: &[Vec<Rows>]) -> ComparedRow {
    let of = |field: fn(&Measured) -> f64| {
        let found = averaged
            .iter()
            .map(|rows| rows.iter().find(|r| r.name == row.name).map(field));
        found.collect::<Vec<Option<f64>>>()
    };
    let (values, exact_values) = (of(|row| row.value), of(|row| row.exact));
    let rule = PercentRule::of(row.better);
    let percents = |values: &[Option<f64>]| {
        let baseline = values.first().copied().flatten();
        let percent = |value: &Option<f64>| Some(rule?.percent((*value)?, baseline?));
        values.iter().map(percent).collect()
    };
    let samples: Vec<Vec<f64>> = columns
        .iter()
        .map(|repeats| values_of(repeats, &row.name, |row| row.exact))
        .collect();
    let spread = |own: &Vec<f64>| {
        let mean = stats::amean(own).filter(|mean| *mean != 0.0)?;
        Some(stats::coeffvar(stats::stddev(own)?, mean.abs()))
    };
    ComparedRow {
        name: row.name.clone(),
        unit: row.unit.to_owned(),
        better: row.better,
        format: row.format,
        percents: percents(&values),
        exact_percents: percents(&exact_values),
        spreads: samples.iter().map(spread).collect(),
        significant: vec![None; samples.len()],
        sign_flips: vec![None; samples.len()],
        samples,
        values,
        exact_values,
    }
}

/// The values of a row in the repeats that have it.
fn values_of(repeats: &[Rows], name: &str, field: fn(&Measured) -> f64) -> Vec<f64> {
    let rows = repeats.iter().flatten().filter(|row| row.name == name);
    rows.map(field).collect()
}

/// Mean of each row over the repeats that have it.
fn average(repeats: &[Rows]) -> Rows {
    let mut order: Vec<&Measured> = Vec::new();
    for rows in repeats {
        merge_order(&mut order, rows);
    }
    let amean = |row: &Measured, field: fn(&Measured) -> f64| {
        stats::amean(&values_of(repeats, &row.name, field)).unwrap_or(field(row))
    };
    let mean = |row: &&Measured| Measured {
        value: amean(row, |row| row.value),
        exact: amean(row, |row| row.exact),
        ..(*row).clone()
    };
    order.iter().map(mean).collect()
}

/// `User`, `System`, `Elapsed` in seconds: CPU times of the workload's tasks, not of kernel threads, as
/// time(1) has them.
fn duration_rows(recording: &Recording) -> Rows {
    let seconds = |name: &str, ns: f64| Measured {
        name: name.to_owned(),
        unit: "s",
        better: Preference::Lower,
        format: ValueFormat::Decimals(2),
        value: ns / NANOSECONDS_PER_SECOND,
        exact: ns / NANOSECONDS_PER_SECOND,
    };
    let tasks = || recording.tasks.iter().filter(|t| !t.kthread);
    vec![
        seconds("User", stats::sum(tasks().map(|t| t.user_ns as f64))),
        seconds("System", stats::sum(tasks().map(|t| t.system_ns as f64))),
        seconds("Elapsed", recording.elapsed_ns as f64),
    ]
}

/// Counters of memory cgroups that are shown, with their units and what is good. A group counts what is inside it, too.
const OF_CGROUPS: [(&str, &str, Preference); 9] = [
    ("memory.events.max", "times", Preference::Lower),
    ("memory.events.high", "times", Preference::Lower),
    ("memory.events.low", "times", Preference::Lower),
    ("memory.failcnt", "times", Preference::Lower),
    ("memory.stat.pgscan", "pages", Preference::Lower),
    ("memory.stat.pgsteal", "pages", Preference::None),
    ("memory.stat.pgmajfault", "faults", Preference::Lower),
    (
        "memory.stat.workingset_refault_anon",
        "pages",
        Preference::Lower,
    ),
    (
        "memory.stat.workingset_refault_file",
        "pages",
        Preference::Lower,
    ),
];

/// Rows of memory cgroups, `GROUP/FILE.KEY`; of the group around a whole workload without GROUP.
fn cgroup_rows(recording: &Recording) -> Rows {
    const CGROUP: &str = "cgroup/";
    let of_groups = recording.counters.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix(CGROUP)?;
        let own = name.rsplit('/').next().unwrap_or(name);
        let (_, unit, better) = OF_CGROUPS.iter().find(|(shown, ..)| *shown == own)?;
        Some(Measured {
            name: name.to_owned(),
            unit,
            better: *better,
            format: ValueFormat::Count,
            value: *value as f64,
            exact: *value as f64,
        })
    });
    of_groups.collect()
}

fn vmstat_rows(recording: &Recording) -> Rows {
    let elapsed_s = recording.elapsed_ns as f64 / NANOSECONDS_PER_SECOND;
    let rows = vmstat::rows(&recording.counters, elapsed_s);
    rows.into_iter().map(Measured::from).collect()
}

/// A statistic of a series: its name and its value for ascending samples.
type Statistic = (&'static str, fn(&[f64]) -> Option<f64>);

/// Rows of the stutter tables.
const QUARTILES: &[Statistic] = &[
    ("Min", |s| s.first().copied()),
    ("1st-qrtle", |s| stats::quartile_2016(s, 25.0)),
    ("2nd-qrtle", |s| stats::quartile_2016(s, 50.0)),
    ("3rd-qrtle", |s| stats::quartile_2016(s, 75.0)),
    ("Max-90%", |s| stats::quartile_2016(s, 90.0)),
    ("Max-93%", |s| stats::quartile_2016(s, 93.0)),
    ("Max-95%", |s| stats::quartile_2016(s, 95.0)),
    ("Max-99%", |s| stats::quartile_2016(s, 99.0)),
    ("Max", |s| s.last().copied()),
    ("Mean", stats::amean),
];

/// Rows of benchmarks with several samples of an operation.
const MEANS: &[Statistic] = &[
    ("Min", |s| s.first().copied()),
    ("Amean", stats::amean),
    ("Stddev", stats::stddev),
    ("CoeffVar", |s| {
        Some(stats::coeffvar(stats::stddev(s)?, stats::amean(s)?))
    }),
    ("Max", |s| s.last().copied()),
    ("BAmean-50", |s| stats::bamean(s, 50.0, Preference::Lower)),
    ("BAmean-95", |s| stats::bamean(s, 95.0, Preference::Lower)),
    ("BAmean-99", |s| stats::bamean(s, 99.0, Preference::Lower)),
];

/// Statistic-major, as mmtests orders them: all `Min`, then all `Amean`, …
fn series_rows(series: &[Series], which: SeriesRows) -> Rows {
    let statistics = match which {
        SeriesRows::Quartiles => QUARTILES,
        SeriesRows::Means => MEANS,
    };
    let sorted: Vec<(&Series, Vec<f64>)> = series.iter().map(|s| (s, in_unit(s))).collect();
    let row = |name: &str,
               statistic: fn(&[f64]) -> Option<f64>,
               (series, samples): &(&Series, Vec<f64>)| {
        let value = statistic(samples)?;
        Some(Measured {
            name: format!("{name} {}", series.name),
            unit: if name == "CoeffVar" {
                "%"
            } else {
                series.unit.symbol()
            },
            better: Preference::Lower,
            format: ValueFormat::Decimals(decimals(series.unit)),
            value,
            exact: value,
        })
    };
    statistics
        .iter()
        .flat_map(|(name, statistic)| sorted.iter().filter_map(move |s| row(name, *statistic, s)))
        .collect()
}

/// Samples in the unit of the series, ascending.
fn in_unit(series: &Series) -> Vec<f64> {
    let unit = series.unit.nanoseconds() as f64;
    let values: Vec<f64> = series
        .samples
        .iter()
        .map(|&(_, ns)| ns as f64 / unit)
        .collect();
    stats::sorted(&values)
}

/// mmtests prints milliseconds with four digits (`%12.4f`), everything else with two.
fn decimals(unit: Unit) -> usize {
    if unit == Unit::Milliseconds { 4 } else { 2 }
}

#[derive(Serialize)]
struct ComparisonJson<'a> {
    version: u32,
    columns: Vec<ColumnJson<'a>>,
    blocks: Vec<BlockJson<'a>>,
}

#[derive(Serialize)]
struct ColumnJson<'a> {
    name: &'a str,
    recordings: usize,
}

#[derive(Serialize)]
struct BlockJson<'a> {
    id: &'a str,
    rows: Vec<RowJson<'a>>,
}

#[derive(Serialize)]
struct RowJson<'a> {
    name: &'a str,
    unit: &'a str,
    better: Preference,
    values: &'a [Option<f64>],
    percents: &'a [Option<f64>],
    spreads: &'a [Option<f64>],
    significant: &'a [Option<bool>],
    sign_flips: &'a [Option<bool>],
    samples: &'a [Vec<f64>],
}

impl<'a> RowJson<'a> {
    fn of(row: &'a ComparedRow) -> RowJson<'a> {
        let (name, unit) = (&row.name, &row.unit);
        RowJson {
            name,
            unit,
            better: row.better,
            values: &row.exact_values,
            percents: &row.exact_percents,
            spreads: &row.spreads,
            significant: &row.significant,
            sign_flips: &row.sign_flips,
            samples: &row.samples,
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::recording_of;
