//! madvise(2) of a range of a region, or of all of it. Holes in it are passed over.

use super::context::{Context, Stop};
use super::maps::pages_of;
use crate::kernel::{VmaRecency, WillneedSwap};
use crate::mm::fault::filemap_fault::ReadAdvice;
use crate::mm::fault::memory::{Backing, FaultBy, handle_mm_fault};
use crate::mm::fault::parts::HugeAdvice;
use crate::mm::files::readahead;
use crate::mm::reclaim::madvise::madvise_pageout;
use crate::mm::swap::swap_state;
use crate::mm::types::Gfp;
use crate::world::{Sys, World};
use lowmark_spec::workload::{Advice, Range};

/// Carries out what is advised.
pub(super) async fn advise(
    context: &Context,
    map: usize,
    advice: Advice,
    range: Option<Range>,
) -> Result<(), Stop> {
    let vma = context.region(map)?;
    let sys = context.sys.clone();
    sys.charge_kernel(sys.costs.syscall_ns).await;
    let (pages, backing) = {
        let world = sys.world();
        let backing = world.mm.vmas[vma as usize].backing;
        (pages_of(&world, vma, range), backing)
    };
    let locked = sys.world().mm.vmas[vma as usize]
        .parts
        .any_locked(pages.clone());
    match advice {
        Advice::Free | Advice::Dontneed if locked => {
            return Err(Stop::Failed(
                "pages of the range are locked (EINVAL)".into(),
            ));
        }
        Advice::Free if backing != Backing::Anon => {
            let problem = "`free` is for private memory that is no file's (EINVAL)";
            return Err(Stop::Failed(problem.into()));
        }
        _ if is_setting(advice) => {
            sys.down_write(context.space).await;
            set(&mut sys.world(), vma, advice, pages);
            sys.up_write(context.space);
        }
        Advice::Populate => populate(&sys, vma, pages, true).await?,
        Advice::PopulateRead => populate(&sys, vma, pages, false).await?,
        _ => {
            sys.down_read(context.space).await;
            let pages = pages_of(&sys.world(), vma, range);
            if matches!(advice, Advice::Cold | Advice::Free) {
                sys.world().mm.split_huge_in(vma, pages.clone());
            }
            match advice {
                Advice::Willneed => will_need(&sys, vma, pages).await?,
                Advice::Pageout => madvise_pageout(&sys, vma, pages).await,
                Advice::Cold => sys.world().mm.madvise_cold(vma, pages),
                Advice::Free => sys.world().mm.madvise_free(vma, pages),
                _ => sys.zap_page_range(vma, pages).await,
            }
            sys.up_read(context.space);
        }
    }
    Ok(())
}

/// What advice makes of pages that only says how the kernel is to treat them (`madvise_behavior`).
pub(super) fn set(world: &mut World, vma: u32, advice: Advice, pages: std::ops::Range<u32>) {
    let ignored = world.mm.kernel.mechanisms.reclaim.vma_recency;
    world.mm.split_huge_at(vma, pages.start);
    world.mm.split_huge_at(vma, pages.end);
    let region = &mut world.mm.vmas[vma as usize];
    let all = region.pages();
    region.parts.change(pages, all, |part| match advice {
        Advice::Normal => (part.reads, part.recency) = (ReadAdvice::Normal, true),
        Advice::Sequential => (part.reads, part.recency) = (ReadAdvice::Sequential, false),
        Advice::Random => {
            part.reads = ReadAdvice::Random;
            part.recency = ignored == VmaRecency::NotSequential;
        }
        Advice::Hugepage => part.huge = HugeAdvice::Huge,
        Advice::Nohugepage => part.huge = HugeAdvice::NoHuge,
        _ => {}
    });
}

/// Whether advice says no more than how the kernel is to treat a region.
pub(super) fn is_setting(advice: Advice) -> bool {
    matches!(
        advice,
        Advice::Normal
            | Advice::Random
            | Advice::Sequential
            | Advice::Hugepage
            | Advice::Nohugepage
    )
}

/// MADV_POPULATE_WRITE and MADV_POPULATE_READ: every page is there as after a touch.
pub(super) async fn populate(
    sys: &Sys,
    vma: u32,
    pages: std::ops::Range<u32>,
    write: bool,
) -> Result<(), Stop> {
    for page in pages {
        {
            let world = &mut *sys.world();
            if world.sched.current_killed() {
                return Err(Stop::Killed);
            }
            let region = &mut world.mm.vmas[vma as usize];
            if region
                .ptes
                .get_mut(page as usize)
                .is_none_or(|pte| pte.touch(write))
            {
                continue;
            }
            if !region.parts.at(page).mapped {
                return Err(Stop::Failed(
                    "a page of the range was unmapped (ENOMEM)".into(),
                ));
            }
        }
        handle_mm_fault(sys, vma, page, write, None, FaultBy::Task).await?;
    }
    Ok(())
}

/// MADV_WILLNEED: what is in swap is read from there, and of a file what one call reads ahead; nobody waits for the reads.
async fn will_need(sys: &Sys, vma: u32, pages: std::ops::Range<u32>) -> Result<(), Stop> {
    let (gfp, backing, offset) = {
        let world = sys.world();
        let region = &world.mm.vmas[vma as usize];
        let gfp = Gfp::user(world.sched.current_node());
        (gfp, region.backing, region.offset)
    };
    if let Backing::File { inode, .. } = backing {
        let range = offset + pages.start..offset + pages.end;
        readahead::force(sys, inode, range, gfp).await;
        return Ok(());
    }
    let mechanisms = sys.world().mm.kernel.mechanisms;
    if mechanisms.swap.willneed_swap == WillneedSwap::Ignored {
        return Ok(());
    }
    let slots = sys.world().mm.swapped_of(vma, pages);
    sys.start_plug();
    let read = swap_state::read_ahead(sys, &slots, gfp).await;
    sys.finish_plug();
    Ok(read?)
}
