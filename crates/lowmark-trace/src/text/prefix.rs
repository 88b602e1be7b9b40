//! The parts of an event line that all forms share: task and pid, time, event.

use super::scan::{
    blanks_before, find_colon_or_blank, number, number_before, skip_blanks, whole_number,
};
use super::{EventLine, Time};
use memchr::memchr;

/// Longest name of a task, bytes: `TASK_COMM_LEN` without its NUL.
pub(super) const COMM_MAX: usize = 15;
/// Longest tgid with its blanks: `(%7d)` has seven columns, more digits no pid has.
const TGID_MAX: usize = 12;

const POWERS: [u64; 10] = [
    1_000_000_000,
    100_000_000,
    10_000_000,
    1_000_000,
    100_000,
    10_000,
    1_000,
    100,
    10,
    1,
];

/// Whose event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) comm: &'a [u8],
    pub(super) pid: i32,
    pub(super) tgid: Option<i32>,
    /// `COMM-PID`, else `COMM PID`.
    pub(super) dashed: bool,
}

/// An event line of which it is not certain that it is the right one.
pub(super) struct Candidate<'a> {
    pub(super) event: EventLine<'a>,
    /// Bytes from the beginning of the name to the colon of the time.
    pub(super) prefix: usize,
}

impl Candidate<'_> {
    /// Whether no candidate farther to the right can have a name of at most [`COMM_MAX`] bytes.
    pub(super) fn is_last(&self) -> bool {
        self.prefix >= COMM_MAX
    }

    /// Whether it may be the true one: see the head of [`super`].
    pub(super) fn has_comm(&self) -> bool {
        self.event.comm.len() <= COMM_MAX
    }
}

/// The task of `line[start..end]`, where `start` is the first byte that is no blank: `COMM-PID`,
/// `COMM-PID (TGID)`, `COMM PID`, `COMM PID/TID`, `PID`, each with blanks behind.
pub(super) fn task(line: &[u8], start: usize, end: usize) -> Option<Task<'_>> {
    let mut digits_end = blanks_before(line, end);
    if digits_end == end || digits_end <= start {
        return None;
    }
    let mut tgid = None;
    if line[digits_end - 1] == b')' {
        let (value, open) = tgid_before(line, digits_end)?;
        tgid = value;
        digits_end = blanks_before(line, open);
        if digits_end == open || digits_end <= start {
            return None;
        }
    }
    let (pid, from) = pid_before(line, digits_end)?;
    if from <= start {
        return Some(plain(&line[start..start], pid, tgid));
    }
    match line[from - 1] {
        b'-' => Some(Task {
            comm: &line[start..from - 1],
            pid,
            tgid,
            dashed: true,
        }),
        b' ' => Some(plain(&line[start..blanks_before(line, from)], pid, tgid)),
        b'/' => {
            let (process, from) = pid_before(line, from - 1)?;
            if from <= start {
                return Some(plain(&line[start..start], pid, Some(process)));
            }
            let comm = &line[start..blanks_before(line, from)];
            (line[from - 1] == b' ').then(|| plain(comm, pid, Some(process)))
        }
        _ => None,
    }
}

fn plain(comm: &[u8], pid: i32, tgid: Option<i32>) -> Task<'_> {
    Task {
        comm,
        pid,
        tgid,
        dashed: false,
    }
}

/// The pid that ends before `end` and where it begins.
fn pid_before(line: &[u8], end: usize) -> Option<(i32, usize)> {
    let (pid, from) = number_before(line, end)?;
    Some((i32::try_from(pid).ok()?, from))
}

/// `(  123)` or `(-----)` that ends before `end`, and where it begins.
fn tgid_before(line: &[u8], end: usize) -> Option<(Option<i32>, usize)> {
    let from = end.saturating_sub(TGID_MAX);
    let open = from + memchr::memrchr(b'(', &line[from..end])?;
    let (tgid, close) = tgid_at(line, open)?;
    (close == end).then_some((tgid, open))
}

/// `(  123)` or `(-----)` at `open`, and the place behind it.
pub(super) fn tgid_at(line: &[u8], open: usize) -> Option<(Option<i32>, usize)> {
    let rest = line.get(open..)?.strip_prefix(b"(")?;
    let rest = &rest[..rest.len().min(TGID_MAX)];
    let close = memchr(b')', rest)?;
    let (inside, end) = (&rest[..close], open + close + 2);
    if !inside.is_empty() && inside.iter().all(|&byte| byte == b'-') {
        return Some((None, end));
    }
    let tgid = whole_number(&inside[skip_blanks(inside, 0)..])?;
    Some((Some(i32::try_from(tgid).ok()?), end))
}

