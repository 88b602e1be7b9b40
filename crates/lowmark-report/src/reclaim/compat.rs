//! What the kernel's own script says of the same events.
//!
//! `Documentation/trace/postprocess/trace-vmscan-postprocess.pl`, as 6.1 has it, with its built-in formats:
//! those it uses where it cannot read the format files of the running kernel. (Where it can, it takes the
//! running kernel's formats for those of the trace, and on kernels since 5.2 ends with "Fewer fields than
//! expected".) Written from its behaviour, faults included:
//!
//! 1. A line counts if its flag columns are among those it knows ([`CompatReport::accepts_columns`]). Of name
//!    and process id it takes the longest end made of letters, digits and `-`; where that leaves no name,
//!    the last name of that process id.
//! 2. An event's fields count if its text has the built-in format; the event itself may count nevertheless.
//!    No kernel's `mm_vmscan_lru_isolate` has that format (`classzone_idx=`), nor has
//!    `mm_vmscan_wakeup_kswapd` (`zid=` and `gfp_flags=`); `mm_vmscan_lru_shrink_inactive` has it since 5.2,
//!    `mm_vmscan_direct_reclaim_begin` until 5.1, `mm_vmscan_kswapd_wake` but from 4.8 to 4.16,
//!    `mm_vmscan_writepage` until its `pfn` became hexadecimal. `mm_vmscan_write_folio` it does not know.
//! 3. A begin of direct reclaim is never forgotten: each later end measures from it. An end before any begin
//!    leaves a hole in the list of stalls.
//! 4. A sleep of kswapd without a wake measures from boot; a kswapd awake at the end has no time.
//! 5. Summing stops at the first hole of a process. Of a process that has both, stalls hide the times awake
//!    at the same place of their lists.
//! 6. With `--ignore-pid` processes of one name share a list, but the place to go on at is overwritten by
//!    that of kswapd, so that each process overwrites the stalls of the one before.
//! 7. Totals run over processes with at least one begin, and one wake, only.
//!
//! An [`Event`] does not say how its text was spelled. Where that matters, the nearest is done: `pfn` is taken
//! to be decimal and `zid` to be printed, unless the release says otherwise.

mod summary;

use super::pages::count;
use lowmark_record::event::{Columns, RECLAIM_WB_FILE, RECLAIM_WB_SYNC};
use lowmark_record::{Event, Field, Kind, Release, Sink, Tables};
use std::collections::HashMap;
pub use summary::{CompatCounts, CompatProcess, CompatSummary};

/// Orders that it prints.
const ORDERS: usize = 20;

/// First release whose `mm_vmscan_kswapd_wake` and `mm_vmscan_wakeup_kswapd` do not print `zid`, although
/// their records have it.
const ZID_UNPRINTED: Release = Release::new(4, 17);

/// First release whose `mm_vmscan_writepage` prints `pfn` in hexadecimal.
const PFN_HEXADECIMAL: Release = Release::new(5, 17);

/// Fields of `mm_vmscan_lru_shrink_inactive` in the built-in format.
const SHRINK_INACTIVE: [Field; 12] = [
    Field::Nid,
    Field::NrScanned,
    Field::NrReclaimed,
    Field::NrDirty,
    Field::NrWriteback,
    Field::NrCongested,
    Field::NrImmediate,
    Field::NrActivateAnon,
    Field::NrActivateFile,
    Field::NrRefKeep,
    Field::NrUnmapFail,
    Field::Priority,
];

/// Fields of `mm_vmscan_lru_isolate` in the built-in format, but for `classzone_idx` and `lru`.
const ISOLATE: [Field; 6] = [
    Field::IsolateMode,
    Field::Order,
    Field::NrRequested,
    Field::NrScanned,
    Field::NrSkipped,
    Field::NrTaken,
];

/// What the script keeps of one process.
#[derive(Debug, Clone, Default)]
struct Process {
    /// Its key: name, `-`, process id.
    key: String,
    begins: u64,
    begins_by_order: [u64; ORDERS],
    /// The last begin, ms.
    begin_ms: Option<f64>,
    /// Ends before the first begin: places at the start of `stalls_ms` without a value.
    holes: u64,
    stalls_ms: Vec<f64>,
    requests: u64,
    requests_by_order: [u64; ORDERS],
    wakes: u64,
    wakes_by_order: [u64; ORDERS],
    rewakes: u64,
    rewakes_by_order: [u64; ORDERS],
    /// When it woke, ms; 0 while it sleeps.
    woke_ms: f64,
    awake_ms: Vec<f64>,
    pages: CompatCounts,
}

