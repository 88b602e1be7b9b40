//! What an evicted page leaves in its place (`mm/workingset.c`).

use crate::ids::LruvecId;
use std::num::NonZeroU32;

/// The entry that an evicted page leaves in its place: the time of the eviction, the set of lists that the page was on,
/// and whether the page had ever been active. A shadow has 31 bits beside one that is always set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shadow(NonZeroU32);

/// Bits of the clock, which wraps after as many evictions as the model can hold pages.
pub(in crate::mm) const AGE_BITS: u32 = 26;
pub(in crate::mm) const AGE_MASK: u32 = (1 << AGE_BITS) - 1;
const WORKINGSET: u32 = 1 << AGE_BITS;
const LRUVEC_SHIFT: u32 = AGE_BITS + 1;
const LRUVEC_MASK: u32 = LRUVECS_MAX as u32 - 1;
/// Sets of lists that a shadow can name.
pub(crate) const LRUVECS_MAX: usize = 1 << 4;

/// Set in every shadow and in no page number or swap slot.
pub(crate) const SHADOW: u32 = 1 << 31;

impl Shadow {
    /// `pack_shadow`
    pub(in crate::mm) fn pack(lruvec: LruvecId, age: u32, workingset: bool) -> Shadow {
        let ever_active = if workingset { WORKINGSET } else { 0 };
        let bits = age & AGE_MASK | ever_active | (usize::from(lruvec) as u32) << LRUVEC_SHIFT;
        Shadow(NonZeroU32::new(bits | SHADOW).unwrap_or(NonZeroU32::MAX))
    }

    /// All of it in a number that has [`SHADOW`] set.
    pub(crate) fn bits(self) -> u32 {
        self.0.get()
    }

    /// The shadow that [`bits`](Self::bits) gave; none if [`SHADOW`] is not set.
    pub(crate) fn from_bits(bits: u32) -> Option<Shadow> {
        NonZeroU32::new(bits)
            .filter(|bits| bits.get() & SHADOW != 0)
            .map(Shadow)
    }

    pub(in crate::mm) fn age(self) -> u32 {
        self.bits() & AGE_MASK
    }

    pub(in crate::mm) fn lruvec(self) -> LruvecId {
        LruvecId::from((self.bits() >> LRUVEC_SHIFT & LRUVEC_MASK) as usize)
    }

    pub(in crate::mm) fn was_active(self) -> bool {
        self.bits() & WORKINGSET != 0
    }
}
