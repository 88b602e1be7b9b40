//! Watermark boost: kswapd is to free more where blocks change their type.

use crate::ids::ZoneId;
use crate::mm::Mm;
use crate::mm::types::Mark;
use crate::world::World;

impl Mm {
    /// The watermarks of a zone have been boosted: allocations from now on see it, and kswapd is to be told.
    #[cold]
    #[inline(never)]
    pub(in crate::mm) fn note_boost(&mut self, zone: ZoneId) {
        self.zones[zone].boosted_watermark = false;
        self.boosted_zone = Some(zone);
        self.update_fallbacks(zone);
    }

    /// What allocations have to leave in a zone follows its watermarks and what is kept for those that cannot wait.
    pub(in crate::mm::alloc) fn update_fallbacks(&mut self, zone: ZoneId) {
        let marks = [Mark::Min, Mark::Low, Mark::High].map(|mark| self.zones[zone].mark(mark));
        let fallbacks = self.nodes.iter_mut().flat_map(|node| {
            let class = node.class;
            node.fallbacks
                .iter_mut()
                .map(move |fallback| (class, fallback))
        });
        for (class, fallback) in fallbacks.filter(|(_, fallback)| fallback.zone == zone) {
            let zone = &self.zones[zone];
            let reserve = zone.lowmem_reserve[class] + zone.reserved_highatomic;
            fallback.keeps = marks.map(|mark| mark + reserve);
        }
    }

    /// kswapd is through with a boost of a zone.
    pub(crate) fn end_boost(&mut self, zone: ZoneId, boost: u64) {
        let state = &mut self.zones[zone];
        state.watermark_boost = state.watermark_boost.saturating_sub(boost);
        self.update_fallbacks(zone);
    }
}

impl World {
    /// An allocation boosted a zone (`rmqueue`): kswapd is woken for it and those below it, as the node may be
    /// balanced.
    #[cold]
    #[inline(never)]
    pub(super) fn wake_kswapd_for_boost(&mut self) {
        if let Some(zone) = self.mm.boosted_zone.take() {
            let kind = self.mm.zones[zone].kind;
            self.wakeup_kswapd(zone, (0, 0), kind, kind);
        }
    }
}
