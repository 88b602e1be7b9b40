//! The readers of traces, each as a function of any bytes: what the fuzz targets run, and the replay of
//! their corpus in `crates/lowmark-trace/tests/fuzz_smoke.rs`.
//!
//! 1. A reader must come to an end without a panic, which here are failed assertions too.
//! 2. Work is bounded by the bytes read: so many records or bytes come out of each at most. Where the input
//!    is compressed that is asked of what is inside, of which a limit is read.
//! 3. What can be checked without knowing the right answer is: read again, in pieces, or written and read
//!    back it is the same, and an account adds up.
//!
//! Each function tells what it has read as numbers, in which the canary waits for one: see `lib.rs`.

use lowmark_record::event::{NO_CPU, TextParser, Understood};
use lowmark_record::{Account, Event, Flaw, Kind, Names, Release, Sink, Tables};
use lowmark_trace::format::{Field, Format, Formats, parse_fields};
use lowmark_trace::input::{Input, LineEnd, Lines, RawLine};
use lowmark_trace::perf_data::PerfData;
use lowmark_trace::record::{Accounting, Endian, Error, RawRecord};
use lowmark_trace::ring_buffer::{self, Layout};
use lowmark_trace::text::{self, Line, Time};
use lowmark_trace::trace_dat::TraceDat;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;

/// Takes the numbers that were read.
pub type Look<'a> = dyn FnMut(u64) + 'a;

