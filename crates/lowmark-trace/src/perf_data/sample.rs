//! Where the parts of a sample stand, which depends on what was asked for (`perf_output_sample()` in
//! `kernel/events/core.c`): each bit of `sample_type` adds a part, in a fixed order.

use crate::record::Endian;

const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

const FORMAT_TOTAL_TIME_ENABLED: u64 = 1 << 0;
const FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
const FORMAT_ID: u64 = 1 << 2;
const FORMAT_GROUP: u64 = 1 << 3;
const FORMAT_LOST: u64 = 1 << 4;

/// What the samples of an event consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleLayout {
    /// `PERF_SAMPLE_*`.
    pub(crate) sample_type: u64,
    /// `PERF_FORMAT_*`.
    pub(crate) read_format: u64,
    /// Whether other records end with time, id and CPU too.
    pub(crate) sample_id_all: bool,
}

/// The parts of a sample that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    /// 0 if it was not asked for.
    pub(crate) time: u64,
    /// 0 if it was not asked for.
    pub(crate) tid: u32,
    pub(crate) cpu: Option<u32>,
    pub(crate) id: Option<u64>,
    /// The tracepoint's record.
    pub(crate) raw: Option<&'a [u8]>,
}

impl SampleLayout {
    /// Whether samples begin with their id, so that it can be read before their layout is known.
    pub(crate) fn begins_with_id(&self) -> bool {
        self.has(IDENTIFIER)
    }

    fn has(&self, part: u64) -> bool {
        self.sample_type & part != 0
    }

    /// The parts of a sample, `None` if it ends inside of one.
    #[inline]
    pub(crate) fn parse<'a>(&self, body: &'a [u8], endian: Endian) -> Option<Sample<'a>> {
        let mut at = 0;
        // Place of a part of one u64 if it is there.
        let mut part = |bit| {
            self.has(bit).then(|| {
                at += 8;
                at - 8
            })
        };
        let identifier = part(IDENTIFIER);
        part(IP);
        let (tid, time) = (part(TID), part(TIME));
        part(ADDR);
        let id = part(ID).or(identifier);
        part(STREAM_ID);
        let cpu = part(CPU);
        part(PERIOD);
        if self.has(READ) {
            at = self.skip_read(body, at, endian)?;
        }
        if self.has(CALLCHAIN) {
            at = skip_words(at, endian.u64(body, at)?.checked_add(1)?)?;
        }
        let raw = if self.has(RAW) {
            let start = at.checked_add(4)?;
            let size = endian.u32(body, at)? as usize;
            Some(body.get(start..start.checked_add(size)?)?)
        } else {
            None
        };
        let u64_at = |at: Option<usize>| at.map_or(Some(None), |at| endian.u64(body, at).map(Some));
        Some(Sample {
            time: u64_at(time)?.unwrap_or(0),
            tid: tid.map_or(Some(0), |at| endian.u32(body, at + 4))?,
            cpu: cpu.map_or(Some(None), |at| endian.u32(body, at).map(Some))?,
            id: u64_at(id)?,
            raw,
        })
    }

    /// Passes the counts of a sample with `PERF_SAMPLE_READ` (`perf_output_read()`).
    fn skip_read(&self, body: &[u8], at: usize, endian: Endian) -> Option<usize> {
        let has = |bit| u64::from(self.read_format & bit != 0);
        let times = has(FORMAT_TOTAL_TIME_ENABLED) + has(FORMAT_TOTAL_TIME_RUNNING);
        let each = 1 + has(FORMAT_ID) + has(FORMAT_LOST);
        let words = match self.read_format & FORMAT_GROUP {
            0 => times + each,
            _ => endian
                .u64(body, at)?
                .checked_mul(each)?
                .checked_add(1 + times)?,
        };
        skip_words(at, words)
    }

    /// The time at the end of a record that is no sample; 0, before all else, if it has none.
    pub(crate) fn trailing_time(&self, body: &[u8], endian: Endian) -> u64 {
        if !self.sample_id_all || !self.has(TIME) {
            return 0;
        }
        let parts = self.sample_type & (TIME | ID | STREAM_ID | CPU | IDENTIFIER);
        let from_end = 8 * parts.count_ones() as usize;
        let time = body
            .len()
            .checked_sub(from_end)
            .and_then(|at| endian.u64(body, at));
        time.unwrap_or(0)
    }
}

fn skip_words(at: usize, words: u64) -> Option<usize> {
    let bytes = usize::try_from(words.checked_mul(8)?).ok()?;
    at.checked_add(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn parts_are_found_behind_others_of_any_length() {
        let layout = SampleLayout {
            sample_type: IDENTIFIER | IP | TID | TIME | CPU | READ | CALLCHAIN | RAW,
            read_format: FORMAT_GROUP | FORMAT_ID | FORMAT_TOTAL_TIME_ENABLED,
            sample_id_all: true,
        };
        let mut body = words(&[77, 1, 5 << 32 | 4, 1000, 3, 2, 0, 1, 1, 2, 2, 2, 8, 9]);
        body.extend(4u32.to_le_bytes());
        body.extend([1, 2, 3, 4]);
        let raw = Some(&[1, 2, 3, 4][..]);
        let sample = Sample {
            time: 1000,
            tid: 5,
            cpu: Some(3),
            id: Some(77),
            raw,
        };
        assert_eq!(layout.parse(&body, Endian::Little), Some(sample));
        for end in 0..body.len() {
            assert_eq!(layout.parse(&body[..end], Endian::Little), None);
        }
        let trailer = words(&[0, 0, 5 << 32 | 4, 1000, 3, 77]);
        assert_eq!(layout.trailing_time(&trailer, Endian::Little), 1000);
        assert_eq!(layout.trailing_time(&trailer[..8], Endian::Little), 0);
    }

    #[test]
    fn forged_counts_do_not_overflow() {
        let layout = SampleLayout {
            sample_type: READ | CALLCHAIN | RAW,
            read_format: FORMAT_GROUP,
            sample_id_all: false,
        };
        assert_eq!(layout.parse(&words(&[u64::MAX, 0]), Endian::Little), None);
        assert_eq!(
            layout.parse(&words(&[0, u64::MAX, 0]), Endian::Little),
            None
        );
        assert_eq!(
            layout.parse(&words(&[0, 0, u64::MAX]), Endian::Little),
            None
        );
    }
}
