//! Reclaim of pages that somebody has chosen (`reclaim_pages`), whoever has used them.

use super::{Batch, ScanControl, page_list};
use crate::mm::types::{SWAP_CLUSTER_MAX, ZoneType};
use crate::world::Sys;

/// Reclaims pages that were taken off their lists; what is left goes back to them.
pub(crate) async fn reclaim_pages(sys: &Sys, mut batch: Batch) {
    if batch.is_empty() {
        return;
    }
    let mut sc = ScanControl::new(false, SWAP_CLUSTER_MAX, 0, ZoneType::High);
    sc.ignore_references = true;
    page_list::shrink_page_list(sys, &mut batch, &mut sc).await;
    let mm = &mut sys.world().mm;
    for pfn in batch {
        mm.lru_add(pfn);
    }
}
