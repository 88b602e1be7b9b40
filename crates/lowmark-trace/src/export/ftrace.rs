//! Text as ftrace's `trace` file has it, of any era from 2.6.36 on.
//!
//! | kernels | line |
//! |---|---|
//! | to 3.2 | `%16s-%-5d [%03d] %5lu.%06lu: EVENT: TEXT` |
//! | 3.3 to 5.9 | `%16s-%-5d [%03d] FFFF %5lu.%06lu: EVENT: TEXT` |
//! | 5.10 to 5.14 | `%16s-%-7d [%03d] FFFF %5lu.%06lu: EVENT: TEXT` (commit 795d6379a47b) |
//! | from 5.15 | `%16s-%-7d [%03d] FFFFF %5lu.%06lu: EVENT: TEXT` (commit 54357f0c9149) |
//!
//! Events that kernels of the era do not have are left out and counted. Where an event knows its flag
//! columns they are written, cut or filled up to the era's number; else dots, but `d..1` where pages are
//! isolated, under the LRU lock with interrupts off.
//!
//! The scripts that come with the kernel take letters, digits and `-` in task names and stop reading a name
//! at anything else, so each other character becomes a `-`, and names end after 15 bytes as the kernel's do.
//! The kernel's own `<...>` and `<idle>` stay.

use super::output::FileOutput;
use super::row::{actor, number, padded};
use super::{Entries, ExportError, Exported, Exporter, Format, Options, count};
use lowmark_record::event::{NO_CPU, ValueType};
use lowmark_record::{Event, Field, Kind, Release, Sink, Tables};
use std::path::Path;

/// Longest task name, bytes: `TASK_COMM_LEN` without its NUL.
const COMM_BYTES: usize = 15;

/// Column in which task names end.
const COMM_WIDTH: usize = 16;

/// How lines of one era look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Era {
    /// Flag columns.
    columns: usize,
    /// Width of process ids.
    pid_width: usize,
    /// Whether the header says how many events there are.
    counts: bool,
    /// Captions of the columns.
    captions: &'static [&'static str],
}

impl Era {
    fn of(release: Release) -> Era {
        let wide = release >= Release::new(5, 10);
        let columns = match release {
            r if r < Release::new(3, 3) => 0,
            r if r < Release::new(5, 15) => 4,
            _ => 5,
        };
        let captions = match (columns, wide) {
            (0, _) => CAPTIONS_BARE,
            (4, false) => CAPTIONS_4,
            (4, true) => CAPTIONS_4_WIDE,
            _ if release < Release::new(5, 18) => CAPTIONS_5,
            _ => CAPTIONS_5_BH,
        };
        Era {
            columns,
            pid_width: if wide { 7 } else { 5 },
            counts: columns > 0,
            captions,
        }
    }
}

const CAPTIONS_BARE: &[&str] = &[
    "           TASK-PID    CPU#    TIMESTAMP  FUNCTION",
    "              | |       |          |         |",
];

const CAPTIONS_4: &[&str] = &[
    "                              _-----=> irqs-off",
    "                             / _----=> need-resched",
    "                            | / _---=> hardirq/softirq",
    "                            || / _--=> preempt-depth",
    "                            ||| /     delay",
    "           TASK-PID   CPU#  ||||    TIMESTAMP  FUNCTION",
    "              | |       |   ||||       |         |",
];

const CAPTIONS_4_WIDE: &[&str] = &[
    "                                _-----=> irqs-off",
    "                               / _----=> need-resched",
    "                              | / _---=> hardirq/softirq",
    "                              || / _--=> preempt-depth",
    "                              ||| /     delay",
    "           TASK-PID     CPU#  ||||   TIMESTAMP  FUNCTION",
    "              | |         |   ||||      |         |",
];

const CAPTIONS_5: &[&str] = &[
    "                                _-----=> irqs-off",
    "                               / _----=> need-resched",
    "                              | / _---=> hardirq/softirq",
    "                              || / _--=> preempt-depth",
    "                              ||| / _-=> migrate-disable",
    "                              |||| /     delay",
    "           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION",
    "              | |         |   |||||     |         |",
];

