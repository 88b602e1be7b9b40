//! What holds of huge pages of private memory.

use crate::mm::Mm;
use crate::mm::types::{HPAGE_PMD_NR, HPAGE_PMD_ORDER, flag};

/// Every huge page has as many mapped frames as it says, and each list of those that wait holds what it says. Where an
/// entry of a directory maps 2 MiB as one, these are one huge page, or the page of zeroes.
pub(super) fn check(mm: &Mm) {
    if !mm.huge.is_on() {
        return;
    }
    for head in (0..mm.pages.len()).step_by(HPAGE_PMD_NR as usize) {
        let page = &mm.pages[head];
        let huge = page.order() == HPAGE_PMD_ORDER && page.is_anon() && !page.has(flag::BUDDY);
        let mut frames = mm.pages.folio(head);
        let mapped = if huge {
            frames
                .clone()
                .filter(|&pfn| mm.pages[pfn].is_mapped())
                .count()
        } else {
            0
        };
        assert_eq!(
            usize::from(mm.huge.mapped(head)),
            mapped,
            "mapped frames of the huge page {head}"
        );
        assert!(
            !huge || frames.all(|pfn| mm.pages[pfn].order() == HPAGE_PMD_ORDER),
            "a huge page has frames that do not belong to it"
        );
    }
    mm.check_split_queues();
    for (vma, region) in mm.vmas.iter().enumerate() {
        let extents = region.ptes.chunks(HPAGE_PMD_NR as usize);
        for (extent, ptes) in extents.enumerate() {
            let index = extent as u32 * HPAGE_PMD_NR;
            if !mm.pmd(vma as u32, index).is_some_and(|pmd| pmd.is_huge()) {
                continue;
            }
            let first = ptes[0].frame();
            let expected = |number: usize| first.map(|head| head + number as u32);
            assert!(
                ptes.iter()
                    .enumerate()
                    .all(|(number, pte)| pte.is_present() && pte.frame() == expected(number)),
                "2 MiB that are mapped as one are not one huge page"
            );
        }
    }
}
