//! A trace, whatever its carrier, as a stream of events.
//!
//! Everything that can be read is read: what is not understood is counted by kind, and what makes the
//! figures uncertain (a cut file, lost events, times that go back) is noted with its place in the
//! [`Account`]. An error is only what keeps anything from being read.

use crate::actors::{KindCache, TaskCache};
use crate::decode::{Decoded, Decoders};
use crate::format::Formats;
use crate::input::{Input, InputError, Kind as InputKind, Seekable};
use crate::perf_data::PerfData;
use crate::record::{self, Accounting, RawRecord};
use crate::text::{self, EventLine, Header, Line, Time};
use crate::trace_dat::TraceDat;
use lowmark_record::event::{Columns, NO_CPU, TextParser, Understood};
use lowmark_record::{Account, Event, Flaw, Kind, Sink, Source, Tables};
use std::ops::ControlFlow;

/// Largest binary trace that is copied to a temporary file, because it comes compressed or from a pipe.
const SPOOL_MAX: u64 = 64 << 30;

/// Bytes of a name of a task or event that are kept. The kernel's have fewer; a hostile file's have a line.
const NAME_BYTES_MAX: usize = 64;

/// Why nothing of a trace could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It could not be opened, or is nothing that is read here.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The file contradicts itself.
    #[error("{name}: {source}")]
    Record {
        /// File.
        name: String,
        /// What is wrong, and where.
        source: record::Error,
    },
}

/// Reads a trace to its end.
///
/// # Errors
///
/// [`ReadError`] if nothing could be read. After the first event, what goes wrong is noted in the account.
pub fn read(input: Input, sink: &mut dyn Sink) -> Result<Source, ReadError> {
    let name = input.name().to_owned();
    let wrong = |source| ReadError::Record {
        name: name.clone(),
        source,
    };
    match input.kind() {
        InputKind::Text(_) => Ok(read_text(input, sink)),
        InputKind::TraceDat => {
            let file = input.into_seekable(SPOOL_MAX)?;
            let mut trace = TraceDat::open(&file.file).map_err(wrong)?;
            let formats = trace.formats().clone();
            let mut records = Records::new(trace.endian(), &formats, sink);
            let accounting = trace
                .for_each(&mut |record| records.take(record))
                .map_err(wrong)?;
            Ok(records.finish(&accounting, &file))
        }
        InputKind::PerfData { .. } => {
            let file = input.into_seekable(SPOOL_MAX)?;
            let mut trace = PerfData::open(&file.file).map_err(wrong)?;
            let formats = trace.formats().clone();
            let mut records = Records::new(trace.endian(), &formats, sink);
            let accounting = trace
                .for_each(&mut |record| records.take(record))
                .map_err(wrong)?;
            Ok(records.finish(&accounting, &file))
        }
        InputKind::Unknown(_) => Err(input.unrecognised().into()),
    }
}

/// Notes that the input could not be read to its end. That explains what was found wrong shortly before: the
/// last line is a part of one, and damage shows in what comes out before a decoder notices it.
fn broken(account: &mut Account, error: &InputError) {
    let flaw = error.flaw();
    if flaw == Flaw::Damaged {
        account.damaged = account.damaged.saturating_add(1);
        account.flaws.remove(&Flaw::Truncated);
    }
    account.flaws.insert(flaw, error.to_string());
}

/// Lines of text, one after the other.
fn read_text(input: Input, sink: &mut dyn Sink) -> Source {
    let mut reading = TextReading::default();
    let mut lines = input.into_lines();
    let mut parser = text::Parser::default();
    loop {
        match lines.next_line() {
            Ok(Some(raw)) => {
                let place = || format!("line {} (offset {})", raw.number, raw.offset);
                match parser.common(&raw) {
                    Some(line) => reading.event(&line, place, sink),
                    None => match parser.uncommon(&raw) {
                        Line::Event(line) => reading.uncommon_event(&line, place, sink),
                        line => reading.other(line, place),
                    },
                }
            }
            Ok(None) => break,
            Err(error) => {
                broken(&mut reading.account, &error);
                break;
            }
        }
    }
    Source {
        account: reading.account,
        tables: reading.tables,
    }
}

#[derive(Default)]
struct TextReading {
    account: Account,
    tables: Tables,
    kinds: KindCache,
    /// Tracepoint of the last event, if it is one of ours.
    kind: Option<Kind>,
    tasks: TaskCache,
    parser: TextParser,
    /// Task and columns of the last event.
    last: Option<(u32, Columns)>,
    missed: String,
}

impl TextReading {
    #[inline(never)]
    fn uncommon_event(
        &mut self,
        line: &EventLine<'_>,
        place: impl Fn() -> String,
        sink: &mut dyn Sink,
    ) {
        self.event(line, place, sink);
    }

