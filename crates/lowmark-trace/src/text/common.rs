//! A short way for the lines that are nearly all: those in which nothing exceeds its columns.
//!
//! Where things usually stand only says where to look first. A candidate with a name of at most 15 bytes and a
//! prefix that is longer is the true one wherever it was found (see the head of [`super`]), and what is not as
//! expected here is left to [`super::event`].

use super::prefix::{self, COMM_MAX, Task, What};
use super::scan::{self, BLANKS, Known, skip_blanks};
use super::{EventLine, Time};

/// Bytes before the pid: `%16s-`.
const DASH: usize = 16;
/// Bytes that are looked at with fixed places.
const HEAD: usize = 48;
/// Longest name of an event that is remembered, bytes, with [`COLON`].
const NAME: usize = 32;
/// What follows the name if there is a text.
const COLON: &[u8] = b": ";

/// What a line has before its time.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// Where the name begins.
    start: usize,
    pid: i32,
    cpu: u32,
    /// Columns of flags before `end`.
    flags: usize,
    /// Where it ends: behind the flags.
    end: usize,
}

/// Head and name of the last event that had its head in the usual columns. Most lines begin as the one before,
/// and comparing costs less than reading.
#[derive(Debug, Default)]
pub(super) struct Last {
    head: Option<(Known<{ HEAD / 8 }>, Head)>,
    /// Name and colon, if they are short.
    name: Option<Known<{ NAME / 8 }>>,
}

impl Last {
    /// A line with its head in the usual columns; [`EventLine::again`] and [`EventLine::named_again`] say whether
    /// head and name are those of the one before.
    #[inline(always)]
    pub(super) fn parse<'a>(&mut self, line: &'a [u8]) -> Option<EventLine<'a>> {
        let (again, head) = match &self.head {
            Some((known, head)) if known.begins(line) => (true, *head),
            _ => (false, self.read(line)?),
        };
        let (time, colon) = prefix::time(line, skip_blanks(line, head.end))?;
        let from = skip_blanks(line, colon + 1);
        if let Some(name) = &self.name
            && name.begins(&line[from..])
        {
            let end = from + name.len() - COLON.len();
            let what = What {
                system: None,
                event: &line[from..end],
                text: &line[skip_blanks(line, end + 1)..],
            };
            let mut event = head.event(line, time, colon, what);
            (event.again, event.named_again) = (again, true);
            return Some(event);
        }
        let what = prefix::what(line, from)?;
        // A name without a text, or with something of perf's before it, comes the long way the next time too.
        let length = what.event.len() + COLON.len();
        let plain = line[from..]
            .get(..length)
            .is_some_and(|name| name.ends_with(COLON));
        self.name = plain.then(|| Known::new(&line[from..], length)).flatten();
        let mut event = head.event(line, time, colon, what);
        event.again = again;
        Some(event)
    }

    fn read(&mut self, line: &[u8]) -> Option<Head> {
        let head = Head::read(line.first_chunk()?)?;
        // The blank behind flags belongs to it: without one they are no flags.
        let length = head.end + usize::from(head.flags > 0);
        self.head = Known::new(line, length).map(|known| (known, head));
        Some(head)
    }
}

/// A line with its head in the usual columns.
#[inline(always)]
pub(super) fn parse(line: &[u8]) -> Option<EventLine<'_>> {
    let head = Head::read(line.first_chunk()?)?;
    let (time, colon) = prefix::time(line, skip_blanks(line, head.end))?;
    let what = prefix::what(line, colon + 1)?;
    Some(head.event(line, time, colon, what))
}

impl Head {
    /// `%16s-%-7d [%03d] FFFFF` of 5.15 and later, `%16s-%-5d [%03d] FFFF` before, and without flags.
    #[inline(always)]
    fn read(head: &[u8; HEAD]) -> Option<Head> {
        if head[25] == b'[' {
            Head::at::<25, 5>(head)
        } else if head[23] == b'[' && head[29] != b' ' && head[33] == b' ' {
            Head::at::<23, 4>(head)
        } else if head[23] == b'[' {
            Head::at::<23, 0>(head)
        } else {
            None
        }
    }

    /// With `[` at `OPEN` and `FLAGS` columns of flags.
    #[inline(always)]
    fn at<const OPEN: usize, const FLAGS: usize>(head: &[u8; HEAD]) -> Option<Head> {
        // 1. The name, set to the right.
        let blanks = match eight(head, 0) ^ BLANKS {
            0 => 8 + (eight(head, 8) ^ BLANKS).trailing_zeros() / 8,
            other => other.trailing_zeros() / 8,
        };
        let start = blanks as usize;
        if head[DASH] != b'-' || DASH - start > COMM_MAX {
            return None;
        }
        // `COMM    -1 [` may be how perf prints a pid that it does not know.
        if head[DASH - 1] == b' ' {
            return None;
        }
        // 2. The pid, set to the left, and blanks up to the bracket.
        let columns = OPEN - DASH - 1;
        let (pid, digits) = scan::first_number(eight(head, DASH + 1));
        let behind = (eight(head, DASH + 1) ^ BLANKS) << (64 - 8 * columns);
        if digits == 0 || digits >= columns || behind >> (64 - 8 * columns) >> (8 * digits) != 0 {
            return None;
        }
        // 3. Three digits of the CPU.
        let (cpu, digits) = scan::first_number(eight(head, OPEN + 1));
        if digits != 3 || head[OPEN + 4] != b']' || head[OPEN + 5] != b' ' {
            return None;
        }
        // 4. Flags. What begins with a digit or a parenthesis may be a time or a tgid.
        let token = OPEN + 6;
        if FLAGS > 0 {
            let first = head[token];
            if scan::short_length(eight(head, token)) != FLAGS
                || first == b'('
                || first.is_ascii_digit()
            {
                return None;
            }
        }
        Some(Head {
            start,
            pid: i32::try_from(pid).ok()?,
            cpu: u32::try_from(cpu).ok()?,
            flags: FLAGS,
            end: token + FLAGS,
        })
    }

    /// The event of the line that has this head, and its time before the colon at `colon`.
    #[inline(always)]
    fn event<'a>(&self, line: &'a [u8], time: Time, colon: usize, what: What<'a>) -> EventLine<'a> {
        let task = Task {
            comm: &line[self.start..DASH],
            pid: self.pid,
            tgid: None,
            dashed: true,
        };
        let flags = (self.flags > 0).then(|| &line[self.end - self.flags..self.end]);
        let prefix = colon + 1 - self.start;
        prefix::candidate(task, Some(self.cpu), flags, time, what, prefix).event
    }
}

#[inline(always)]
fn eight(head: &[u8; HEAD], from: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&head[from..from + 8]);
    u64::from_le_bytes(word)
}