/// A reader.
pub type Target = fn(&[u8], &mut Look<'_>);

/// The number that the canary waits for; see `lib.rs`.
pub const CANARY: u64 = 647;

/// All of them, with their names: those of the binaries and of the directories of the corpus.
pub const TARGETS: [(&str, Target); 7] = [
    ("text_line", text_line),
    ("stream", stream),
    ("trace_dat", trace_dat),
    ("perf_data", perf_data),
    ("format", format),
    ("ring_buffer", ring_buffer),
    ("event_json", event_json),
];

/// Releases whose texts are written.
const ERAS: [Release; 4] = [
    Release::new(2, 6),
    Release::new(4, 8),
    Release::new(6, 18),
    Release::new(7, 2),
];
/// Bytes that may come out of a compressed input; one with more inside is left alone, for nothing is wrong
/// with taking long over much.
const EXPANDED_MAX: u64 = 4 << 20;
/// Records of a file that are looked at, for the same reason.
const RECORDS_MAX: u64 = 1 << 14;
/// Most kinds of things that an account tells apart.
const KINDS_MAX: usize = 1025;
/// Longest text of a value by a table of names, bytes beyond those of the format.
const RENDERED_MAX: usize = 16 << 10;

/// Lines of text, and the texts of events. A line that is no event is taken as the text of one, of which
/// its first byte says the kind.
pub fn text_line(data: &[u8], look: &mut Look<'_>) {
    let mut parser = TextParser::default();
    let mut names = Names::default();
    one_by_one_and_in_a_row(data);
    for bytes in data.split(|byte| *byte == b'\n') {
        let (kind, time, cpu, text) = match text::parse(bytes) {
            Line::Event(line) => {
                let name = String::from_utf8_lossy(line.event);
                let Some(kind) = Kind::named(&name) else {
                    continue;
                };
                (kind, line.time, line.cpu, line.text)
            }
            _ => match bytes.split_first() {
                Some((first, text)) => {
                    let kind = Kind::ALL[usize::from(*first) % Kind::ALL.len()];
                    (kind, Time::Counter(text.len() as u64), None, text)
                }
                None => continue,
            },
        };
        let (Time::Ns(time_ns) | Time::Counter(time_ns)) = time;
        let mut event = Event::new(kind, time_ns, cpu.unwrap_or(NO_CPU), 0);
        let understood = parser.parse(text, &mut event, &mut names);
        let mut again = Event::new(kind, time_ns, cpu.unwrap_or(NO_CPU), 0);
        let repeated = parser.parse(text, &mut again, &mut names);
        assert_eq!((understood, event), (repeated, again), "read twice");
        if understood != Understood::Not {
            written_and_read(&event, &mut names);
            event.fields().for_each(|(_, value)| look(value));
        }
    }
}

/// A parser that remembers gives the lines that one without a memory gives.
fn one_by_one_and_in_a_row(data: &[u8]) {
    let mut row = text::Parser::default();
    let (mut last, mut last_name) = (None, None);
    for bytes in data.split(|byte| *byte == b'\n') {
        let mut line = row.parse_raw(&RawLine {
            bytes,
            offset: 0,
            number: 0,
            end: LineEnd::Newline,
        });
        if let Line::Event(event) = &mut line {
            let head = (event.comm, event.pid, event.tgid, event.cpu, event.flags);
            assert!(!std::mem::take(&mut event.again) || last == Some(head));
            last = Some(head);
            assert!(!std::mem::take(&mut event.named_again) || last_name == Some(event.event));
            last_name = Some(event.event);
        }
        assert_eq!(line, text::parse(bytes));
    }
}

/// Events as JSON, one a line.
pub fn event_json(data: &[u8], look: &mut Look<'_>) {
    let text = String::from_utf8_lossy(data);
    let mut names = Names::default();
    for line in text.lines() {
        if let Ok(event) = Event::from_json(line, &mut names) {
            written_and_read(&event, &mut names);
            event.fields().for_each(|(_, value)| look(value));
        }
    }
}

/// An event as JSON is the same event again; and its text can be written, of an era that the time chooses.
fn written_and_read(event: &Event, names: &mut Names) {
    let mut json = Vec::new();
    event.to_json(names, &mut json);
    let json = String::from_utf8(json).expect("JSON is UTF-8");
    let read = Event::from_json(&json, names);
    assert_eq!(read.ok().as_ref(), Some(event), "{json}");
    let release = ERAS[(event.time_ns % ERAS.len() as u64) as usize];
    event.render(names, release, &mut Vec::new());
}

/// A whole input of any kind, as the commands read it: at once, and in pieces of a few bytes.
pub fn stream(data: &[u8], look: &mut Look<'_>) {
    lines(data);
    let Some(expanded) = expanded(data) else {
        return;
    };
    let whole = read(Box::new(Cursor::new(data.to_vec())), look);
    let pieces = Pieces {
        bytes: data.to_vec(),
        at: 0,
    };
    let in_pieces = read(Box::new(pieces), &mut |_| {});
    // How far a decompressor had come when it saw damage depends on the pieces that it was given.
    let broken = is_broken(&whole);
    assert_eq!(broken, is_broken(&in_pieces));
    if !(expanded.compressed && broken) {
        assert_eq!(whole, in_pieces, "at once and in pieces");
    }
    if let Ok((account, seen)) = whole {
        check_account(&account, &seen);
        let lines = account.lines + account.comments;
        assert!(lines <= expanded.size + 1, "{account:?}");
    }
}

fn is_broken(reading: &Reading) -> bool {
    let broken = [Flaw::Truncated, Flaw::Damaged];
    let account = reading.as_ref().map(|(account, _)| account);
    account.map_or(true, |account| {
        broken.iter().any(|flaw| account.flaws.contains_key(flaw))
    })
}

/// What is in an input.
struct Expanded {
    compressed: bool,
    /// Bytes, uncompressed.
    size: u64,
}

/// None if there are too many bytes, or if it is nothing at all.
fn expanded(data: &[u8]) -> Option<Expanded> {
    let input = Input::from_reader("fuzz", Cursor::new(data.to_vec())).ok()?;
    if input.compression().is_none() {
        return Some(Expanded {
            compressed: false,
            size: data.len() as u64,
        });
    }
    let mut size = 0;
    let mut reader = input.into_reader();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        size += count as u64;
        if size > EXPANDED_MAX {
            return None;
        }
    }
    // Through a buffer of another size more may come out before damage, but not by a step of the decoder.
    Some(Expanded {
        compressed: true,
        size: size + (64 << 10),
    })
}

