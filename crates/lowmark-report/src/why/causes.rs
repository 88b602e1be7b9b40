//! The causes, one file each. Adding one is a file, its line here, and `make docs`.

mod d1_device_slow;
mod d2_limit_low;
mod d3_share;
mod f1_huge_pages;
mod f2_high_orders;
mod f3_boost;
mod f4_high_wakeups;
mod f5_blocks;
mod g10_pfmemalloc;
mod g11_swap_full;
mod g12_balance;
mod g1_anon_back;
mod g2_anon_new;
mod g3_file_back;
mod g4_file_new;
mod g5_kswapd_outrun;
mod g6_watermarks_near;
mod g7_used_pages_only;
mod g8_writeback;
mod g9_isolated_no_progress;
mod m1_memcg_max;
mod m2_memcg_high;
mod n1_node;
mod p1_proactive;
mod s1_shrinker;
mod x1_not_memory;
mod x2_oom;

use super::cause::Cause;

/// All causes, in the order of their ids.
pub static CAUSES: &[&Cause] = &[
    &g1_anon_back::CAUSE,
    &g2_anon_new::CAUSE,
    &g3_file_back::CAUSE,
    &g4_file_new::CAUSE,
    &g5_kswapd_outrun::CAUSE,
    &g6_watermarks_near::CAUSE,
    &g7_used_pages_only::CAUSE,
    &g8_writeback::CAUSE,
    &g9_isolated_no_progress::CAUSE,
    &g10_pfmemalloc::CAUSE,
    &g11_swap_full::CAUSE,
    &g12_balance::CAUSE,
    &m1_memcg_max::CAUSE,
    &m2_memcg_high::CAUSE,
    &f1_huge_pages::CAUSE,
    &f2_high_orders::CAUSE,
    &f3_boost::CAUSE,
    &f4_high_wakeups::CAUSE,
    &f5_blocks::CAUSE,
    &d1_device_slow::CAUSE,
    &d2_limit_low::CAUSE,
    &d3_share::CAUSE,
    &s1_shrinker::CAUSE,
    &n1_node::CAUSE,
    &p1_proactive::CAUSE,
    &x1_not_memory::CAUSE,
    &x2_oom::CAUSE,
];