/// The time at `from`: `sss.ffffff: ` or `nnn: `, and the place of its colon.
#[inline(always)]
pub(super) fn time(line: &[u8], from: usize) -> Option<(Time, usize)> {
    let (whole, point) = number(line, from)?;
    let (time, colon) = match line.get(point)? {
        b':' => (Time::Counter(whole), point),
        b'.' => {
            let (fraction, colon) = number(line, point + 1)?;
            let scale = POWERS.get(colon - point - 1)?;
            let ns = whole.checked_mul(1_000_000_000)?;
            (Time::Ns(ns.checked_add(fraction * scale)?), colon)
        }
        _ => return None,
    };
    let ends = line.get(colon) == Some(&b':') && matches!(line.get(colon + 1), None | Some(b' '));
    ends.then_some((time, colon))
}

/// System, event and text of what follows the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct What<'a> {
    pub(super) system: Option<&'a [u8]>,
    pub(super) event: &'a [u8],
    pub(super) text: &'a [u8],
}

/// `EVENT: TEXT` or `SYSTEM:EVENT: TEXT`, from `from` on, blanks before and between of any number. perf puts
/// the period of a sample before it, if that is not 1 at each.
#[inline(always)]
pub(super) fn what(line: &[u8], from: usize) -> Option<What<'_>> {
    let from = skip_blanks(line, from);
    let end = find_colon_or_blank(line, from)?;
    if end == from {
        return None;
    }
    if line[end] == b' ' {
        let is_period = line[from..end].iter().all(u8::is_ascii_digit);
        return if is_period { named(line, end) } else { None };
    }
    named_until(line, from, end)
}

/// As [`what`], without a period.
#[cold]
fn named(line: &[u8], from: usize) -> Option<What<'_>> {
    let from = skip_blanks(line, from);
    let end = find_colon_or_blank(line, from)?;
    if end == from || line[end] == b' ' {
        return None;
    }
    named_until(line, from, end)
}

/// A first name from `from` to its colon.
#[inline(always)]
fn named_until(line: &[u8], from: usize, colon: usize) -> Option<What<'_>> {
    // The kernel takes names as of C alone (`is_good_name`): what begins with a digit is part of a task's name.
    if line[from].is_ascii_digit() {
        return None;
    }
    let first = &line[from..colon];
    if matches!(line.get(colon + 1), None | Some(b' ')) {
        return Some(What {
            system: None,
            event: first,
            text: &line[skip_blanks(line, colon + 1)..],
        });
    }
    let second = colon + 1;
    let end = find_colon_or_blank(line, second)?;
    if end == second || line[end] == b' ' {
        return None;
    }
    // Modifiers of perf may follow: `sched:sched_switch:u: `.
    let mut text = end + 1;
    if !matches!(line.get(text), None | Some(b' ')) {
        text = find_colon_or_blank(line, text)?;
        if line[text] == b' ' {
            return None;
        }
        text += 1;
    }
    Some(What {
        system: Some(first),
        event: &line[second..end],
        text: &line[skip_blanks(line, text)..],
    })
}

/// Puts the parts together.
#[inline(always)]
pub(super) fn candidate<'a>(
    task: Task<'a>,
    cpu: Option<u32>,
    flags: Option<&'a [u8]>,
    time: Time,
    what: What<'a>,
    prefix: usize,
) -> Candidate<'a> {
    let Task {
        mut comm, mut pid, ..
    } = task;
    // `COMM    -1 [` is how perf prints a pid that it does not know; ftrace has no system and pads no name
    // on the right.
    if what.system.is_some() && task.dashed && pid == 1 && matches!(comm.last(), None | Some(b' '))
    {
        comm = &comm[..blanks_before(comm, comm.len())];
        pid = -1;
    }
    Candidate {
        event: EventLine {
            comm,
            pid,
            tgid: task.tgid,
            cpu,
            flags,
            time,
            system: what.system,
            event: what.event,
            text: what.text,
            again: false,
            named_again: false,
        },
        prefix,
    }
}
