//! Statements on mapped regions.

use super::advise;
use super::context::{Context, Stop, missing};
use super::touch::touch;
use crate::mm::Mm;
use crate::mm::fault::memory::{Backing, Vma};
use crate::mm::fault::parts::Parts;
use crate::mm::fault::shmem::{ShmemInode, ShmemSlot};
use crate::mm::files::filemap::OpenFile;
use crate::mm::files::truncate;
use crate::mm::frames::pte::Pte;
use crate::mm::shrinker::d_lookup;
use crate::mm::types::PAGEBLOCK_ORDER;
use crate::world::World;
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::workload::{Advice, Answer, MapKind, Probe, Range, Touch};

/// mmap(2)
pub(super) async fn map_region(
    context: &mut Context,
    map: usize,
    kind: MapKind,
    length: u64,
    offset: u64,
    exec: bool,
    advice: Option<Advice>,
) -> Result<(), Stop> {
    unmap(context, map).await;
    let sys = context.sys.clone();
    sys.down_write(context.space).await;
    if let MapKind::FileShared(file) | MapKind::FilePrivate(file) = kind {
        let name = sys.world().workload.files.name(file);
        d_lookup(&sys, name).await?;
    }
    let mapped = {
        let world = &mut *sys.world();
        let pages = length.div_ceil(PAGE_SIZE) as usize;
        let vma = world.mm.vmas.len() as u32;
        world.back(kind, vma, pages).map(|(backing, first)| {
            let file = match backing {
                Backing::File { inode, .. } => Some(Box::new(OpenFile::new(world, inode))),
                _ => None,
            };
            let pmds = world.mm.no_tables(pages);
            world.workload.mapped += pages as u64;
            world.mm.vmas.push(Vma {
                backing,
                space: context.space,
                ptes: vec![Pte::default(); pages],
                pmds,
                first,
                swapra_miss: 0,
                readahead: Default::default(),
                offset: (offset / PAGE_SIZE) as u32,
                file,
                parts: Parts::new(exec),
            });
            if let Some(advice) = advice {
                let pages = 0..pages as u32;
                advise::set(world, vma, advice, pages);
            }
            context.maps[map] = Some(vma);
        })
    };
    sys.charge_kernel(sys.costs.syscall_ns).await;
    sys.up_write(context.space);
    mapped?;
    match advice.filter(|&advice| !advise::is_setting(advice)) {
        Some(advice) => Box::pin(advise::advise(context, map, advice, None)).await,
        None => Ok(()),
    }
}

/// Most pages of all maps together, 4 TiB: their PTEs take 4 GiB of the host. A bound of the model's own, so that a run
/// ends in the same way on every host.
const MAPPED_MAX: u64 = 1 << 30;

/// A map that the model has no room for.
fn too_large(pages: usize) -> Stop {
    let gib = (pages as u64).div_ceil((1 << 30) / PAGE_SIZE);
    Stop::Failed(format!("{gib} GiB; the model holds 4 TiB in all maps together (ENOMEM)").into())
}

impl World {
    /// What the next region, `vma`, is made of, and the owner number of its first page.
    fn back(&mut self, kind: MapKind, vma: u32, pages: usize) -> Result<(Backing, u32), Stop> {
        let shared_file = matches!(kind, MapKind::FileShared(_));
        if !shared_file && !self.mm.vm_enough_memory(pages as u64) {
            return Err(Stop::Failed(
                "mmap failed (ENOMEM): larger than RAM and swap together; set overcommit_memory = 1 to allow it"
                    .into(),
            ));
        }
        if self.workload.mapped.saturating_add(pages as u64) > MAPPED_MAX {
            return Err(too_large(pages));
        }
        let own = |mm: &mut Mm, owner: u32| {
            let first = mm.mappings.add(owner, pages as u64);
            first.ok_or_else(|| too_large(pages))
        };
        match kind {
            MapKind::AnonPrivate => Ok((Backing::Anon, own(&mut self.mm, vma)?)),
            MapKind::AnonShared => {
                let object = self.mm.shmem.len() as u32;
                let first = own(&mut self.mm, object)?;
                self.mm.shmem.push(ShmemInode {
                    slots: vec![ShmemSlot::default(); pages],
                    first,
                    mappers: vec![vma],
                    tree: Default::default(),
                });
                Ok((Backing::Shmem(object), first))
            }
            MapKind::FileShared(file) | MapKind::FilePrivate(file) => {
                let shared = matches!(kind, MapKind::FileShared(_));
                let inode = self.workload.files.inode(file).ok_or_else(missing)?;
                let first = if shared { 0 } else { own(&mut self.mm, vma)? };
                let mapped = &mut self.mm.inodes[inode];
                mapped.mappers.push(vma);
                mapped.users += 1;
                Ok((Backing::File { inode, shared }, first))
            }
        }
    }
}