/// A task of the trace as the script sees it.
#[derive(Debug, Clone, Copy)]
enum Who {
    Unseen,
    /// Index of its process and of its process id.
    Named(u32, u32),
    /// Index of its process id, and of the process of that id without a name.
    Unnamed(u32, u32),
}

/// Collects what the kernel's script would: a [`Sink`]. It keeps eight bytes for each direct reclaim.
#[derive(Debug, Clone, Default)]
pub struct CompatReport {
    release: Option<Release>,
    tasks: Vec<Who>,
    processes: Vec<Process>,
    by_key: HashMap<String, u32>,
    /// Process ids as the script takes them from lines, and the process that had each last.
    last: Vec<Option<u32>>,
    by_pid: HashMap<String, u32>,
    /// The columns of the last event and whether they are accepted; most often those of the next.
    columns: Option<(Columns, bool)>,
}

fn is_known(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-'
}

/// The end of `text` that the script takes for name and process id.
fn known_end(text: &str) -> &str {
    let start = text.bytes().rposition(|b| !is_known(b));
    // Behind a byte that is no ASCII letter there may be the rest of a character.
    start.and_then(|at| text.get(at + 1..)).unwrap_or(text)
}

/// Time as the script has it: seconds and microseconds apart, then ms.
fn milliseconds(time_ns: u64) -> f64 {
    let us = super::distribution::microseconds(time_ns);
    (us / 1_000_000) as f64 * 1000.0 + (us % 1_000_000) as f64 / 1000.0
}

/// A difference of two times, after the script has printed it and read it again: fifteen digits, and of
/// a negative one it reads nothing.
fn latency(from_ms: f64, to_ms: f64) -> f64 {
    let difference = to_ms - from_ms;
    if difference <= 0.0 {
        return 0.0;
    }
    format!("{difference:.14e}").parse().unwrap_or(difference)
}

fn has_counts(event: &Event, fields: &[Field]) -> bool {
    fields
        .iter()
        .all(|field| event.signed(*field).is_some_and(|v| v >= 0))
}

fn by_order(counts: &mut [u64; ORDERS], event: &Event) {
    let order = usize::try_from(event.signed(Field::Order).unwrap_or(0));
    if let Some(count) = order.ok().and_then(|order| counts.get_mut(order)) {
        *count += 1;
    }
}

impl CompatReport {
    /// A report without events. `release` is that of the kernel where events are binary records: only then
    /// it matters, as records have fields that the text of their release lacks. With none, events are
    /// taken to come from text.
    pub fn new(release: Option<Release>) -> CompatReport {
        CompatReport {
            release,
            ..CompatReport::default()
        }
    }

    /// Whether the script reads a line with these flag columns: none, or three letters that it knows (`d`,
    /// `X`; `N`, `n`, `p`; `H`, `h`, `s`; `.` for each) and hexadecimal digits or `.` behind. It drops those
    /// of lazy preemption (`l`, `L`, `b`, `B`), of disabled bottom halves (`D`, `b`) and of non-maskable
    /// interrupts (`Z`, `z`).
    #[inline]
    pub fn accepts_columns(columns: &Columns) -> bool {
        match columns.text() {
            [] => true,
            [irqs, resched, context, rest @ ..] => {
                matches!(irqs, b'd' | b'X' | b'.')
                    && matches!(resched, b'N' | b'n' | b'p' | b'.')
                    && matches!(context, b'H' | b'h' | b's' | b'.')
                    && rest.iter().all(|b| b.is_ascii_hexdigit() || *b == b'.')
            }
            _ => false,
        }
    }

    fn process(&mut self, key: &str) -> u32 {
        if let Some(&index) = self.by_key.get(key) {
            return index;
        }
        let index = self.processes.len() as u32;
        self.processes.push(Process {
            key: key.to_owned(),
            ..Process::default()
        });
        self.by_key.insert(key.to_owned(), index);
        index
    }

    fn pid(&mut self, pid: &str) -> u32 {
        if let Some(&index) = self.by_pid.get(pid) {
            return index;
        }
        let index = self.last.len() as u32;
        self.last.push(None);
        self.by_pid.insert(pid.to_owned(), index);
        index
    }

    #[cold]
    fn meet(&mut self, task: u32, tables: &Tables) -> Who {
        let line = match tables.actor(task) {
            Some(actor) => format!("{}-{}", actor.name, actor.pid),
            None => "-".to_owned(),
        };
        let key = known_end(&line);
        let (name, pid) = key.rsplit_once('-').unwrap_or(("", key));
        let pid_index = self.pid(pid);
        let process = self.process(key);
        let who = if name.is_empty() {
            Who::Unnamed(pid_index, process)
        } else {
            Who::Named(process, pid_index)
        };
        if tables.actor(task).is_some() {
            let index = task as usize;
            if self.tasks.len() <= index {
                self.tasks.resize(index + 1, Who::Unseen);
            }
            self.tasks[index] = who;
        }
        who
    }

