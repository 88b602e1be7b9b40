//! Lines about the trace, not of it.

use super::scan::{number, whole_number};
use super::{Header, Line};

/// What a line that is no event is, if it is one of these.
pub(super) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let trimmed = line.trim_ascii();
    match trimmed.first() {
        None => Some(Line::Blank),
        Some(b'c') => {
            let cpus = cpu(trimmed.strip_prefix(b"cpus=")?)?;
            Some(Line::Header(Header::Cpus(cpus)))
        }
        Some(b'C') => about_cpu(trimmed),
        Some(_) => None,
    }
}

/// What a line is that begins with `#`.
pub(super) fn comment(line: &[u8]) -> Line<'_> {
    let line = line.trim_ascii();
    let header = started(line).or_else(|| {
        let rest = line.strip_prefix(b"# ")?.trim_ascii_start();
        let tracer = rest.strip_prefix(b"tracer:");
        let tracer = tracer.map(|name| Header::Tracer(name.trim_ascii()));
        tracer.or_else(|| entries(rest)).map(Line::Header)
    });
    header.unwrap_or(Line::Header(Header::Comment(line)))
}

/// `##### CPU 2 buffer started ####`
fn started(line: &[u8]) -> Option<Line<'_>> {
    let rest = line.strip_prefix(b"##### CPU ")?;
    let (number, end) = number(rest, 0)?;
    let cpu = u32::try_from(number).ok()?;
    let started = rest[end..].starts_with(b" buffer started");
    started.then_some(Line::BufferStarted { cpu })
}

/// `entries-in-buffer/entries-written: 129951/129951   #P:2`
fn entries(line: &[u8]) -> Option<Header<'_>> {
    let rest = line.strip_prefix(b"entries-in-buffer/entries-written:")?;
    let rest = rest.trim_ascii_start();
    let (in_buffer, slash) = number(rest, 0)?;
    let rest = rest[slash..].strip_prefix(b"/")?;
    let (written, end) = number(rest, 0)?;
    let cpus = rest[end..].trim_ascii().strip_prefix(b"#P:").and_then(cpu);
    Some(Header::Entries {
        in_buffer,
        written,
        cpus,
    })
}

/// `CPU:3 [LOST 123 EVENTS]` and `CPU:3 [LOST EVENTS]` of ftrace (`print_trace_line`), `CPU:3 [123 EVENTS
/// DROPPED]` and `CPU:3 [EVENTS DROPPED]` and `CPU 1 is empty` of trace-cmd report.
fn about_cpu(line: &[u8]) -> Option<Line<'_>> {
    if let Some(rest) = line.strip_prefix(b"CPU ") {
        let empty = cpu(rest.strip_suffix(b" is empty")?)?;
        return Some(Line::Header(Header::CpuEmpty(empty)));
    }
    let rest = line.strip_prefix(b"CPU:")?;
    let (number, end) = number(rest, 0)?;
    let cpu = Some(u32::try_from(number).ok()?);
    let inside = rest[end..].trim_ascii_start();
    let inside = inside.strip_prefix(b"[")?.strip_suffix(b"]")?;
    if matches!(inside, b"LOST EVENTS" | b"EVENTS DROPPED") {
        return Some(Line::Lost { cpu, events: None });
    }
    let lost = || inside.strip_prefix(b"LOST ")?.strip_suffix(b" EVENTS");
    let dropped = || inside.strip_suffix(b" EVENTS DROPPED");
    let events = whole_number(lost().or_else(dropped)?)?;
    Some(Line::Lost {
        cpu,
        events: Some(events),
    })
}

fn cpu(digits: &[u8]) -> Option<u32> {
    u32::try_from(whole_number(digits)?).ok()
}

/// Whether a trace begins behind this line of a systrace page.
pub(crate) fn is_trace_data_tag(line: &[u8]) -> bool {
    let tag = line.trim_ascii();
    tag.starts_with(b"<script") && memchr::memmem::find(tag, b"class=\"trace-data\"").is_some()
}

/// Whether a trace of a systrace page ended before this line.
pub(crate) fn is_end_of_script(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"</script>")
}