/// Gives a few bytes at a time, of a number that changes.
struct Pieces {
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.bytes[self.at..];
        let count = (1 + self.at * 7 % 61).min(rest.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// What a sink has seen of a reading.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    events: u64,
    digest: u64,
}

struct Counting<'a, 'b> {
    seen: Seen,
    look: &'a mut Look<'b>,
}

impl Sink for Counting<'_, '_> {
    fn event(&mut self, event: &Event, tables: &Tables) {
        let actor = tables.actor(event.task).expect("a task of the table");
        let mut mix = |value: u64| {
            self.seen.digest = (self.seen.digest ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        };
        mix(event.time_ns);
        mix(u64::from(event.cpu) << 32 | u64::from(actor.pid.cast_unsigned()));
        mix(actor.name.len() as u64);
        for (field, value) in event.fields() {
            mix(field as u64);
            mix(value);
            (self.look)(value);
        }
        self.seen.events += 1;
    }
}

/// What became of an input; of an error what it says.
type Reading = Result<(Account, Seen), String>;

/// Reads an input to its end.
fn read(bytes: Box<dyn Read + Send>, look: &mut Look<'_>) -> Reading {
    let input = Input::from_reader("fuzz", bytes).map_err(|error| error.to_string())?;
    let seen = Seen::default();
    let mut sink = Counting { seen, look };
    let source = lowmark_trace::read(input, &mut sink).map_err(|error| error.to_string())?;
    Ok((source.account, sink.seen))
}

fn check_account(account: &Account, seen: &Seen) {
    assert_eq!(account.understood, seen.events, "{account:?}");
    assert!(account.not_understood.len() <= KINDS_MAX);
    assert_eq!(
        account.lines,
        account.understood + account.missed(),
        "{account:?}"
    );
    assert!(account.by_labels.values().sum::<u64>() <= account.understood);
    assert!(account.unsorted <= account.understood);
    assert_eq!(account.span_ns.is_some(), seen.events > 0);
    assert!(account.span_s() >= 0.0);
}

/// The lines of a small buffer are those between the newlines.
fn lines(data: &[u8]) {
    const LONGEST: usize = 40;
    let mut lines = Lines::with_limits("fuzz", data, 16, LONGEST);
    let mut offset = 0;
    for expected in data.split_inclusive(|byte| *byte == b'\n') {
        let line = lines.next_line().expect("no error").expect("a line");
        assert_eq!(line.offset, offset as u64);
        let text = expected.strip_suffix(b"\n").unwrap_or(expected);
        match line.end {
            LineEnd::TooLong { length } => {
                assert!(text.len() > LONGEST);
                assert_eq!(length, text.len() as u64);
            }
            _ => assert_eq!(line.bytes, text.strip_suffix(b"\r").unwrap_or(text)),
        }
        offset += expected.len();
    }
    assert_eq!(lines.next_line().expect("no error"), None);
}

/// A trace.dat: opened, read twice, and once more as the commands read it.
pub fn trace_dat(data: &[u8], look: &mut Look<'_>) {
    let Ok(mut trace) = TraceDat::open(Cursor::new(data)) else {
        return;
    };
    let formats = trace.formats().clone();
    let endian = trace.endian();
    let plain = trace.version() == 6;
    let first = records(&mut |take| trace.for_each(take), &formats, endian, look);
    // A record has a word at least, and in version 6 nothing is compressed.
    assert!(
        !plain || first.delivered * 8 <= data.len() as u64,
        "{first:?}"
    );
    let again = records(
        &mut |take| trace.for_each(take),
        &formats,
        endian,
        &mut |_| {},
    );
    assert_eq!(first, again, "read twice");
    as_a_trace(data, &first, look);
}

/// A perf.data likewise.
pub fn perf_data(data: &[u8], look: &mut Look<'_>) {
    let Ok(mut perf) = PerfData::open(Cursor::new(data)) else {
        return;
    };
    let formats = perf.formats().clone();
    let endian = perf.endian();
    let first = records(&mut |take| perf.for_each(take), &formats, endian, look);
    let again = records(
        &mut |take| perf.for_each(take),
        &formats,
        endian,
        &mut |_| {},
    );
    assert_eq!(first, again, "read twice");
    as_a_trace(data, &first, look);
}

/// What a file delivered.
#[derive(Debug, PartialEq, Eq)]
struct Delivered {
    delivered: u64,
    digest: u64,
    /// Of an error what it says.
    accounting: Result<Accounting, String>,
}

type Take<'a> = dyn FnMut(RawRecord<'_>) -> ControlFlow<()> + 'a;
type ForEach<'a> = dyn FnMut(&mut Take<'_>) -> Result<Accounting, Error> + 'a;

