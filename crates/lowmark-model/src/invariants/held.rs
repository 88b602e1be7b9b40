//! Blocks that tasks hold, and pages that they have unmapped.

use crate::mm::Mm;
use crate::mm::types::{MAX_ORDER, Pfn, flag};

/// No page of a block that is held is free, mapped, on an LRU list or in another one that is held.
pub(super) fn check(mm: &Mm) {
    let mut end: Pfn = 0;
    for (first, order) in mm.held.iter() {
        assert!(first >= end, "page {first} is held twice");
        end = first + (1 << order);
        for pfn in first..end {
            let page = &mm.pages[pfn];
            assert!(
                !page.has_any(flag::LRU | flag::PCP) && !page.has(flag::BUDDY),
                "page {pfn} is held, and on a list"
            );
            assert!(!page.is_mapped(), "page {pfn} is held, and mapped");
        }
        for larger in order..MAX_ORDER {
            let head = &mm.pages[first & !((1 << larger) - 1)];
            assert!(
                !head.has(flag::BUDDY) || head.order() < larger,
                "page {first} is held in a free block"
            );
        }
    }
}

/// A page that a task has unmapped and not freed yet is anonymous, and neither mapped nor free.
pub(super) fn check_gathered(mm: &Mm) {
    for pfn in 0..mm.pages.len() {
        let page = &mm.pages[pfn];
        // PCP is a part of BUDDY, too.
        let in_use = page.is_anon() && !page.is_mapped() && !page.has(flag::PCP);
        assert!(
            in_use || !page.is_gathered(),
            "page {pfn} is held by the task that has unmapped it: {page:?}"
        );
    }
}
