//! Pages scanned, reclaimed and written, by who did it.
//!
//! Which isolations scanned an inactive list depends on the era of the event (statistics of the vmscan
//! tracepoints, `isolate_mode`):
//!
//! 1. With `lru=` (4.11 and later) the list says it.
//! 2. With `file=` and `contig_*` (3.3 and 3.4) the mode is a set of bits, `ISOLATE_INACTIVE` the first.
//! 3. With `contig_*` alone it is such a set in 3.2, but a plain number before (0 inactive, 1 active, 2
//!    both). A mode of 0 is no set, one of 3 no number: the modes that a trace holds tell the two apart, so
//!    sums are kept by mode until its end.
//! 4. With `file=` alone (3.5 to 4.10) it cannot be known: lists were no longer told apart.

use lowmark_record::event::{RECLAIM_WB_ASYNC, RECLAIM_WB_FILE, RECLAIM_WB_MIXED, RECLAIM_WB_SYNC};
use lowmark_record::{Event, Field};
use serde::Serialize;

/// `ISOLATE_INACTIVE` of 3.2 to 3.4.
const ISOLATE_INACTIVE: i64 = 1;

/// Mode by which the kernel's script leaves an isolation out, whatever the era.
const SCRIPT_ACTIVE: i64 = 2;

/// Who reclaims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    /// A task of the name `kswapd` and a number.
    Kswapd,
    /// A task between `mm_vmscan_direct_reclaim_begin` and `_end`.
    Direct,
    /// A task between `mm_vmscan_memcg_reclaim_begin` and `_end`, or those of the soft limit.
    Memcg,
    /// Everybody else, such as a task of DAMON.
    Other,
}

impl Actor {
    /// All of them, in the order of tables.
    pub const ALL: [Actor; 4] = [Actor::Kswapd, Actor::Direct, Actor::Memcg, Actor::Other];

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Actor::Kswapd => "kswapd",
            Actor::Direct => "direct",
            Actor::Memcg => "memcg",
            Actor::Other => "other",
        }
    }

    /// Name at the head of a row.
    pub fn label(self) -> &'static str {
        match self {
            Actor::Kswapd => "Kswapd",
            Actor::Direct => "Direct",
            Actor::Memcg => "MemCG",
            Actor::Other => "Other",
        }
    }
}

/// Pages that reclaim wrote, by their kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Writes {
    /// Anonymous pages, `RECLAIM_WB_SYNC`.
    pub anon_sync: u64,
    /// Anonymous pages, asynchronous.
    pub anon_async: u64,
    /// File pages, `RECLAIM_WB_SYNC`.
    pub file_sync: u64,
    /// File pages, asynchronous.
    pub file_async: u64,
    /// `RECLAIM_WB_MIXED`, `RECLAIM_WB_SYNC`.
    pub mixed_sync: u64,
    /// `RECLAIM_WB_MIXED`, asynchronous.
    pub mixed_async: u64,
}

impl Writes {
    /// Counts a written page by its flags. A page that is neither file nor mixed is anonymous, as the
    /// kernel's script has it.
    #[inline]
    pub(super) fn add(&mut self, flags: u64) {
        // A flag of both is never set; asynchronous wins, as in mmtests' script.
        let sync = flags & RECLAIM_WB_SYNC != 0 && flags & RECLAIM_WB_ASYNC == 0;
        let place = match (flags & RECLAIM_WB_MIXED, flags & RECLAIM_WB_FILE, sync) {
            (0, 0, true) => &mut self.anon_sync,
            (0, 0, false) => &mut self.anon_async,
            (0, _, true) => &mut self.file_sync,
            (0, _, false) => &mut self.file_async,
            (_, _, true) => &mut self.mixed_sync,
            (_, _, false) => &mut self.mixed_async,
        };
        *place += 1;
    }

    /// Adds those of another.
    pub(super) fn join(&mut self, other: &Writes) {
        self.anon_sync += other.anon_sync;
        self.anon_async += other.anon_async;
        self.file_sync += other.file_sync;
        self.file_async += other.file_async;
        self.mixed_sync += other.mixed_sync;
        self.mixed_async += other.mixed_async;
    }

    /// All pages written.
    pub fn total(&self) -> u64 {
        self.sync() + self.anon_async + self.file_async + self.mixed_async
    }

    /// Pages written synchronously.
    pub fn sync(&self) -> u64 {
        self.anon_sync + self.file_sync + self.mixed_sync
    }
}

