//! Memory for I/O under way (`block/bio.c`): of each page of swap a bio, from slabs of their own.
//!
//! 1. A bio is allocated without touching reserves, though who reclaims might otherwise have the last page
//!    (`mempool_alloc` sets `__GFP_NOMEMALLOC`).
//! 2. Where there is no memory for a slab, one of two is taken that are kept for that.
//! 3. Are these under way too, the task sleeps until I/O ends; what it has plugged goes out then. The first bios that
//!    come back are kept again, and whoever waits tries once more.
//!
//! So a kernel that has let memory run short writes about a slab of pages at a time, until some are free. From 6.13
//! on that decides more: the write that waited is alone and the oldest in a new plug, which is therefore not let go
//! for its size ([`crate::device`]).

use crate::mm::alloc::slub::{Cache, NO_OBJECT, POOL_SIZE};
use crate::mm::alloc::xarray::Object;
use crate::mm::types::{Pfn, Reserves, flag};
use crate::time::{Sched, WaitQueue};
use crate::world::World;
use std::collections::VecDeque;

/// `fs_bio_set`, as far as swap uses it.
#[derive(Debug, Default)]
pub(crate) struct BioSet {
    is_on: bool,
    /// Those that are kept (`mempool_t::elements`).
    pool: Vec<Object>,
    /// Those of I/O under way, the oldest first.
    under_way: VecDeque<Object>,
    waiting: WaitQueue,
}

impl BioSet {
    /// With what is kept; none if the kernel's bios are left out.
    pub(crate) fn new(pool: Option<[Object; POOL_SIZE]>) -> BioSet {
        BioSet {
            is_on: pool.is_some(),
            pool: pool.into_iter().flatten().collect(),
            ..BioSet::default()
        }
    }

    /// Whether I/O of swap needs memory.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// How many there are, kept or under way.
    pub(crate) fn len(&self) -> usize {
        self.pool.len() + self.under_way.len()
    }

    /// Blocks the current task until some I/O has ended.
    pub(super) fn wait(&mut self, sched: &mut Sched) {
        self.waiting.block(sched, "memory for I/O");
    }
}

impl World {
    /// Memory for the I/O of a page, on its node (`bio_alloc`). False: there is none.
    pub(super) fn bio_alloc(&mut self, page: Pfn) -> bool {
        let node = self.mm.node_of(page);
        let bio = match self.alloc_object(Cache::Bio, node, Reserves::None) {
            NO_OBJECT => self.bios.pool.pop(),
            bio => Some(bio),
        };
        self.bios.under_way.extend(bio);
        bio.is_some()
    }

    /// I/O of these pages has ended (`bio_put`): as much memory is free again as those of swap had, that of the oldest
    /// I/O first.
    #[inline]
    pub(super) fn bio_put(&mut self, pages: &[Pfn]) {
        if !self.bios.is_on {
            return;
        }
        for &pfn in pages {
            if self.mm.pages[pfn].has(flag::SWAPBACKED)
                && let Some(bio) = self.bios.under_way.pop_front()
            {
                self.mempool_free(bio);
            }
        }
    }

    fn mempool_free(&mut self, bio: Object) {
        if self.bios.pool.len() < POOL_SIZE {
            self.bios.pool.push(bio);
            self.bios.waiting.wake_all(&mut self.sched);
        } else {
            self.mm.free_object(Cache::Bio, bio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use crate::mm::types::Gfp;

    fn take_all(world: &mut World, page: Pfn) -> usize {
        (0..100).take_while(|_| world.bio_alloc(page)).count()
    }

    /// A slab has 16 of them, two of which are kept: what guests write before they wait for the first time.
    #[test]
    fn without_memory_a_slab_of_pages_is_written_at_a_time() {
        for version in ["v5.0", "v6.1", "v6.18"] {
            let mut world = World::of_version(version);
            let take = |world: &mut World| {
                world.alloc_pages_nowait(Gfp::kernel(NodeId::FIRST).nowait(Reserves::All), 0)
            };
            let page = take(&mut world).expect("there is memory");
            world.mm.pages[page].set(flag::SWAPBACKED);
            while take(&mut world).is_some() {}

            assert_eq!(take_all(&mut world, page), 16, "{version}");
            world.bio_put(&[page; 5]);
            assert_eq!(world.bios.pool.len(), POOL_SIZE);
            assert_eq!(take_all(&mut world, page), 5);
            world.bio_put(&[page; 16]);
            assert_eq!(world.bios.len(), POOL_SIZE);
        }
    }

    #[test]
    fn with_memory_nobody_waits() {
        let mut world = World::of_version("v6.18");
        assert_eq!(take_all(&mut world, 0), 100);
        assert!(!World::of_version("v4.17").bios.is_on());
    }

    #[test]
    fn who_waits_is_woken_by_what_is_kept_again() {
        let mut world = World::of_version("v6.18");
        let task = world.sched.add("kswapd0".into(), true);
        world.sched.next_ready();
        assert!(world.bio_alloc(0));
        world.bios.pool.clear();
        world.bios.wait(&mut world.sched);
        assert!(!world.bios.waiting.is_empty());
        world.mm.pages[0].set(flag::SWAPBACKED);
        world.bio_put(&[0]);
        assert!(world.bios.waiting.is_empty());
        assert_eq!(world.sched.next_ready(), Some(task));
    }
}
