//! Invariants of pages that stand in generations.

use crate::mm::Mm;
use crate::mm::alloc::mmzone::Lruvec;
use crate::mm::alloc::mmzone::lru_gen::{MAX_NR_GENS, MIN_NR_GENS};
use crate::mm::types::{Lru, Pfn, flag};

/// There are two to four generations of each kind, which have the pages that belong to them.
pub(super) fn check(mm: &Mm, lists: &Lruvec) {
    let Some(gens) = lists.generations() else {
        return;
    };
    for kind in [0, 1] {
        let count = gens.count(kind);
        assert!(
            (MIN_NR_GENS..=MAX_NR_GENS as u64).contains(&count),
            "{count} generations of kind {kind}"
        );
        let lists = Lru::of_type(kind == 1).map(|lru| lists.len(lru));
        let by_list: u64 = lists.iter().sum();
        assert_eq!(
            gens.total(kind),
            by_list,
            "pages of kind {kind} by generation and by list"
        );
    }
    let mut by_place = [0; 2 * MAX_NR_GENS];
    for lru in Lru::EVICTABLE {
        for pfn in lists.iter(&mm.chunks, &mm.pages, lru) {
            let place = 2 * mm.pages.generation(pfn).slot() + usize::from(lru.is_file());
            by_place[place] += mm.pages[pfn].folio_nr_pages();
        }
    }
    for kind in [0, 1] {
        for seq in gens.min_seq[kind]..=gens.max_seq {
            let place = 2 * (seq as usize % MAX_NR_GENS) + kind;
            assert_eq!(
                gens.size(kind, seq),
                by_place[place],
                "generation {seq} of kind {kind}"
            );
        }
    }
}

/// A page is of the kind that its list is for, and is not marked as active.
pub(super) fn check_page(mm: &Mm, lists: &Lruvec, pfn: Pfn, lru: Lru) {
    let page = &mm.pages[pfn];
    assert_eq!(
        page.lru().is_file(),
        lru.is_file(),
        "a page on a list of the other kind"
    );
    assert!(
        !page.has(flag::ACTIVE),
        "a page of a generation is marked as active"
    );
    assert!(
        lists
            .generations()
            .is_some_and(|gens| gens.is_on_its_list(&mm.pages, pfn)),
        "a page is not where it says it is"
    );
}
