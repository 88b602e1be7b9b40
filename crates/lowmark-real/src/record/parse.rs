//! The files that are looked at again and again, read into rows. What is not understood is left out: each kernel has
//! lines of its own.

use super::row::Row;

/// The names of the columns of `/proc/diskstats` behind the device, as `Documentation/admin-guide/iostats.rst` has
/// them: 11 to 4.17, 15 to 5.4, 17 since.
const DISK_FIELDS: [&[u8]; 17] = [
    b"reads",
    b"reads_merged",
    b"sectors_read",
    b"read_ms",
    b"writes",
    b"writes_merged",
    b"sectors_written",
    b"write_ms",
    b"in_flight",
    b"io_ms",
    b"weighted_io_ms",
    b"discards",
    b"discards_merged",
    b"sectors_discarded",
    b"discard_ms",
    b"flushes",
    b"flush_ms",
];

/// A whole number in decimal digits; one that does not fit is the largest.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(value.saturating_mul(10).saturating_add(digit))
    })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let words = line.split(|byte| *byte == b' ' || *byte == b'\t');
    words.filter(|word| !word.is_empty())
}

/// Lines of a name and a number: `/proc/vmstat`, `memory.stat`, `memory.events`.
pub(super) fn flat(text: &[u8], row: &mut Row) {
    for line in lines(text) {
        let mut words = words(line);
        if let (Some(name), Some(value)) = (words.next(), words.next().and_then(number)) {
            row.put(&[name], value);
        }
    }
}

/// `/proc/meminfo`: kB, but for the `HugePages_*`, which are pages.
pub(super) fn meminfo(text: &[u8], row: &mut Row) {
    for line in lines(text) {
        let mut words = words(line);
        if let (Some(name), Some(value)) = (words.next(), words.next().and_then(number)) {
            row.put(&[name.strip_suffix(b":").unwrap_or(name)], value);
        }
    }
}

/// `/proc/diskstats`, as `DEVICE/FIELD`. A device that was never used is left out.
pub(super) fn diskstats(text: &[u8], row: &mut Row) {
    for line in lines(text) {
        let mut words = words(line).skip(2);
        let Some(device) = words.next() else {
            continue;
        };
        let values = words.map_while(number).zip(DISK_FIELDS);
        if values.clone().all(|(value, _)| value == 0) {
            continue;
        }
        values.for_each(|(value, field)| row.put(&[device, b"/", field], value));
    }
}

/// A file of pressure: the time that some tasks waited, and that all waited, µs, as `some` and `full`.
pub(super) fn pressure(text: &[u8], row: &mut Row) {
    for line in lines(text) {
        let mut words = words(line);
        let Some(who) = words.next() else {
            continue;
        };
        let total = words.find_map(|word| number(word.strip_prefix(b"total=")?));
        if let Some(total) = total {
            row.put(&[who], total);
        }
    }
}

/// A number alone, of a limit `max` for none, which is the largest.
pub(super) fn single(text: &[u8], row: &mut Row) {
    let text = text.trim_ascii();
    let value = if text == b"max" {
        Some(u64::MAX)
    } else {
        number(text)
    };
    if let Some(value) = value {
        row.put(&[], value);
    }
}

