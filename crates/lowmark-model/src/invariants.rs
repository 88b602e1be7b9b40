//! Invariants that hold between any two events.

mod files;
mod generations;
mod held;
mod huge_pages;
mod objects;
mod shrinkers;

use crate::ids::ZoneId;
use crate::kernel::MigrateTypes;
use crate::mm::Mm;
use crate::mm::frames::page::FreeList;
use crate::mm::types::{Lru, MigrateType, ZoneType, flag};
use crate::world::World;

/// Checks everything; a panic names what is broken.
pub(crate) fn check(world: &World) {
    pages_are_conserved(&world.mm);
    lists_hold_what_they_say(&world.mm);
    held::check(&world.mm);
    held::check_gathered(&world.mm);
    groups_are_charged_for_their_pages(&world.mm);
    slots_and_cache_agree(&world.mm);
    huge_pages::check(&world.mm);
    objects::check(&world.mm, world.mm.kernel.mechanisms.swap.swap_cache_index);
    objects::groups_are_charged_for_their_objects(&world.mm);
    objects::requests_have_their_tables(world);
    objects::io_has_bios(world);
    objects::pages_have_buffers(&world.mm);
    files::check(world);
    shrinkers::check(&world.mm);
}

/// Every managed frame is free or in use, and each zone counts its free ones right.
fn pages_are_conserved(mm: &Mm) {
    for (index, zone) in mm.zones.iter_enumerated() {
        let by_type = MigrateType::ALL.map(|list| {
            let blocks = zone.free_area[list as usize].iter().enumerate();
            let free = blocks.map(|(order, area)| free_on(mm, index, list, order, area));
            free.sum::<u64>()
        });
        let free: u64 = by_type.iter().sum();
        assert_eq!(free, zone.free, "free pages of zone {index}");
        assert!(
            zone.free <= zone.managed,
            "zone {index} has more free pages than pages"
        );
    }
}

/// Pages on the list of free blocks of a zone, type and order. Each is marked so; from 6.10 on it is in a
/// pageblock of that type.
fn free_on(mm: &Mm, zone: ZoneId, list: MigrateType, order: usize, area: &FreeList) -> u64 {
    let state = &mm.zones[zone];
    let strict = matches!(
        state.rules.migrate_types,
        MigrateTypes::Claimed | MigrateTypes::ClaimedFirst
    );
    let mut blocks = 0;
    for pfn in area.iter(&mm.pages) {
        let page = &mm.pages[pfn];
        assert!(
            page.is_free_block(order),
            "a block is not marked as free of its order"
        );
        assert_eq!(
            page.buddy_list(),
            list as usize,
            "a block is on the list of another type"
        );
        assert_eq!(
            mm.pages.zone(pfn),
            zone,
            "a block is on the list of another zone"
        );
        assert!(
            !strict || state.pageblock_type(pfn) == list,
            "a block is on a list that its pageblock denies"
        );
        blocks += 1;
    }
    assert_eq!(blocks, area.len(), "blocks of order {order} of zone {zone}");
    blocks << order
}

