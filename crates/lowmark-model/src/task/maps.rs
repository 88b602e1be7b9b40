//! Statements on mapped regions.

use super::context::{Context, Stop};
use super::touch::touch;
use crate::mm::filemap::OpenFile;
use crate::mm::filemap_fault::{MappedFile, ReadAdvice};
use crate::mm::memory::{Backing, Pte, Vma};
use crate::mm::shmem::{ShmemInode, ShmemSlot};
use crate::mm::truncate;
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
) {
    unmap(context, map).await;
    let sys = context.sys.clone();
    sys.down_write(context.space).await;
    {
        let world = &mut *sys.world();
        let pages = length.div_ceil(PAGE_SIZE) as usize;
        let vma = world.mm.vmas.len() as u32;
        // ENOMEM if nothing can own so many pages, ENOENT if there is no file; whoever touches them is
        // killed.
        if let Some((backing, first)) = world.back(kind, vma, pages) {
            let file = match backing {
                Backing::File { inode, .. } => Some(Box::new(MappedFile {
                    open: OpenFile::new(world, inode),
                    advice: ReadAdvice::Normal,
                })),
                _ => None,
            };
            let tables = world.no_tables(pages);
            world.mm.vmas.push(Vma {
                backing,
                space: context.space,
                node: context.node,
                ptes: vec![Pte::default(); pages],
                tables,
                first,
                swapra_miss: 0,
                readahead: Default::default(),
                offset: (offset / PAGE_SIZE) as u32,
                file,
            });
            context.maps[map] = Some(vma);
        }
    }
    if let Some(advice) = advice {
        advise(context, map, advice);
    }
    sys.charge_kernel(sys.costs.syscall_ns).await;
    sys.up_write(context.space);
}

impl World {
    /// What the next region, `vma`, is made of, and the owner number of its first page.
    fn back(&mut self, kind: MapKind, vma: u32, pages: usize) -> Option<(Backing, u32)> {
        match kind {
            MapKind::AnonPrivate => {
                let first = self.mm.mappings.add(vma, pages as u64)?;
                Some((Backing::Anon, first))
            }
            MapKind::AnonShared => {
                let object = self.mm.shmem.len() as u32;
                let first = self.mm.mappings.add(object, pages as u64)?;
                self.mm.shmem.push(ShmemInode {
                    slots: vec![ShmemSlot::default(); pages],
                    first,
                    mappers: vec![vma],
                    tree: Default::default(),
                });
                Some((Backing::Shmem(object), first))
            }
            MapKind::FileShared(file) | MapKind::FilePrivate(file) => {
                let shared = matches!(kind, MapKind::FileShared(_));
                let inode = self.workload.files.inode(file)?;
                let first = match shared {
                    true => 0,
                    false => self.mm.mappings.add(vma, pages as u64)?,
                };
                let mapped = &mut self.mm.inodes[inode as usize];
                mapped.mappers.push(vma);
                mapped.users += 1;
                Some((Backing::File { inode, shared }, first))
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
        world.unmap_region(vma);
        world.mm.vmas[vma as usize].file.take()
    };
    sys.charge_kernel(sys.costs.syscall_ns).await;
    sys.up_write(context.space);
    if let Some(file) = file {
        truncate::close(&sys, file.open.inode).await;
    }
}

/// madvise(2) of a whole region: about readahead, which means something to files only.
pub(super) fn advise(context: &Context, map: usize, advice: Advice) {
    let world = &mut *context.sys.world();
    let region = context.maps[map].map(|vma| &mut world.mm.vmas[vma as usize]);
    if let Some(file) = region.and_then(|region| region.file.as_mut()) {
        file.advice = match advice {
            Advice::Random => ReadAdvice::Random,
            Advice::Sequential => ReadAdvice::Sequential,
            Advice::Normal => ReadAdvice::Normal,
            _ => file.advice,
        };
    }
}

pub(super) async fn touch_map(context: &mut Context, map: usize, what: Touch) -> Result<(), Stop> {
    match context.maps[map] {
        Some(vma) => touch(context, vma, what).await,
        // Not mapped any more: SIGSEGV.
        None => Err(Stop::Killed),
    }
}

/// mincore(2): of a file, whether it is in memory, else whether it is mapped.
pub(super) fn is_resident(context: &Context, map: usize, offset: u64) -> bool {
    let world = context.sys.world();
    let Some(region) = context.maps[map].map(|vma| &world.mm.vmas[vma as usize]) else {
        return false;
    };
    let page = (offset / PAGE_SIZE) as u32;
    let mapped = region
        .ptes
        .get(page as usize)
        .is_some_and(|pte| pte.frame().is_some());
    let cached = |inode: u32| {
        let pages = &world.mm.inodes[inode as usize].pages;
        pages.page(region.offset + page).is_some()
    };
    match region.backing {
        Backing::File { inode, .. } => mapped || cached(inode),
        _ => mapped,
    }
}