/// `/proc/zoneinfo`, pages: of a node as `NODE/FIELD`, of a zone as `NODE/ZONE/FIELD`. What CPUs keep for themselves is
/// added up over them, as `NODE/ZONE/count`.
pub(super) fn zoneinfo(text: &[u8], row: &mut Row) {
    let (mut node, mut zone): (&[u8], &[u8]) = (b"", b"");
    // Lines of the node itself stand below the first of its zones.
    let mut of_node = false;
    let mut kept_by_cpus = None;
    for line in lines(text) {
        let mut words = words(line);
        let Some(first) = words.next() else {
            continue;
        };
        let second = words.next();
        match (first, second) {
            (b"Node", Some(number)) => {
                end_zone(node, zone, &mut kept_by_cpus, row);
                node = number.strip_suffix(b",").unwrap_or(number);
                zone = words.nth(1).unwrap_or(b"");
            }
            (b"per-node", _) => of_node = true,
            (b"pages", Some(b"free")) => {
                of_node = false;
                if let Some(value) = words.next().and_then(number) {
                    row.put(&[node, b"/", zone, b"/free"], value);
                }
            }
            (b"pagesets", _) => kept_by_cpus = Some(0),
            (b"count:", Some(value)) => {
                let kept = kept_by_cpus.get_or_insert(0);
                *kept += number(value).unwrap_or(0);
            }
            (b"node_unreclaimable:" | b"start_pfn:" | b"all_unreclaimable:", Some(value)) => {
                let name = &first[..first.len() - 1];
                if let Some(value) = number(value) {
                    row.put(&[node, b"/", zone, b"/", name], value);
                }
            }
            (name, Some(value)) if !name.ends_with(b":") => match number(value) {
                Some(value) if of_node => row.put(&[node, b"/", name], value),
                Some(value) => row.put(&[node, b"/", zone, b"/", name], value),
                None => {}
            },
            _ => {}
        }
    }
    end_zone(node, zone, &mut kept_by_cpus, row);
}

fn end_zone(node: &[u8], zone: &[u8], kept_by_cpus: &mut Option<u64>, row: &mut Row) {
    if let Some(kept) = kept_by_cpus.take() {
        row.put(&[node, b"/", zone, b"/count"], kept);
    }
}

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `comm`.
    pub(super) name: String,
    /// Whether it is a kernel thread.
    pub(super) kthread: bool,
    /// When it started, ticks of 10 ms since boot.
    pub(super) start_ticks: u64,
    /// In the order of [`STAT_FIELDS`].
    pub(super) values: [u64; STAT_FIELDS.len()],
}

/// What is kept of a process: the letter of its state as a number, major faults, user and system time and time of
/// waiting for block devices in ticks of 10 ms, pages that it has in memory.
pub(super) const STAT_FIELDS: [&str; 6] = [
    "state",
    "majflt",
    "utime",
    "stime",
    "rss",
    "delayacct_blkio_ticks",
];

impl Stat {
    /// User and system time, ticks.
    pub(super) fn ticks(&self) -> u64 {
        self.values[2].saturating_add(self.values[3])
    }

    /// Major faults.
    pub(super) fn major_faults(&self) -> u64 {
        self.values[1]
    }

    /// When it started, ticks of 10 ms since boot, unless it has ended and nobody has waited for it yet.
    pub(crate) fn running_since(&self) -> Option<u64> {
        let ended = [u64::from(b'Z'), u64::from(b'X')].contains(&self.values[0]);
        (!ended).then_some(self.start_ticks)
    }

    /// Whether it runs, or waits for something that cannot be interrupted.
    pub(super) fn is_busy(&self) -> bool {
        [u64::from(b'R'), u64::from(b'D')].contains(&self.values[0])
    }
}

/// A line of `/proc/PID/stat` (`do_task_stat` in fs/proc/array.c).
pub(crate) fn stat(text: &[u8]) -> Option<Stat> {
    const PF_KTHREAD: u64 = 0x0020_0000;
    // The name may hold spaces and parentheses; the last one ends it.
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let name = text.get(open + 1..close)?;
    let mut fields = [&[][..]; 40];
    let mut count = 0;
    for (place, word) in fields
        .iter_mut()
        .zip(words(text[close + 1..].trim_ascii_end()))
    {
        *place = word;
        count += 1;
    }
    // The time of waiting is there since 2.6.18, the last of those that are read.
    if count < fields.len() {
        return None;
    }
    // Fields are numbered from 1 in proc(5), and the first here is the third.
    let field = |at: usize| number(fields[at - 3]);
    Some(Stat {
        name: String::from_utf8_lossy(name).into_owned(),
        kthread: field(9)? & PF_KTHREAD != 0,
        start_ticks: field(22)?,
        values: [
            u64::from(*fields[0].first()?),
            field(12)?,
            field(14)?,
            field(15)?,
            field(24)?,
            field(42)?,
        ],
    })
}

#[cfg(test)]
mod tests;