/// List lengths equal what is on them; a page is on the list that its flags say.
fn lists_hold_what_they_say(mm: &Mm) {
    let mut on_lists = 0u64;
    for (index, lists) in mm.lruvecs.iter_enumerated() {
        generations::check(mm, lists);
        for lru in Lru::EVICTABLE {
            let mut length = 0;
            for pfn in lists.iter(&mm.chunks, &mm.pages, lru) {
                let page = &mm.pages[pfn];
                assert!(
                    page.has(flag::LRU),
                    "a page on an LRU list is not marked so"
                );
                assert!(!page.has(flag::BUDDY), "a free page is on an LRU list");
                if lists.generations().is_some() {
                    generations::check_page(mm, lists, pfn, lru);
                } else {
                    assert_eq!(
                        mm.page_lru(pfn),
                        lru,
                        "a page is on a list that its flags deny"
                    );
                }
                assert_eq!(mm.lruvec_of(pfn), index, "a page is on another's lists");
                assert_eq!(
                    mm.pages.head(pfn),
                    pfn,
                    "a page of a folio is on a list without it"
                );
                length += page.folio_nr_pages();
                on_lists += 1;
            }
            assert_eq!(
                length,
                lists.len(lru),
                "length of {lru:?} of list set {index}"
            );
            let zones = ZoneType::ALL.iter();
            let by_zone: u64 = zones.map(|&kind| lists.zone_len(kind, lru)).sum();
            assert_eq!(
                by_zone, length,
                "pages per zone of {lru:?} of list set {index}"
            );
        }
    }
    let marked = (0..mm.pages.len())
        .filter(|&pfn| mm.pages[pfn].has(flag::LRU))
        .count() as u64;
    assert_eq!(marked, on_lists, "pages marked as on an LRU list");
}

/// What a group has been charged, stocks aside, is what its pages are and those of all groups inside it, so it has no less than
/// these together; a stock is a batch at most; every slot counts for the group of its page.
fn groups_are_charged_for_their_pages(mm: &Mm) {
    assert!(mm.memcontrol.stocks_are_batches(), "a stock beyond a batch");
    for (group, (charged, pages)) in mm.memcontrol.charges().enumerate() {
        assert_eq!(charged, pages, "charges of memory cgroup {}", group + 1);
    }
    for (group, (usage, children)) in mm.memcontrol.usages().enumerate() {
        assert!(
            usage >= children,
            "{usage} pages of memory cgroup {}, {children} inside it",
            group + 1
        );
    }
    assert!(mm.swap.groups_have_their_slots(), "swap of memory cgroups");
}

/// Every reference to a slot is counted, every cached page knows its slot.
fn slots_and_cache_agree(mm: &Mm) {
    let mut references =
        vec![0u32; mm.swap.iter().map(|(slot, ..)| slot + 1).max().unwrap_or(0) as usize];
    let mut mapped = std::collections::BTreeMap::new();
    for vma in &mm.vmas {
        for pte in &vma.ptes {
            if let Some(slot) = pte.swap_entry() {
                references[slot as usize] += 1;
            } else if let Some(pfn) = pte.frame() {
                *mapped.entry(pfn).or_insert(0u16) += 1;
            }
        }
    }
    for object in &mm.shmem {
        for slot in &object.slots {
            if let crate::mm::fault::shmem::ShmemEntry::Swap(slot) = slot.get() {
                references[slot as usize] += 1;
            }
        }
    }
    for (slot, _, page) in mm.swap.iter() {
        assert_eq!(
            mm.swap.references(slot),
            references[slot as usize],
            "references to slot {slot}"
        );
        if let Some(pfn) = page {
            assert!(
                mm.pages[mm.pages.head(pfn)].has(flag::SWAPCACHE),
                "slot {slot} caches a page that denies it"
            );
            assert_eq!(
                mm.pages[pfn].slot(),
                slot,
                "slot {slot} caches the page of another slot"
            );
        }
    }
    let writeback: u64 = (0..mm.pages.len())
        .filter(|&pfn| mm.pages[pfn].has(flag::WRITEBACK) && !mm.pages[pfn].has(flag::BUDDY))
        .map(|pfn| {
            if mm.is_huge(pfn) {
                mm.huge.writes(pfn).into()
            } else {
                1
            }
        })
        .sum();
    // Pages that wait for a COMMIT and do not count by themselves.
    let unstable = files::unstable(mm) - mm.nr_unstable;
    assert_eq!(
        writeback + unstable,
        mm.nr_writeback,
        "pages under writeback"
    );
    for pfn in 0..mm.pages.len() {
        let count = mapped.get(&pfn).copied().unwrap_or(0);
        assert_eq!(mm.pages[pfn].mapcount, count, "PTEs that map page {pfn}");
    }
}