/// munmap(2) of a whole region.
pub(super) async fn unmap(context: &mut Context, map: usize) {
    if let Some(vma) = context.maps[map].take() {
        change_maps(context, vma, None).await;
    }
}

/// munmap(2) of a range of a region, and of what is at this distance behind it, each with a call of its own.
pub(super) async fn unmap_range(
    context: &mut Context,
    map: usize,
    range: Range,
    every: Option<u64>,
) -> Result<(), Stop> {
    let vma = context.region(map)?;
    let length = region_length(context, vma);
    for range in range.repeated(every, length) {
        change_maps(context, vma, Some(range)).await;
    }
    Ok(())
}

/// A hole of a shared object, or MADV_DONTNEED of private memory, of a range and of what is at this distance behind it.
pub(super) async fn punch(
    context: &Context,
    map: usize,
    range: Range,
    every: Option<u64>,
) -> Result<(), Stop> {
    let vma = context.region(map)?;
    let sys = &context.sys;
    for range in range.repeated(every, region_length(context, vma)) {
        sys.down_read(context.space).await;
        let pages = pages_of(&sys.world(), vma, Some(range));
        let backing = sys.world().mm.vmas[vma as usize].backing;
        match backing {
            Backing::Shmem(object) => {
                let pages = pages.start as usize..pages.end as usize;
                sys.world().mm.punch_shmem(object, pages);
            }
            _ => sys.zap_page_range(vma, pages).await,
        }
        sys.charge_kernel(sys.costs.syscall_ns).await;
        sys.up_read(context.space);
    }
    Ok(())
}

/// Unmaps a range of a region, or all of it, with `mmap_sem` held for writing; a file of which nothing is mapped any more is
/// closed.
async fn change_maps(context: &Context, vma: u32, range: Option<Range>) {
    let sys = context.sys.clone();
    sys.down_write(context.space).await;
    let length = |world: &World| world.mm.vmas[vma as usize].ptes.len() as u64;
    let before = length(&sys.world());
    match range {
        None => sys.unmap_region(vma).await,
        Some(_) => {
            let pages = pages_of(&sys.world(), vma, range);
            sys.unmap_range(vma, pages).await;
        }
    }
    let file = {
        let world = &mut *sys.world();
        world.workload.mapped -= before - length(world);
        match length(world) {
            0 => world.mm.vmas[vma as usize].file.take(),
            _ => None,
        }
    };
    sys.charge_kernel(sys.costs.syscall_ns).await;
    sys.up_write(context.space);
    if let Some(file) = file {
        truncate::close(&sys, file.inode).await;
    }
}

fn region_length(context: &Context, vma: u32) -> u64 {
    context.sys.world().mm.vmas[vma as usize].ptes.len() as u64 * PAGE_SIZE
}

/// The pages of a range of a region, or all of them.
pub(super) fn pages_of(world: &World, vma: u32, range: Option<Range>) -> std::ops::Range<u32> {
    let pages = world.mm.vmas[vma as usize].pages();
    let page = |number: u64| number.min(u64::from(pages)) as u32;
    match range {
        None => 0..pages,
        Some(Range { offset, length }) => {
            let end = offset.saturating_add(length).div_ceil(PAGE_SIZE);
            page(offset / PAGE_SIZE)..page(end)
        }
    }
}

/// Touches a map. A touch of a resident page takes `touch_ns`.
pub(super) async fn touch_map(
    context: &mut Context,
    map: usize,
    what: Touch,
    touch_ns: u64,
) -> Result<(), Stop> {
    let vma = context.region(map)?;
    touch(context, vma, what, touch_ns.max(1)).await
}

/// What a page is: mincore(2), which says of a file whether the page is in memory and else whether it is mapped, or
/// `/proc/kpageflags`, which says whether it is part of a huge page.
pub(super) fn probe(
    context: &Context,
    map: usize,
    offset: u64,
    what: Probe,
) -> Result<Answer, Stop> {
    let vma = context.region(map)?;
    let world = context.sys.world();
    let region = &world.mm.vmas[vma as usize];
    let page = (offset / PAGE_SIZE) as u32;
    let frame = region.ptes.get(page as usize).and_then(|pte| pte.frame());
    let yes = match (what, region.backing) {
        (Probe::Huge, _) => frame.is_some_and(|pfn| world.mm.pages[pfn].order() == PAGEBLOCK_ORDER),
        (Probe::Resident, Backing::File { inode, .. }) if region.parts.at(page).mapped => {
            let pages = &world.mm.inodes[inode].pages;
            frame.is_some() || pages.page(region.offset + page).is_some()
        }
        (Probe::Resident, _) => frame.is_some(),
    };
    Ok(Answer::to(what, yes))
}
