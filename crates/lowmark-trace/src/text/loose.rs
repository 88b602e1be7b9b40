//! What has no `[CPU]`: event lines of `trace-cmd report -l` and of perf without the CPU, found by their time;
//! lines that belong to an event; and why the rest is nothing.

use super::prefix::{self, Candidate};
use super::scan::{blanks_before, digits_before, number, skip_blanks, whole_number};
use super::{Line, Time, Why};

/// Longest group of flag columns that is glued to a CPU, bytes.
const FLAGS_MAX: usize = 8;
/// Digits of an address in a stack of perf at least.
const ADDRESS_DIGITS: usize = 8;

/// The candidate that is meant, chosen as with `[CPU]`.
pub(super) fn parse(line: &[u8]) -> Option<Candidate<'_>> {
    let start = skip_blanks(line, 0);
    let mut chosen: Option<Candidate<'_>> = None;
    for colon in memchr::memchr_iter(b':', line) {
        let Some(candidate) = at(line, start, colon) else {
            continue;
        };
        let is_last = candidate.is_last();
        if candidate.has_comm() || chosen.is_none() {
            chosen = Some(candidate);
        }
        if is_last {
            break;
        }
    }
    chosen
}

/// The candidate whose time ends with the colon at `colon`.
fn at(line: &[u8], start: usize, colon: usize) -> Option<Candidate<'_>> {
    let mut from = digits_before(line, colon);
    if from > 0 && line[from - 1] == b'.' {
        from = digits_before(line, from - 1);
    }
    let (time, _) = prefix::time(line, from).filter(|&(_, end)| end == colon)?;
    let before = blanks_before(line, from);
    if before == from || before <= start {
        return None;
    }
    let prefix = colon + 1 - start;
    let token = token_before(line, start, before)?;
    if let Some((cpu, flags)) = glued(&line[token..before]) {
        let task = prefix::task(line, start, token).filter(|task| task.dashed)?;
        let what = prefix::what(line, colon + 1)?;
        return Some(prefix::candidate(
            task,
            Some(cpu),
            Some(flags),
            time,
            what,
            prefix,
        ));
    }
    // Numbers and colons are in many texts: perf's times have a point, and its events a system.
    let task = prefix::task(line, start, from).filter(|task| !task.dashed)?;
    let what = prefix::what(line, colon + 1).filter(|what| what.system.is_some())?;
    let is_perf = matches!(time, Time::Ns(_));
    is_perf.then(|| prefix::candidate(task, None, None, time, what, prefix))
}

/// Where the word that ends before `end` begins, if it is short.
fn token_before(line: &[u8], start: usize, end: usize) -> Option<usize> {
    let floor = start.max(end.saturating_sub(2 * FLAGS_MAX + 10));
    let blank = memchr::memrchr(b' ', &line[floor..end]);
    blank.map_or((floor == start).then_some(start), |blank| {
        Some(floor + blank + 1)
    })
}

/// `0d..1.`: a CPU and flags. The first flag, that of the interrupts, is never a digit.
fn glued(token: &[u8]) -> Option<(u32, &[u8])> {
    let (cpu, end) = number(token, 0)?;
    let flags = &token[end..];
    let fits = (4..=FLAGS_MAX).contains(&flags.len())
        && matches!(flags[0], b'.' | b'd' | b'D' | b'b' | b'X')
        && flags
            .iter()
            .all(|&byte| byte == b'.' || byte.is_ascii_alphanumeric());
    Some((u32::try_from(cpu).ok().filter(|_| fits)?, flags))
}

/// A line without an event; `why`: what the forms with `[CPU]` miss.
pub(super) fn other(line: &[u8], why: Why) -> Line<'_> {
    if let Some(lost) = lost_by_perf(line) {
        return lost;
    }
    if is_stack(line) {
        return Line::StackEntry;
    }
    let control = |byte: u8| (byte < b' ') & (byte != b'\t') | (byte == 0x7f);
    // All of it at once: that is many bytes at a time.
    if line.iter().fold(false, |any, &byte| any | control(byte)) {
        return Line::Other(Why::NotText);
    }
    if why == Why::NoCpu && !has_pid(line) {
        return Line::Other(Why::NoPid);
    }
    Line::Other(why)
}

/// `COMM PID [CPU] TIME: PERF_RECORD_LOST lost 12`, of `perf script --show-lost-events`.
fn lost_by_perf(line: &[u8]) -> Option<Line<'_>> {
    const MARK: &[u8] = b"PERF_RECORD_LOST lost ";
    let mark = memchr::memmem::find(line, MARK)?;
    let events = whole_number(line[mark + MARK.len()..].trim_ascii_end())?;
    let cpu = memchr::memrchr(b'[', &line[..mark]).and_then(|open| number(line, open + 1));
    Some(Line::Lost {
        cpu: cpu.and_then(|(cpu, _)| u32::try_from(cpu).ok()),
        events: Some(events),
    })
}

fn is_stack(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    if line.starts_with(b"=> ") || line == b"=>" {
        return true;
    }
    // Behind a prefix, or alone; trace-cmd has a blank inside.
    if line.ends_with(b"stack trace>") || line.ends_with(b"stack trace >") {
        return memchr::memchr(b'<', line).is_some();
    }
    let digits = line
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    digits >= ADDRESS_DIGITS && matches!(line.get(digits), None | Some(b' '))
}

/// Whether something looks like a task and its pid.
fn has_pid(line: &[u8]) -> bool {
    memchr::memchr_iter(b'-', line).any(|dash| {
        number(line, dash + 1).is_some_and(|(_, end)| matches!(line.get(end), None | Some(b' ')))
    })
}
