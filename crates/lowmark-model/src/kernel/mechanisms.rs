//! The mechanisms, one enum each, in groups with a file each.
//!
//! A variant's text says what the kernel does with it. Variants that were never merged say where they
//! were posted; for merged ones commit and version stand in [`super::versions::HISTORY`].

mod block;
mod blocks;
mod files;
mod huge;
mod kswapd;
mod lru_gen;
mod memcg;
mod nfs;
mod reclaim;
mod sched;
mod shrinker;
mod swap;
mod writeback;
mod zones;

use super::KernelError;
use super::declare::mechanisms;
use block::block;
use blocks::blocks;
use files::files;
use huge::huge;
use kswapd::kswapd;
use lru_gen::lru_gen;
use memcg::memcg;
use nfs::nfs;
use reclaim::reclaim;
use sched::sched;
use shrinker::shrinker;
use swap::swap;
use writeback::writeback;
use zones::zones;

// Each part hands what there is so far, with its own behind it, to the next.
swap! { huge reclaim lru_gen memcg shrinker kswapd zones blocks block writeback files nfs sched mechanisms; }
