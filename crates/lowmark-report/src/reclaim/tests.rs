//! Judges of the reports: sequences made by hand, for each rule; text of every era that the kernel's script
//! reads; published tables; captures of real kernels and the script itself where they can be found.

mod captures;
mod compat;
mod pairs;
mod published;
mod robust;
mod shown;

use super::*;
use lowmark_record::event::{Columns, TextParser, Understood};
use lowmark_record::stream::Account;
use lowmark_record::{Event, Kind, Sink, Tables};

/// One line of ftrace text, taken apart.
struct Line<'t> {
    name: &'t [u8],
    pid: i32,
    cpu: u32,
    columns: &'t [u8],
    time_ns: u64,
    event: &'t str,
    text: &'t [u8],
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|w| w == part)
}

/// `sec.usec` in ns.
fn time_ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok()?;
    let fraction: u64 = fraction.parse().ok()?;
    let ns = fraction * 10u64.checked_pow(9u32.checked_sub(digits)?)?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + ns)
}

/// The least that text of these tests needs: `name-pid [cpu] (columns) time: event: text`.
fn split(line: &[u8]) -> Option<Line<'_>> {
    let line = line.trim_ascii_start();
    let cpu_at = position(line, b" [")?;
    let (task, rest) = (line[..cpu_at].trim_ascii_end(), &line[cpu_at + 2..]);
    let dash = task.iter().rposition(|b| *b == b'-')?;
    let cpu_end = position(rest, b"]")?;
    let cpu = str::from_utf8(&rest[..cpu_end]).ok()?.parse().ok()?;
    let rest = rest[cpu_end + 1..].trim_ascii_start();
    let colon = position(rest, b": ")?;
    let head = rest[..colon].trim_ascii();
    let (columns, time) = match head.iter().position(|b| *b == b' ') {
        Some(at) => (&head[..at], head[at..].trim_ascii()),
        None => (&head[..0], head),
    };
    let rest = &rest[colon + 2..];
    let colon = position(rest, b":")?;
    Some(Line {
        name: &task[..dash],
        pid: str::from_utf8(&task[dash + 1..]).ok()?.parse().ok()?,
        cpu,
        columns,
        time_ns: time_ns(str::from_utf8(time).ok()?)?,
        event: str::from_utf8(&rest[..colon]).ok()?,
        text: rest[colon + 1..].trim_ascii_start(),
    })
}

/// Lets the events of a text go by.
pub(crate) fn read(text: &[u8], sink: &mut dyn Sink) -> (Tables, Account) {
    let (mut tables, mut account) = (Tables::default(), Account::default());
    let mut parser = TextParser::default();
    let lines = text.split(|b| *b == b'\n');
    for line in lines.filter(|l| !l.is_empty() && l[0] != b'#') {
        account.lines += 1;
        let Some(line) = split(line) else {
            account.miss("line");
            continue;
        };
        let Some(kind) = Kind::named(line.event) else {
            account.miss(line.event);
            continue;
        };
        let task = tables.task(line.name, line.pid);
        let mut event = Event::new(kind, line.time_ns, line.cpu, task);
        event.columns = Columns::of(line.columns);
        if parser.parse(line.text, &mut event, &mut tables.names) == Understood::Not {
            account.miss(line.event);
            continue;
        }
        account.understood += 1;
        let (first, last) = account.span_ns.unwrap_or((line.time_ns, line.time_ns));
        account.span_ns = Some((first.min(line.time_ns), last.max(line.time_ns)));
        sink.event(&event, &tables);
    }
    (tables, account)
}

fn figures_with(text: &str, options: ReclaimOptions, context: RunContext) -> ReclaimFigures {
    let mut report = ReclaimReport::new(options);
    let (tables, account) = read(text.as_bytes(), &mut report);
    assert_eq!(account.missed(), 0, "{:?}", account.not_understood);
    report.finish(&tables, account, context)
}

fn figures(text: &str) -> ReclaimFigures {
    let options = ReclaimOptions {
        compare_script: true,
        ..ReclaimOptions::default()
    };
    figures_with(text, options, RunContext::default())
}

fn summary(text: &str, ignore_pid: bool) -> CompatSummary {
    let mut report = CompatReport::new(None);
    read(text.as_bytes(), &mut report);
    report.summary(ignore_pid)
}

/// Lines of `name-pid`, time in ms and event, with the columns of a kernel of 3.x.
fn lines(events: &[(&str, f64, &str)]) -> String {
    let line = |(task, ms, event): &(&str, f64, &str)| {
        let prefix = match event.split(':').next() {
            Some("mm_shrink_slab_start" | "mm_shrink_slab_end") => "",
            Some(name) if name.starts_with("writeback_") => "",
            _ => "mm_vmscan_",
        };
        format!(
            "{task:>16} [000] .... {:.6}: {prefix}{event}\n",
            100.0 + ms / 1000.0
        )
    };
    events.iter().map(line).collect()
}

const BEGIN: &str = "direct_reclaim_begin: order=0 may_writepage=1 gfp_flags=GFP_KERNEL";
const END: &str = "direct_reclaim_end: nr_reclaimed=32";
const WAKE: &str = "kswapd_wake: nid=0 order=0";
const SLEEP: &str = "kswapd_sleep: nid=0";