/// The value of a field that counts something; 0 where it is absent or, as only damage makes it, negative.
#[inline]
pub(crate) fn count(event: &Event, field: Field) -> u64 {
    event.signed(field).map_or(0, |v| v.max(0).cast_unsigned())
}

#[inline]
fn add(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}

/// Sums over the events of one actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pages {
    /// `nr_scanned` of `mm_vmscan_lru_shrink_inactive`, and of it that of file lists.
    pub(super) shrink_scanned: u64,
    pub(super) shrink_scanned_file: u64,
    /// `nr_reclaimed` of it.
    pub(super) shrink_reclaimed: u64,
    pub(super) shrink_reclaimed_file: u64,
    /// `nr_scanned` of isolations that are known to be of inactive lists.
    isolated_inactive: u64,
    /// The same of isolations of which it cannot be known (3.5 to 4.10).
    isolated_unknown: u64,
    /// The same by mode, where the era's numbering is not yet known: 0, 1, 2 and 3; of sets with further
    /// bits, those with `ISOLATE_INACTIVE` count as 3, the others as 2.
    isolated_by_mode: [u64; 4],
    /// The same as the kernel's script counts, had it understood the text.
    pub(super) isolated_script: u64,
    /// `nr_scanned` of all isolations.
    pub(super) isolated: u64,
    /// `mm_vmscan_reclaim_pages`: pages reclaimed by name, which no counter has.
    pub(super) named_scanned: u64,
    pub(super) named_reclaimed: u64,
    /// `nr_reclaimed` of `_end` events, slab included.
    pub(super) freed: u64,
    pub(super) writes: Writes,
}

impl Pages {
    /// `mm_vmscan_lru_isolate`, or `mm_vmscan_memcg_isolate`: gives how many pages of a list that may be
    /// inactive were scanned.
    #[inline]
    pub(super) fn isolate(&mut self, event: &Event) -> u64 {
        let scanned = count(event, Field::NrScanned);
        let mode = event.signed(Field::IsolateMode);
        add(&mut self.isolated, scanned);
        if mode != Some(SCRIPT_ACTIVE) {
            add(&mut self.isolated_script, scanned);
        }
        if let Some(lru) = event.get(Field::Lru) {
            // LRU_INACTIVE_ANON and LRU_INACTIVE_FILE.
            let inactive = matches!(lru, 0 | 2);
            let scanned = if inactive { scanned } else { 0 };
            add(&mut self.isolated_inactive, scanned);
            return scanned;
        }
        let lumpy = event.get(Field::ContigTaken).is_some();
        let file = event.get(Field::File).is_some();
        match mode {
            Some(mode) if lumpy && file => {
                let inactive = mode & ISOLATE_INACTIVE != 0;
                let scanned = if inactive { scanned } else { 0 };
                add(&mut self.isolated_inactive, scanned);
                scanned
            }
            Some(mode) if lumpy => {
                let place = match mode {
                    0 | 1 => mode as usize,
                    _ if mode & ISOLATE_INACTIVE != 0 => 3,
                    _ => 2,
                };
                add(&mut self.isolated_by_mode[place], scanned);
                scanned
            }
            _ => {
                add(&mut self.isolated_unknown, scanned);
                scanned
            }
        }
    }

    /// `mm_vmscan_lru_shrink_inactive`: gives pages scanned and reclaimed.
    #[inline]
    pub(super) fn shrink(&mut self, event: &Event) -> (u64, u64) {
        let scanned = count(event, Field::NrScanned);
        let reclaimed = count(event, Field::NrReclaimed);
        add(&mut self.shrink_scanned, scanned);
        add(&mut self.shrink_reclaimed, reclaimed);
        if event.get(Field::Flags).unwrap_or(0) & RECLAIM_WB_FILE != 0 {
            add(&mut self.shrink_scanned_file, scanned);
            add(&mut self.shrink_reclaimed_file, reclaimed);
        }
        (scanned, reclaimed)
    }

