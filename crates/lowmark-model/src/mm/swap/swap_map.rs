//! Searching a map of used slots, one bit each.

/// Slots of a run that is searched for (`SWAPFILE_CLUSTER`).
pub(super) const CLUSTER: u32 = 256;

/// The first free offset in `from..end`.
#[inline]
pub(super) fn next_free(used: &[u64], from: u32, end: u32) -> Option<u32> {
    let mut at = from;
    while at < end {
        let free = !used[at as usize / 64] >> (at % 64);
        if free != 0 {
            let offset = at + free.trailing_zeros();
            return (offset < end).then_some(offset);
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

/// The first offset of a run of [`CLUSTER`] free ones in `from..end`.
///
/// Such a run covers at least three whole words, so only words without a bit are looked at closely.
pub(super) fn free_run(used: &[u64], from: u32, end: u32) -> Option<u32> {
    let is_free = |word: u32| used[word as usize] == 0;
    let mut word = from / 64;
    while word * 64 < end {
        if !is_free(word) {
            word += 1;
            continue;
        }
        let before = match word {
            0 => 0,
            _ => used[word as usize - 1].leading_zeros(),
        };
        let start = (word * 64 - before).max(from);
        while word * 64 < end && is_free(word) {
            word += 1;
        }
        let after = used
            .get(word as usize)
            .map_or(0, |next| next.trailing_zeros());
        let stop = (word * 64 + after).min(end);
        if stop >= start + CLUSTER {
            return Some(start);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::random::Stream;

    #[test]
    fn free_runs_are_found_exactly() {
        let naive = |used: &[u64], from: u32, end: u32| {
            (from..end.saturating_sub(CLUSTER - 1))
                .find(|&s| (s..s + CLUSTER).all(|o| used[o as usize / 64] & 1 << (o % 64) == 0))
        };
        let mut stream = Stream::new(1, "runs", 0);
        for round in 0..300 {
            let mut used = vec![0u64; 40];
            for _ in 0..stream.below(12) {
                let (at, len) = (stream.below(2560), 1 + stream.below(80));
                for o in at..(at + len).min(2560) {
                    used[o as usize / 64] |= 1 << (o % 64);
                }
            }
            let from = stream.below(600) as u32;
            let end = from + stream.below(2560 - u64::from(from)) as u32;
            assert_eq!(
                free_run(&used, from, end),
                naive(&used, from, end),
                "round {round}"
            );
        }
    }
}
