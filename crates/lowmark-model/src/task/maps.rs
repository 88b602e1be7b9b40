//! Statements on mapped regions.

use super::context::{Context, Stop, missing};
use super::touch::touch;
use crate::ids::InodeId;
use crate::kernel::VmaRecency;
use crate::mm::Mm;
use crate::mm::fault::filemap_fault::{MappedFile, ReadAdvice};
use crate::mm::fault::memory::{Backing, Vma};
use crate::mm::fault::shmem::{ShmemInode, ShmemSlot};
use crate::mm::files::filemap::OpenFile;
use crate::mm::files::truncate;
use crate::mm::frames::pte::Pte;
use crate::mm::shrinker::d_lookup;
use crate::world::World;
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::workload::{Advice, MapKind, Touch};

/// mmap(2)
pub(super) async fn map_region(
    context: &mut Context,
    map: usize,
    kind: MapKind,
    length: u64,
    offset: u64,
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
                Backing::File { inode, .. } => Some(Box::new(MappedFile {
                    open: OpenFile::new(world, inode),
                    advice: ReadAdvice::Normal,
                })),
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
                recency: true,
                readahead: Default::default(),
                offset: (offset / PAGE_SIZE) as u32,
                file,
            });
            context.maps[map] = Some(vma);
        })
    };
    let result = match advice {
        Some(advice) => mapped.and_then(|()| advise(context, map, advice)),
        None => mapped,
    };
    sys.charge_kernel(sys.costs.syscall_ns).await;
    sys.up_write(context.space);
    result
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
                let first = match shared {
                    true => 0,
                    false => own(&mut self.mm, vma)?,
                };
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
    let Some(vma) = context.maps[map].take() else {
        return;
    };
    let sys = context.sys.clone();
    sys.down_write(context.space).await;
    let file = {
        let world = &mut *sys.world();
        world.workload.mapped -= world.mm.vmas[vma as usize].ptes.len() as u64;
        world.mm.unmap_region(vma);
        world.mm.vmas[vma as usize].file.take()
    };
    sys.charge_kernel(sys.costs.syscall_ns).await;
    sys.up_write(context.space);
    if let Some(file) = file {
        truncate::close(&sys, file.open.inode).await;
    }
}

/// madvise(2) of a whole region: about readahead, which means something to files only, and thereby about whether
/// references count.
pub(super) fn advise(context: &Context, map: usize, advice: Advice) -> Result<(), Stop> {
    let vma = context.region(map)?;
    let advice = match advice {
        Advice::Random => ReadAdvice::Random,
        Advice::Sequential => ReadAdvice::Sequential,
        Advice::Normal => ReadAdvice::Normal,
        _ => return Ok(()),
    };
    let world = &mut *context.sys.world();
    let ignored = world.mm.kernel.mechanisms.reclaim.vma_recency;
    let region = &mut world.mm.vmas[vma as usize];
    region.recency = match advice {
        ReadAdvice::Normal => true,
        ReadAdvice::Sequential => false,
        ReadAdvice::Random => ignored == VmaRecency::NotSequential,
    };
    if let Some(file) = &mut region.file {
        file.advice = advice;
    }
    Ok(())
}

pub(super) async fn touch_map(context: &mut Context, map: usize, what: Touch) -> Result<(), Stop> {
    let vma = context.region(map)?;
    touch(context, vma, what).await
}

/// mincore(2): of a file, whether it is in memory, else whether it is mapped.
pub(super) fn is_resident(context: &Context, map: usize, offset: u64) -> Result<bool, Stop> {
    let vma = context.region(map)?;
    let world = context.sys.world();
    let region = &world.mm.vmas[vma as usize];
    let page = (offset / PAGE_SIZE) as u32;
    let mapped = region
        .ptes
        .get(page as usize)
        .is_some_and(|pte| pte.frame().is_some());
    let cached = |inode: InodeId| {
        let pages = &world.mm.inodes[inode].pages;
        pages.page(region.offset + page).is_some()
    };
    Ok(match region.backing {
        Backing::File { inode, .. } => mapped || cached(inode),
        _ => mapped,
    })
}