    /// Adds those of another.
    pub(super) fn join(&mut self, other: &Pages) {
        add(&mut self.shrink_scanned, other.shrink_scanned);
        add(&mut self.shrink_scanned_file, other.shrink_scanned_file);
        add(&mut self.shrink_reclaimed, other.shrink_reclaimed);
        add(&mut self.shrink_reclaimed_file, other.shrink_reclaimed_file);
        add(&mut self.isolated_inactive, other.isolated_inactive);
        add(&mut self.isolated_unknown, other.isolated_unknown);
        for (sum, mode) in self.isolated_by_mode.iter_mut().zip(other.isolated_by_mode) {
            add(sum, mode);
        }
        add(&mut self.isolated_script, other.isolated_script);
        add(&mut self.isolated, other.isolated);
        add(&mut self.named_scanned, other.named_scanned);
        add(&mut self.named_reclaimed, other.named_reclaimed);
        add(&mut self.freed, other.freed);
        self.writes.join(&other.writes);
    }

    /// Whether its isolations number their mode plainly, as up to 3.1: see step 3.
    pub(super) fn plain_modes(&self) -> bool {
        self.isolated_by_mode[0] > 0
    }

    /// Pages of inactive lists by the isolations, and whether that is certain; `plain` as the whole trace
    /// numbers modes.
    pub(super) fn isolated_inactive(&self, plain: bool) -> (u64, bool) {
        let [zero, one, two, more] = self.isolated_by_mode;
        let by_mode = if plain {
            // 0 inactive, 2 both.
            zero.saturating_add(two)
        } else {
            // Those with ISOLATE_INACTIVE.
            one.saturating_add(more)
        };
        let known = self.isolated_inactive.saturating_add(by_mode);
        (
            known.saturating_add(self.isolated_unknown),
            self.isolated_unknown == 0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_record::Kind;

    fn isolate(fields: &[(Field, u64)]) -> Event {
        Event::new(Kind::LruIsolate, 0, 0, 0)
            .with(&[(Field::NrScanned, 32)])
            .with(fields)
    }

    fn inactive(events: &[Event]) -> (u64, bool) {
        let mut pages = Pages::default();
        for event in events {
            pages.isolate(event);
        }
        pages.isolated_inactive(pages.plain_modes())
    }

    #[test]
    fn every_era_of_isolation() {
        let lru = |lru| isolate(&[(Field::Lru, lru), (Field::IsolateMode, 0)]);
        assert_eq!(inactive(&[lru(0), lru(1), lru(2), lru(3)]), (64, true));

        let bits = |mode| {
            isolate(&[
                (Field::IsolateMode, mode),
                (Field::ContigTaken, 0),
                (Field::File, 1),
            ])
        };
        assert_eq!(inactive(&[bits(1), bits(2), bits(3), bits(5)]), (96, true));

        let lumpy = |mode| isolate(&[(Field::IsolateMode, mode), (Field::ContigTaken, 0)]);
        // 0 inactive, 1 active, 2 both.
        assert_eq!(inactive(&[lumpy(0), lumpy(1), lumpy(2)]), (64, true));
        // 1 inactive, 2 active, 3 both.
        assert_eq!(inactive(&[lumpy(1), lumpy(2), lumpy(3)]), (64, true));

        let unknown = |mode| isolate(&[(Field::IsolateMode, mode), (Field::File, 1)]);
        assert_eq!(inactive(&[unknown(0), unknown(2)]), (64, false));
    }

    #[test]
    fn the_scripts_rule() {
        let mut pages = Pages::default();
        for mode in [0, 1, 2, 3] {
            pages.isolate(&isolate(&[(Field::IsolateMode, mode)]));
        }
        assert_eq!(pages.isolated_script, 96);
    }

    #[test]
    fn writes_by_kind() {
        let mut writes = Writes::default();
        for flags in [0x9, 0xa, 0x18, 0x5, 0x6, 0x14, 0, 0xc] {
            writes.add(flags);
        }
        let expected = Writes {
            anon_sync: 1,
            anon_async: 3,
            file_sync: 1,
            file_async: 1,
            mixed_sync: 1,
            mixed_async: 1,
        };
        assert_eq!(writes, expected);
        assert_eq!((writes.total(), writes.sync()), (8, 3));
    }

    #[test]
    fn damaged_numbers_do_no_harm() {
        let mut pages = Pages::default();
        for value in [u64::MAX, i64::MAX.cast_unsigned(), i64::MAX.cast_unsigned()] {
            let event = Event::new(Kind::LruShrinkInactive, 0, 0, 0)
                .with(&[(Field::NrScanned, value), (Field::NrReclaimed, value)]);
            pages.shrink(&event);
        }
        assert_eq!(pages.shrink_scanned, u64::MAX - 1);
        let mut sum = pages;
        sum.join(&pages);
        assert_eq!(sum.shrink_scanned, u64::MAX);
    }
}