const CAPTIONS_5_BH: &[&str] = &[
    "                                _-----=> irqs-off/BH-disabled",
    "                               / _----=> need-resched",
    "                              | / _---=> hardirq/softirq",
    "                              || / _--=> preempt-depth",
    "                              ||| / _-=> migrate-disable",
    "                              |||| /     delay",
    "           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION",
    "              | |         |   |||||     |         |",
];

/// The exporter.
pub(super) struct Ftrace {
    out: FileOutput,
    era: Era,
    release: Release,
    any_comm: bool,
    /// `comm-pid [` of each task that was seen, by index.
    prefixes: Vec<Option<Box<[u8]>>>,
    /// By tracepoint, whether kernels of the era have it.
    exists: Vec<bool>,
    /// By tracepoint, whether a field is free text.
    has_text: Vec<bool>,
    /// By tracepoint, `: NAME: `.
    labels: Vec<Box<[u8]>>,
    /// The second of the last line, and how lines show it.
    second: (u64, Vec<u8>),
    last_ns: u64,
    exported: Exported,
}

impl Ftrace {
    pub(super) fn create(path: &Path, options: &Options) -> Result<Ftrace, ExportError> {
        let mut out = FileOutput::create(path, Format::Ftrace.name())?;
        let era = Era::of(options.release);
        header(era, options.entries, &mut out.buffer);
        let exists = Kind::ALL.iter().map(|kind| kind.exists_in(options.release));
        let is_text = |field: &Field| field.spec().value == ValueType::Text;
        let has_text = Kind::ALL
            .iter()
            .map(|kind| kind.fields().iter().any(is_text));
        let label = |kind: &Kind| format!(": {}: ", kind.name()).into_bytes().into();
        let labels = Kind::ALL.iter().map(label);
        Ok(Ftrace {
            out,
            era,
            release: options.release,
            any_comm: options.any_comm,
            prefixes: Vec::new(),
            exists: exists.collect(),
            has_text: has_text.collect(),
            labels: labels.collect(),
            second: (0, b"    0.".to_vec()),
            last_ns: 0,
            exported: Exported::default(),
        })
    }

    /// Makes the prefix of a task.
    #[cold]
    fn introduce(&mut self, tables: &Tables, task: u32) {
        let (name, pid) = actor(tables, task);
        let shown = comm(name, self.any_comm);
        if shown != name {
            self.exported.renamed.insert(name.to_owned(), shown.clone());
        }
        let mut prefix = vec![b' '; COMM_WIDTH.saturating_sub(shown.len())];
        prefix.extend_from_slice(shown.as_bytes());
        prefix.push(b'-');
        let start = prefix.len();
        // The kernel always knows a process id; 0 is nobody's.
        number(u64::from(pid.unwrap_or(0).cast_unsigned()), &mut prefix);
        prefix.resize(prefix.len().max(start + self.era.pid_width), b' ');
        prefix.extend_from_slice(b" [");
        // `u32::MAX` and other indices that the tables do not have share the last place.
        let place = self.place(tables, task);
        if self.prefixes.len() <= place {
            self.prefixes.resize(place + 1, None);
        }
        self.prefixes[place] = Some(prefix.into());
    }

    fn place(&self, tables: &Tables, task: u32) -> usize {
        match tables.actor(task) {
            Some(_) => task as usize + 1,
            None => 0,
        }
    }

    /// Writes CPU, flag columns and time: `001] d..1.  1042.118234`.
    #[inline]
    fn place_and_time(&mut self, event: &Event) {
        let cpu = if event.cpu == NO_CPU { 0 } else { event.cpu };
        let out = &mut self.out.buffer;
        padded(u64::from(cpu), 3, b'0', out);
        let known = event.columns.text();
        let mut columns = match (known, event.kind) {
            ([], Kind::LruIsolate | Kind::MemcgIsolate) => *b"] d..1. ",
            _ => *b"] ..... ",
        };
        for (column, known) in columns[2..7].iter_mut().zip(known) {
            *column = *known;
        }
        // Without columns one blank stays, with them there is one behind.
        let end = 2 + self.era.columns;
        columns[end] = b' ';
        out.extend_from_slice(&columns[..end + usize::from(self.era.columns > 0)]);
        // `ns2usecs` rounds to the nearest; the last microsecond in 64 bits of nanoseconds is never rounded up, as no
        // reader could take the next.
        let usec = event.time_ns.saturating_add(500) / 1_000;
        let (second, mut usec) = (usec / 1_000_000, usec % 1_000_000);
        if second != self.second.0 {
            self.second.0 = second;
            self.second.1.clear();
            padded(second, 5, b' ', &mut self.second.1);
            self.second.1.push(b'.');
        }
        out.extend_from_slice(&self.second.1);
        let mut digits = [b'0'; 6];
        for digit in digits.iter_mut().rev() {
            *digit += (usec % 10) as u8;
            usec /= 10;
        }
        out.extend_from_slice(&digits);
    }
}