    /// The process of an event, as the script has it.
    #[inline]
    fn who(&mut self, event: &Event, tables: &Tables) -> usize {
        let who = match self.tasks.get(event.task as usize) {
            None | Some(Who::Unseen) => self.meet(event.task, tables),
            Some(who) => *who,
        };
        match who {
            Who::Named(process, pid) => {
                self.last[pid as usize] = Some(process);
                process as usize
            }
            Who::Unnamed(pid, process) => self.last[pid as usize].unwrap_or(process) as usize,
            Who::Unseen => 0,
        }
    }

    fn count_event(&mut self, at: usize, event: &Event) {
        let release = self.release;
        let zid_printed =
            || event.get(Field::Zid).is_some() && release.is_none_or(|r| r < ZID_UNPRINTED);
        let Some(process) = self.processes.get_mut(at) else {
            return;
        };
        match event.kind {
            Kind::DirectReclaimBegin => {
                process.begins += 1;
                process.begin_ms = Some(milliseconds(event.time_ns));
                if has_counts(event, &[Field::Order, Field::MayWritepage]) {
                    by_order(&mut process.begins_by_order, event);
                }
            }
            Kind::DirectReclaimEnd => match process.begin_ms {
                Some(begin) => {
                    let stall = latency(begin, milliseconds(event.time_ns));
                    process.stalls_ms.push(stall);
                }
                None => process.holes += 1,
            },
            Kind::KswapdWake => {
                if zid_printed() || !has_counts(event, &[Field::Nid, Field::Order]) {
                    return;
                }
                if process.woke_ms == 0.0 {
                    process.woke_ms = milliseconds(event.time_ns);
                    process.wakes += 1;
                    by_order(&mut process.wakes_by_order, event);
                } else {
                    process.rewakes += 1;
                    by_order(&mut process.rewakes_by_order, event);
                }
            }
            Kind::KswapdSleep => {
                let awake = latency(process.woke_ms, milliseconds(event.time_ns));
                process.awake_ms.push(awake);
                process.woke_ms = 0.0;
            }
            Kind::WakeupKswapd => {
                process.requests += 1;
                let known = has_counts(event, &[Field::Nid, Field::Zid, Field::Order]);
                if known && zid_printed() && event.get(Field::GfpFlags).is_some() {
                    by_order(&mut process.requests_by_order, event);
                }
            }
            Kind::LruIsolate => {
                // The kernel's `classzone=` is not the script's `classzone_idx=`.
                let known = event.get(Field::Classzone).is_none() && has_counts(event, &ISOLATE);
                if let (true, Some(lru)) = (known, event.get(Field::Lru)) {
                    // LRU_INACTIVE_FILE and LRU_ACTIVE_FILE.
                    process.pages.isolate(event, matches!(lru, 2 | 3));
                }
            }
            Kind::LruShrinkInactive => {
                if let (true, Some(flags)) =
                    (has_counts(event, &SHRINK_INACTIVE), event.get(Field::Flags))
                {
                    let reclaimed = count(event, Field::NrReclaimed);
                    process
                        .pages
                        .reclaim(reclaimed, flags & RECLAIM_WB_FILE != 0);
                }
            }
            Kind::Writepage => {
                let pfn_hexadecimal = release.is_some_and(|r| r >= PFN_HEXADECIMAL);
                if let (false, Some(flags)) = (pfn_hexadecimal, event.get(Field::Flags)) {
                    let file = flags & RECLAIM_WB_FILE != 0;
                    process.pages.write(file, flags & RECLAIM_WB_SYNC != 0);
                }
            }
            _ => {}
        }
    }
}

impl CompatReport {
    /// Takes an event; says whether the script would read its line.
    #[inline]
    pub(super) fn take(&mut self, event: &Event, tables: &Tables) -> bool {
        let accepted = match self.columns {
            Some((columns, accepted)) if columns == event.columns => accepted,
            _ => CompatReport::accepts_columns(&event.columns),
        };
        self.columns = Some((event.columns, accepted));
        if accepted {
            let process = self.who(event, tables);
            self.count_event(process, event);
        }
        accepted
    }
}

impl Sink for CompatReport {
    #[inline]
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.take(event, tables);
    }
}
