//! What the binary carriers share: byte order, a raw record, the account of a reading, and errors.

use std::collections::BTreeMap;

/// Byte order of a file and of the records in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// The two bytes at `at`, `None` where `bytes` ends before.
    #[inline]
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u16::from_le_bytes(raw),
            Endian::Big => u16::from_be_bytes(raw),
        })
    }

    /// The four bytes at `at`, `None` where `bytes` ends before.
    #[inline]
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u32::from_le_bytes(raw),
            Endian::Big => u32::from_be_bytes(raw),
        })
    }

    /// The eight bytes at `at`, `None` where `bytes` ends before.
    #[inline]
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let raw = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u64::from_le_bytes(raw),
            Endian::Big => u64::from_be_bytes(raw),
        })
    }
}

/// One event as the kernel wrote it, and what its carrier knows beside.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'a> {
    /// Time by the clock of the recording, ns. For clocks that do not count ns (`counter`, `x86-tsc`
    /// without a conversion in the file) the bare value.
    pub time_ns: u64,
    /// CPU it was written on, [`CPU_UNKNOWN`](Self::CPU_UNKNOWN) where the carrier does not say.
    pub cpu: u32,
    /// Id of the event (`common_type`), by which its format is found.
    pub event: u16,
    /// The record, from the common fields on. It may be longer than its format says: carriers align.
    pub data: &'a [u8],
    /// Name of the task at that time, where the carrier knows it.
    pub comm: Option<&'a str>,
}

impl RawRecord<'_> {
    /// The [`cpu`](Self::cpu) of a record that was written without one.
    pub const CPU_UNKNOWN: u32 = u32::MAX;
}

/// A place of a file that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Where, bytes from the start of the file. For compressed data the place of the chunk.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

/// Most kinds of other records that are told apart, so that a hostile file can't fill the memory.
const KINDS_MAX: usize = 1 << 10;

/// What a reading delivered, and what it could not.
///
/// A figure drawn from the records is exact only if [`is_complete`](Self::is_complete).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Records delivered.
    pub records: u64,
    /// Events the kernel counted as lost between delivered ones.
    pub lost_events: u64,
    /// Gaps of which the kernel says only that some events are missing, not how many.
    pub gaps_uncounted: u64,
    /// Events that the recorder's own statistics call overwritten or dropped, over all CPUs. They may
    /// stand before the first record, and may be counted in `lost_events` too.
    pub overwritten: u64,
    /// Records delivered with a time before that of one delivered earlier.
    pub unsorted: u64,
    /// Padding skipped: discarded events, rests of pages.
    pub padding: u64,
    /// Time extends and absolute times met.
    pub time_markers: u64,
    /// Pages, chunks and records left out, in whole or from some place on, because they are damaged.
    pub damaged: u64,
    /// The first of these.
    pub first_damage: Option<Flaw>,
    /// Where the file ends before its own description of it does.
    pub truncated: Option<Flaw>,
    /// Records of other kinds, counted by kind.
    pub other: BTreeMap<String, u64>,
}

impl Accounting {
    /// Whether every event between the first and the last record was delivered, in order of time.
    pub fn is_complete(&self) -> bool {
        let missing = [
            self.lost_events,
            self.gaps_uncounted,
            self.damaged,
            self.unsorted,
        ];
        missing == [0; 4] && self.truncated.is_none()
    }

    /// Counts a damaged place and keeps the first.
    pub(crate) fn damage(&mut self, offset: u64, what: impl Into<String>) {
        self.damaged += 1;
        let what = what.into();
        self.first_damage.get_or_insert(Flaw { offset, what });
    }

    /// Keeps the first place where the file ends early.
    pub(crate) fn truncate(&mut self, offset: u64, what: impl Into<String>) {
        let what = what.into();
        self.truncated.get_or_insert(Flaw { offset, what });
    }

    /// Counts a record of another kind.
    pub(crate) fn count_other(&mut self, kind: &str) {
        if let Some(count) = self.other.get_mut(kind) {
            *count += 1;
            return;
        }
        let kind = if self.other.len() < KINDS_MAX {
            kind
        } else {
            "others"
        };
        *self.other.entry(kind.to_owned()).or_default() += 1;
    }
}

/// Why a file cannot be read. The name of the file is the caller's to add.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system could not read.
    #[error("reading at offset {offset}: {source}")]
    Io {
        /// Where, bytes from the start of the file.
        offset: u64,
        /// What the system says.
        source: std::io::Error,
    },
    /// Something else stands where the format demands something.
    #[error("at offset {offset}: expected {expected}, found {found}")]
    Unexpected {
        /// Where, bytes from the start of the file.
        offset: u64,
        /// What the format demands there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The file ends inside its description: nothing can be delivered.
    #[error(
        "the file was cut short: it ends at offset {end}, inside {what}, which begins at offset \
         {offset}; copy or record it again"
    )]
    Truncated {
        /// Where the thing begins that is not whole, bytes from the start of the file.
        offset: u64,
        /// Length of the file, bytes.
        end: u64,
        /// What is not whole.
        what: String,
    },
    /// A size or count that no recorder writes; reading on would cost memory without bound.
    #[error("at offset {offset}: {what} is given as {size}, more than the {limit} that are read")]
    TooLarge {
        /// Where the size stands, bytes from the start of the file.
        offset: u64,
        /// What it is the size of, and in what unit.
        what: String,
        /// The size given.
        size: u64,
        /// The largest accepted.
        limit: u64,
    },
    /// Well formed, but of a kind that is not read.
    #[error("at offset {offset}: {what}; {hint}")]
    Unsupported {
        /// Where, bytes from the start of the file.
        offset: u64,
        /// What is not read.
        what: String,
        /// What to do instead.
        hint: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_in_both_orders_and_never_beyond_the_end() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(Endian::Little.u16(&bytes, 1), Some(0x0302));
        assert_eq!(Endian::Big.u32(&bytes, 1), Some(0x0203_0405));
        assert_eq!(Endian::Little.u64(&bytes, 1), Some(0x0908_0706_0504_0302));
        assert_eq!(Endian::Big.u64(&bytes, 2), None);
        assert_eq!(Endian::Big.u16(&bytes, usize::MAX), None);
    }

    #[test]
    fn an_account_keeps_the_first_flaw_and_counts_all() {
        let mut account = Accounting::default();
        assert!(account.is_complete());
        account.damage(7, "first");
        account.damage(3, "second");
        account.count_other("mmap");
        account.count_other("mmap");
        assert_eq!(account.damaged, 2);
        assert_eq!(
            account.first_damage.as_ref().map(|flaw| flaw.offset),
            Some(7)
        );
        assert_eq!(account.other["mmap"], 2);
        assert!(!account.is_complete());
    }

    #[test]
    fn an_account_of_a_hostile_file_is_bounded() {
        let mut account = Accounting {
            lost_events: u64::MAX,
            gaps_uncounted: u64::MAX,
            ..Accounting::default()
        };
        for kind in 0..3 * KINDS_MAX {
            account.count_other(&format!("kind {kind}"));
        }
        assert!(!account.is_complete());
        assert_eq!(account.other.len(), KINDS_MAX + 1);
        assert_eq!(account.other["others"], 2 * KINDS_MAX as u64);
    }
}