fn header(era: Era, entries: Option<Entries>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"# tracer: nop\n#\n");
    if let Some(Entries { events, cpus }) = entries.filter(|_| era.counts) {
        let line =
            format!("# entries-in-buffer/entries-written: {events}/{events}   #P:{cpus}\n#\n");
        out.extend_from_slice(line.as_bytes());
    }
    for caption in era.captions {
        out.push(b'#');
        out.extend_from_slice(caption.as_bytes());
        out.push(b'\n');
    }
}

/// Blanks out line breaks: names of files may have some, and a line is an event.
#[inline]
fn one_line(text: &mut [u8]) {
    if text.contains(&b'\n') {
        for b in text.iter_mut().filter(|b| **b == b'\n') {
            *b = b' ';
        }
    }
}

/// A task's name as it is written.
fn comm(name: &str, any: bool) -> String {
    if name == "<...>" || name == "<idle>" {
        return name.to_owned();
    }
    let mut end = name.len().min(COMM_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    // A line break would end the event, whatever scripts read.
    let printable = |c: char| if c.is_control() { '-' } else { c };
    let chars = name[..end].chars();
    if any {
        chars.map(printable).collect()
    } else {
        chars.map(plain).collect()
    }
}

impl Sink for Ftrace {
    fn event(&mut self, event: &Event, tables: &Tables) {
        if !self.exists[event.kind as usize] {
            count(&mut self.exported.not_in_era, event.kind);
            return;
        }
        let place = self.place(tables, event.task);
        if self.prefixes.get(place).is_none_or(Option::is_none) {
            self.introduce(tables, event.task);
        }
        if let Some(prefix) = &self.prefixes[place] {
            self.out.buffer.extend_from_slice(prefix);
        }
        self.place_and_time(event);
        let out = &mut self.out.buffer;
        out.extend_from_slice(&self.labels[event.kind as usize]);
        let text = out.len();
        event.render(&tables.names, self.release, out);
        if self.has_text[event.kind as usize] {
            one_line(&mut out[text..]);
        }
        out.push(b'\n');
        self.out.flush_if_full();
        self.exported.events += 1;
        self.exported.unsorted += u64::from(event.time_ns < self.last_ns);
        self.last_ns = event.time_ns;
    }
}

impl Exporter for Ftrace {
    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(self: Box<Self>) -> Result<Exported, ExportError> {
        let (path, bytes) = self.out.finish()?;
        Ok(Exported {
            files: vec![path],
            bytes,
            ..self.exported
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_scripts_read() {
        assert_eq!(comm("kswapd0", false), "kswapd0");
        assert_eq!(comm("kworker/0:1", false), "kworker-0-1");
        assert_eq!(comm("kworker/0:1", true), "kworker/0:1");
        assert_eq!(
            comm("a name of more than fifteen", false),
            "a-name-of-more-"
        );
        assert_eq!(comm("fourteen-and-ä-b", false), "fourteen-and--");
        assert_eq!(comm("two\nlines", true), "two-lines");
        assert_eq!(comm("<...>", false), "<...>");
    }

    #[test]
    fn eras_have_their_columns() {
        let era = |text: &str| {
            let era = Era::of(text.parse().expect("a release"));
            (era.columns, era.pid_width, era.captions.len())
        };
        assert_eq!(era("2.6.36"), (0, 5, 2));
        assert_eq!(era("3.2"), (0, 5, 2));
        assert_eq!(era("3.3"), (4, 5, 7));
        assert_eq!(era("5.9"), (4, 5, 7));
        assert_eq!(era("5.10"), (4, 7, 7));
        assert_eq!(era("5.15"), (5, 7, 8));
        assert_eq!(era("6.18"), (5, 7, 8));
    }
}