/// Reads the fields of the records, of so many at most.
fn records(
    for_each: &mut ForEach<'_>,
    formats: &Formats,
    endian: Endian,
    look: &mut Look<'_>,
) -> Delivered {
    let (mut delivered, mut digest) = (0, 0u64);
    let accounting = for_each(&mut |record| {
        delivered += 1;
        digest = digest
            .wrapping_mul(31)
            .wrapping_add(record.time_ns ^ u64::from(record.event));
        look(record.time_ns);
        if let Some(format) = formats.get(record.event) {
            let fields = format.common.iter().chain(&format.fields);
            for field in fields.take(32) {
                read_field(field, record.data, endian, look);
            }
        }
        if delivered < RECORDS_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    if let Ok(accounting) = &accounting {
        assert_eq!(accounting.records, delivered);
        assert!(accounting.other.len() <= KINDS_MAX);
        let _ = accounting.is_complete();
    }
    Delivered {
        delivered,
        digest,
        accounting: accounting.map_err(|error| error.to_string()),
    }
}

fn read_field(field: &Field, data: &[u8], endian: Endian, look: &mut Look<'_>) {
    if let Some(value) = field.read_u64(data, endian) {
        look(value);
    }
    let bytes = field.read_bytes(data, endian);
    let text = field.read_str(data, endian);
    assert_eq!(bytes.is_some(), text.is_some());
}

/// A file of which all records are known to be few, read as a trace.
fn as_a_trace(data: &[u8], delivered: &Delivered, look: &mut Look<'_>) {
    if delivered.delivered == 0 || delivered.delivered >= RECORDS_MAX {
        return;
    }
    let whole = read(Box::new(Cursor::new(data.to_vec())), look);
    match (&delivered.accounting, whole) {
        (Ok(accounting), Ok((account, seen))) => {
            assert_eq!(account.lines, accounting.records);
            check_account(&account, &seen);
        }
        (Err(expected), Err(error)) => assert!(error.ends_with(expected), "{error}: {expected}"),
        (expected, found) => panic!("{expected:?}, as a trace {found:?}"),
    }
}

/// The kernel's text of an event's format. Its own bytes serve as a record.
pub fn format(data: &[u8], look: &mut Look<'_>) {
    let text = String::from_utf8_lossy(data);
    let fields = parse_fields(&text);
    for endian in [Endian::Little, Endian::Big] {
        let _ = Layout::parse(endian, &text);
        for field in fields.iter().flatten() {
            read_field(field, data, endian, &mut |_| {});
        }
    }
    let mut formats = Formats::default();
    formats.add("fuzz", &text);
    let Ok(format) = Format::parse("fuzz", &text) else {
        assert_eq!((formats.len(), formats.rejected().1), (0, 1));
        return;
    };
    assert_eq!(
        formats.get(format.id).map(|known| &known.name),
        Some(&format.name)
    );
    assert!(formats.find("fuzz", &format.name).is_some());
    assert_eq!(
        fields.map(|fields| fields.len()),
        Ok(format.common.len() + format.fields.len())
    );
    look(u64::from(format.id));
    for (field, table) in format.tables() {
        assert!(format.flags(field).is_some());
        assert!(table.known().count() + table.unresolved().count() == table.entries.len());
        let known = table.known().map(|(value, _)| value);
        for value in known.take(16).chain([0, 1, 1 << 40, u64::MAX]) {
            let rendered = table.render(value);
            let max = 2 * text.len() + RENDERED_MAX;
            assert!(rendered.len() <= max, "{} bytes", rendered.len());
        }
    }
}

/// A page of a ring buffer. The first byte says of which machine, three more where its header stands if
/// it is none that there is.
pub fn ring_buffer(data: &[u8], look: &mut Look<'_>) {
    let Some((machine, mut page)) = data.split_first() else {
        return;
    };
    let endian = match machine & 1 {
        0 => Endian::Little,
        _ => Endian::Big,
    };
    let mut layout = Layout::of_long(endian, if machine & 2 == 0 { 8 } else { 4 });
    if machine & 4 != 0
        && let Some((&[time, commit, data], rest)) = page.split_first_chunk()
    {
        layout.time_at = usize::from(time);
        layout.commit_at = usize::from(commit);
        layout.data_at = usize::from(data);
        page = rest;
    }
    let Ok(events) = ring_buffer::events(&layout, page) else {
        assert!(ring_buffer::Cursor::open(&layout, page).is_err());
        return;
    };
    let mut cursor = ring_buffer::Cursor::open(&layout, page).expect("opened before");
    let mut behind = layout.data_at;
    let mut count = 0;
    for event in events {
        let place = cursor.next(page).expect("as many events");
        count += 1;
        match (event, place) {
            (Ok((time, data)), Ok(place)) => {
                assert!(behind <= place.start && place.start <= place.end);
                assert_eq!((time, data), (place.time, &page[place.start..place.end]));
                behind = place.end;
                look(time);
            }
            (Err(bad), Err(same)) => assert_eq!(bad, same),
            (event, place) => panic!("{event:?}, {place:?}"),
        }
    }
    assert!(cursor.next(page).is_none());
    // A word each, and one of data or of what else there may be.
    let words = count + cursor.padding + cursor.time_markers;
    assert!(words <= page.len() as u64 / 4 + 1);
}
