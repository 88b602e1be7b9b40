//! Event lines with `[CPU]`: nearly all.
//!
//! Flag columns are whatever short word stands before the time: 5.15 has five of them, and each kernel brings
//! new letters. A reader that demands those it knows loses lines: 84,415 of 211,545 in a capture of 6.18, whose
//! lazy preemption has `l`.

use super::Why;
use super::prefix::{self, Candidate};
use super::scan::{find, number, short_word, skip_blanks};

/// The candidate that is meant, or what is missing.
pub(super) fn parse(line: &[u8]) -> Result<Candidate<'_>, Why> {
    let start = skip_blanks(line, 0);
    let mut chosen: Option<Candidate<'_>> = None;
    let mut why = None;
    let mut from = start;
    while let Some(open) = find(line, from, b'[') {
        match at(line, start, open) {
            Ok(candidate) => {
                let is_last = candidate.is_last();
                if candidate.has_comm() || chosen.is_none() {
                    chosen = Some(candidate);
                }
                if is_last {
                    break;
                }
            }
            Err(missing) => why = why.max(missing),
        }
        from = open + 1;
    }
    chosen.ok_or(why.unwrap_or(Why::NoCpu))
}

/// The candidate whose `[` is at `open`; `Err(None)`: not even a CPU.
fn at(line: &[u8], start: usize, open: usize) -> Result<Candidate<'_>, Option<Why>> {
    let (cpu, close) = number(line, open + 1).ok_or(None)?;
    let cpu = u32::try_from(cpu).ok().ok_or(None)?;
    if line.get(close..close + 2) != Some(b"] ") {
        return Err(None);
    }
    let mut task = prefix::task(line, start, open).ok_or(Some(Why::NoPid))?;
    let mut token = skip_blanks(line, close + 1);
    if line.get(token) == Some(&b'(')
        && let Some((tgid, end)) = prefix::tgid_at(line, token)
    {
        // The captions of some kernels have it behind the CPU.
        task.tgid = tgid;
        token = skip_blanks(line, end);
    }
    let mut flags = None;
    let mut time = prefix::time(line, token);
    // Interrupts, the first column, are never a digit.
    if time.is_none()
        && !line.get(token).is_some_and(u8::is_ascii_digit)
        && let Some(length) = short_word(line, token)
    {
        flags = line.get(token..token + length);
        time = prefix::time(line, skip_blanks(line, token + length));
    }
    let (time, colon) = time.ok_or(Some(Why::NoTime))?;
    let what = prefix::what(line, colon + 1).ok_or(Some(Why::NoEvent))?;
    let prefix = colon + 1 - start;
    Ok(prefix::candidate(
        task,
        Some(cpu),
        flags,
        time,
        what,
        prefix,
    ))
}
