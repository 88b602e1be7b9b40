//! Options of a trace.dat that bear on its records: clock, shifts of time, statistics, machine.

use crate::record::Endian;
use std::collections::BTreeMap;

/// Ids as trace-cmd numbers them.
pub(crate) mod id {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const DATE: u16 = 1;
    pub(crate) const CPUSTAT: u16 = 2;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const OFFSET: u16 = 7;
    pub(crate) const CPUCOUNT: u16 = 8;
    pub(crate) const VERSION: u16 = 9;
    pub(crate) const TSC2NSEC: u16 = 14;
    pub(crate) const HEADER_INFO: u16 = 16;
    pub(crate) const FTRACE_EVENTS: u16 = 17;
    pub(crate) const EVENT_FORMATS: u16 = 18;
    pub(crate) const CMDLINES: u16 = 21;
    pub(crate) const BUFFER_TEXT: u16 = 22;
}

/// What the options of a file say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Clock of the time stamps, such as `local` or `mono`; empty if the file does not say.
    pub clock: String,
    /// System, host name, release and architecture as `uname` gives them, if recorded.
    pub uname: Option<String>,
    /// Version of trace-cmd that wrote the file, if recorded.
    pub recorder: Option<String>,
    /// CPUs of the machine, if recorded.
    pub cpu_count: Option<u32>,
    /// Nanoseconds added to each time, from the options OFFSET and DATE.
    pub shift_ns: i64,
    /// Events overwritten or dropped, over all CPUs.
    pub overwritten: u64,
    /// Options that were not read, counted by id.
    pub skipped: BTreeMap<u16, u64>,
    tsc: Option<Tsc>,
}

/// `ns = ticks * mult >> shift`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tsc {
    mult: u32,
    shift: u32,
}

impl Options {
    /// Takes in one option.
    pub(crate) fn read(&mut self, id: u16, data: &[u8], endian: Endian) {
        match id {
            id::DATE => self.shift(text(data), 1000),
            id::OFFSET => self.shift(text(data), 1),
            id::CPUSTAT => self.overwritten = self.overwritten.saturating_add(overwritten(data)),
            id::TRACECLOCK => self.clock = selected(&text(data)).to_owned(),
            id::UNAME => self.uname = Some(text(data)),
            id::VERSION => self.recorder = Some(text(data)),
            id::CPUCOUNT => self.cpu_count = endian.u32(data, 0),
            id::TSC2NSEC => self.tsc = tsc(data, endian),
            other => *self.skipped.entry(other).or_default() += 1,
        }
    }

    /// A time of a record, ns. As trace-cmd does it: ticks to ns if the file has a factor, then the
    /// shift. The offset of TSC2NSEC is not applied there either.
    #[inline]
    pub(crate) fn time_ns(&self, time: u64) -> u64 {
        let time = match self.tsc {
            Some(Tsc { mult, shift }) => ((u128::from(time) * u128::from(mult)) >> shift) as u64,
            None => time,
        };
        time.wrapping_add_signed(self.shift_ns)
    }

    fn shift(&mut self, text: String, unit_ns: i64) {
        let shift = parse_integer(text.trim())
            .unwrap_or(0)
            .wrapping_mul(unit_ns);
        self.shift_ns = self.shift_ns.wrapping_add(shift);
    }
}

fn tsc(data: &[u8], endian: Endian) -> Option<Tsc> {
    let (mult, shift) = (endian.u32(data, 0)?, endian.u32(data, 4)?);
    (mult != 0 && shift < 64).then_some(Tsc { mult, shift })
}

/// A text option without its NUL.
pub(crate) fn text(data: &[u8]) -> String {
    let end = memchr::memchr(0, data).unwrap_or(data.len());
    String::from_utf8_lossy(&data[..end]).into_owned()
}

/// The clock in brackets of `[local] global counter`, or the whole text if none is.
fn selected(text: &str) -> &str {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text.trim(), |(clock, _)| clock)
}

/// The lost events in a text of `per_cpu/cpu<n>/stats`.
fn overwritten(data: &[u8]) -> u64 {
    let text = text(data);
    let counts = text.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let lost = ["overrun", "commit overrun", "dropped events"].contains(&key.trim());
        if lost {
            value.trim().parse::<u64>().ok()
        } else {
            None
        }
    });
    counts.fold(0, u64::saturating_add)
}

/// Decimal, or hexadecimal with `0x`, with a sign.
fn parse_integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok()? as i64,
        None => digits.parse().ok()?,
    };
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_others_counted() {
        let mut options = Options::default();
        let mut read = |id, data: &[u8]| options.read(id, data, Endian::Little);
        read(id::TRACECLOCK, b"local [mono] boot\n\0");
        read(id::OFFSET, b"-5\0");
        read(id::DATE, b"0x10\0");
        read(
            id::CPUSTAT,
            b"CPU: 0\nentries: 9\noverrun: 3\ncommit overrun: 1\ndropped events: 2\n",
        );
        read(id::CPUCOUNT, &[4, 0, 0, 0]);
        read(99, b"");
        read(99, b"");
        assert_eq!(options.clock, "mono");
        assert_eq!(options.shift_ns, 16_000 - 5);
        assert_eq!(options.overwritten, 6);
        assert_eq!(options.cpu_count, Some(4));
        assert_eq!(options.skipped, BTreeMap::from([(99, 2)]));
        assert_eq!(options.time_ns(100), 16_095);
    }

    #[test]
    fn ticks_become_nanoseconds() {
        let mut options = Options::default();
        let data = [&3u32.to_be_bytes()[..], &1u32.to_be_bytes(), &[0; 8]].concat();
        options.read(id::TSC2NSEC, &data, Endian::Big);
        assert_eq!(
            options.time_ns(u64::MAX),
            (u128::from(u64::MAX) * 3 / 2) as u64
        );
        options.read(id::TSC2NSEC, &[1, 2], Endian::Big);
        assert_eq!(options.time_ns(7), 7);
    }
}