    #[inline(always)]
    fn event(&mut self, line: &EventLine<'_>, place: impl Fn() -> String, sink: &mut dyn Sink) {
        self.account.lines += 1;
        if !line.named_again {
            self.kind = self.kinds.kind(line.event);
        }
        let Some(kind) = self.kind else {
            self.missed.clear();
            self.missed.push_str("event ");
            let name = &line.event[..line.event.len().min(NAME_BYTES_MAX)];
            self.missed.push_str(&String::from_utf8_lossy(name));
            self.account.miss(&self.missed);
            if !line.again {
                self.last = None;
            }
            return;
        };
        let time_ns = match line.time {
            Time::Ns(ns) | Time::Counter(ns) => ns,
        };
        let (task, columns) = match self.last {
            Some(last) if line.again => last,
            _ => self.head(line),
        };
        let mut event = Event::new(kind, time_ns, line.cpu.unwrap_or(NO_CPU), task);
        event.columns = columns;
        match self
            .parser
            .parse(line.text, &mut event, &mut self.tables.names)
        {
            Understood::Exactly => {}
            Understood::ByLabels => {
                *self
                    .account
                    .by_labels
                    .entry(kind.name().to_owned())
                    .or_default() += 1;
            }
            Understood::Not => {
                self.account.miss(&format!("text of {}", kind.name()));
                return;
            }
        }
        self.account.understood += 1;
        self.account.saw(time_ns, place);
        sink.event(&event, &self.tables);
    }

    /// The task and the columns of an event, kept for those that begin as it does.
    #[inline]
    fn head(&mut self, line: &EventLine<'_>) -> (u32, Columns) {
        let comm = &line.comm[..line.comm.len().min(NAME_BYTES_MAX)];
        let task = self.tasks.task(comm, line.pid, &mut self.tables);
        let columns = line.flags.map(Columns::of).unwrap_or_default();
        *self.last.insert((task, columns))
    }

    fn other(&mut self, line: Line<'_>, place: impl Fn() -> String) {
        match line {
            Line::Event(_) => {}
            Line::Other(why) => {
                self.account.lines += 1;
                self.account.miss(why.as_str());
                if matches!(
                    why,
                    text::Why::Cut | text::Why::TooLong | text::Why::NotText
                ) {
                    let flaw = if why == text::Why::Cut {
                        Flaw::Truncated
                    } else {
                        Flaw::Damaged
                    };
                    self.account.damaged += 1;
                    self.account
                        .flaw(flaw, || format!("{}: {}", place(), why.as_str()));
                }
            }
            Line::Lost { cpu, events } => {
                self.account.comments += 1;
                match events {
                    Some(events) => {
                        self.account.lost = self.account.lost.saturating_add(events);
                    }
                    None => self.account.gaps += 1,
                }
                self.account.flaw(Flaw::Lost, || match cpu {
                    Some(cpu) => format!("{}: on CPU {cpu}", place()),
                    None => place(),
                });
            }
            Line::Header(Header::Entries {
                in_buffer, written, ..
            }) => {
                self.account.comments += 1;
                let overwritten = written.saturating_sub(in_buffer);
                if overwritten > 0 {
                    self.account.lost = self.account.lost.saturating_add(overwritten);
                    self.account.flaw(Flaw::Lost, || {
                        format!("{}: {overwritten} events were overwritten", place())
                    });
                }
            }
            Line::Header(_) | Line::BufferStarted { .. } | Line::Blank | Line::StackEntry => {
                self.account.comments += 1;
            }
        }
    }
}

/// Binary records, one after the other.
struct Records<'a> {
    account: Account,
    tables: Tables,
    tasks: TaskCache,
    decoders: Decoders,
    formats: &'a Formats,
    sink: &'a mut dyn Sink,
}

impl<'a> Records<'a> {
    fn new(endian: record::Endian, formats: &'a Formats, sink: &'a mut dyn Sink) -> Records<'a> {
        Records {
            account: Account::default(),
            tables: Tables::default(),
            tasks: TaskCache::default(),
            decoders: Decoders::new(endian),
            formats,
            sink,
        }
    }

    fn take(&mut self, record: RawRecord<'_>) -> ControlFlow<()> {
        self.account.lines += 1;
        let pid = self.decoders.pid(&record, self.formats).unwrap_or(-1);
        let decoded = self
            .decoders
            .decode(&record, self.formats, &mut self.tables.names);
        match decoded {
            Decoded::Event(mut event) => {
                let comm = record.comm.unwrap_or("<...>");
                event.task = self.tasks.task(comm.as_bytes(), pid, &mut self.tables);
                self.account.understood += 1;
                let number = self.account.lines;
                self.account
                    .saw(event.time_ns, || format!("record {number}"));
                self.sink.event(&event, &self.tables);
            }
            Decoded::Foreign(name) => {
                let missed = format!("event {name}");
                self.account.miss(&missed);
            }
            Decoded::Unknown => self.account.miss("event without a format"),
            Decoded::Short(name) => {
                let missed = format!("short record of {name}");
                self.account.miss(&missed);
            }
        }
        ControlFlow::Continue(())
    }

    /// What the carrier itself noticed goes into the account.
    fn finish(self, accounting: &Accounting, file: &Seekable) -> Source {
        let mut account = self.account;
        account.lost = accounting.lost_events.max(accounting.overwritten);
        account.gaps = accounting.gaps_uncounted;
        account.damaged += accounting.damaged;
        account.comments += accounting.other.values().sum::<u64>();
        if account.lost > 0 || account.gaps > 0 {
            account.flaw(Flaw::Lost, || "the recorder says so".to_owned());
        }
        if let Some(flaw) = &accounting.first_damage {
            account.flaw(Flaw::Damaged, || {
                format!("offset {}: {}", flaw.offset, flaw.what)
            });
        }
        if let Some(flaw) = &accounting.truncated {
            account.flaw(Flaw::Truncated, || {
                format!("offset {}: {}", flaw.offset, flaw.what)
            });
        }
        if let Some(error) = &file.broken {
            broken(&mut account, error);
        }
        Source {
            account,
            tables: self.tables,
        }
    }
}
