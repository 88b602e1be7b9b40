//! Texts that several tracepoints share, or that changed more than once.

use super::kind::Texts;

pub(super) const NID: Texts = &[("2.6.36", "nid={nid}")];

pub(super) const KSWAPD_WAKE: Texts = &[
    ("2.6.36", "nid={nid} order={order}"),
    ("4.8", "nid={nid} zid={zid} order={order}"),
    ("4.17", "nid={nid} order={order}"),
];

pub(super) const WAKEUP_KSWAPD: Texts = &[
    ("2.6.36", "nid={nid} zid={zid} order={order}"),
    ("4.17", "nid={nid} order={order} gfp_flags={gfp_flags}"),
];

pub(super) const RECLAIM_BEGIN: Texts = &[
    (
        "2.6.36",
        "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags}",
    ),
    (
        "4.8",
        "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags} \
         classzone_idx={classzone}",
    ),
    ("5.2", "order={order} gfp_flags={gfp_flags}"),
    (
        "7.1",
        "order={order} gfp_flags={gfp_flags} pid={pid} memcg_id={memcg_id} {in_irq}",
    ),
];

pub(super) const RECLAIM_END: Texts = &[
    ("2.6.36", "nr_reclaimed={nr_reclaimed}"),
    (
        "7.1",
        "nr_reclaimed={nr_reclaimed} pid={pid} memcg_id={memcg_id} {in_irq}",
    ),
];

pub(super) const LRU_ISOLATE: Texts = &[
    (
        "2.6.36",
        "isolate_mode={isolate_mode} order={order} nr_requested={nr_requested} \
         nr_scanned={nr_scanned} nr_taken={nr_taken} contig_taken={contig_taken} \
         contig_dirty={contig_dirty} contig_failed={contig_failed}",
    ),
    (
        "3.3",
        "isolate_mode={isolate_mode} order={order} nr_requested={nr_requested} \
         nr_scanned={nr_scanned} nr_taken={nr_taken} contig_taken={contig_taken} \
         contig_dirty={contig_dirty} contig_failed={contig_failed} file={file}",
    ),
    (
        "3.5",
        "isolate_mode={isolate_mode} order={order} nr_requested={nr_requested} \
         nr_scanned={nr_scanned} nr_taken={nr_taken} file={file}",
    ),
    (
        "4.8",
        "isolate_mode={isolate_mode} classzone={classzone} order={order} \
         nr_requested={nr_requested} nr_scanned={nr_scanned} nr_taken={nr_taken} file={file}",
    ),
    (
        "4.11",
        "isolate_mode={isolate_mode} classzone={classzone} order={order} \
         nr_requested={nr_requested} nr_scanned={nr_scanned} nr_skipped={nr_skipped} \
         nr_taken={nr_taken} lru={lru}",
    ),
    (
        "6.7",
        "classzone={classzone} order={order} nr_requested={nr_requested} \
         nr_scanned={nr_scanned} nr_skipped={nr_skipped} nr_taken={nr_taken} lru={lru}",
    ),
];

pub(super) const WRITEPAGE: Texts = &[
    ("2.6.36", "page={page} pfn={pfn} flags={flags}"),
    ("5.17", "page={page} pfn=0x{pfn:x} flags={flags}"),
];

pub(super) const LRU_SHRINK_INACTIVE: Texts = &[
    (
        "2.6.37",
        "nid={nid} zid={zid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} \
         priority={priority} flags={flags}",
    ),
    (
        "4.8",
        "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} priority={priority} \
         flags={flags}",
    ),
    (
        "4.11",
        "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={nr_dirty} \
         nr_writeback={nr_writeback} nr_congested={nr_congested} nr_immediate={nr_immediate} \
         nr_activate={nr_activate} nr_ref_keep={nr_ref_keep} nr_unmap_fail={nr_unmap_fail} \
         priority={priority} flags={flags}",
    ),
    (
        "5.2",
        "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={nr_dirty} \
         nr_writeback={nr_writeback} nr_congested={nr_congested} nr_immediate={nr_immediate} \
         nr_activate_anon={nr_activate_anon} nr_activate_file={nr_activate_file} \
         nr_ref_keep={nr_ref_keep} nr_unmap_fail={nr_unmap_fail} priority={priority} flags={flags}",
    ),
];

pub(super) const RECLAIM_PAGES: Texts = &[(
    "6.13",
    "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={nr_dirty} \
     nr_writeback={nr_writeback} nr_congested={nr_congested} nr_immediate={nr_immediate} \
     nr_activate_anon={nr_activate_anon} nr_activate_file={nr_activate_file} \
     nr_ref_keep={nr_ref_keep} nr_unmap_fail={nr_unmap_fail}",
)];

pub(super) const SHRINK_SLAB_START: Texts = &[
    (
        "3.1",
        "{shrinker} {shr}: objects to shrink {nr_objects_to_shrink} gfp_flags {gfp_flags} \
         pgs_scanned {pgs_scanned} lru_pgs {lru_pgs} cache items {cache_items} delta {delta} \
         total_scan {total_scan}",
    ),
    (
        "3.16",
        "{shrinker} {shr}: nid: {nid} objects to shrink {nr_objects_to_shrink} \
         gfp_flags {gfp_flags} pgs_scanned {pgs_scanned} lru_pgs {lru_pgs} \
         cache items {cache_items} delta {delta} total_scan {total_scan}",
    ),
    (
        "4.16",
        "{shrinker} {shr}: nid: {nid} objects to shrink {nr_objects_to_shrink} \
         gfp_flags {gfp_flags} cache items {cache_items} delta {delta} total_scan {total_scan} \
         priority {priority}",
    ),
    (
        "7.1",
        "{shrinker} {shr}: nid: {nid} pid: {pid} memcg_id: {memcg_id} \
         objects to shrink {nr_objects_to_shrink} gfp_flags {gfp_flags} \
         cache items {cache_items} delta {delta} total_scan {total_scan} priority {priority} \
         {in_irq}",
    ),
];

pub(super) const SHRINK_SLAB_END: Texts = &[
    (
        "3.1",
        "{shrinker} {shr}: unused scan count {unused_scan} new scan count {new_scan} \
         total_scan {total_scan} last shrinker return val {retval}",
    ),
    (
        "3.16",
        "{shrinker} {shr}: nid: {nid} unused scan count {unused_scan} new scan count {new_scan} \
         total_scan {total_scan} last shrinker return val {retval}",
    ),
    (
        "7.1",
        "{shrinker} {shr}: nid: {nid} pid: {pid} memcg_id: {memcg_id} \
         unused scan count {unused_scan} new scan count {new_scan} total_scan {total_scan} \
         last shrinker return val {retval} {in_irq}",
    ),
];

pub(super) const CONGESTION: Texts = &[(
    "2.6.37",
    "usec_timeout={usec_timeout} usec_delayed={usec_delayed}",
)];

pub(super) const BDI: Texts = &[("3.1", "bdi {bdi}")];

pub(super) const WRITEBACK_CONTROL: Texts = &[(
    "2.6.36",
    "bdi {bdi}: towrt={to_write} skip={pages_skipped} mode={sync_mode} kupd={kupdate} \
     bgrd={background} reclm={for_reclaim} cyclic={range_cyclic} more={more_io} \
     older=0x{older:x} start=0x{range_start:x} end=0x{range_end:x}",
)];

pub(super) const BDI_CGROUP: Texts = &[
    ("2.6.36", "bdi {bdi}"),
    ("4.2", "bdi {bdi}: cgroup={cgroup}"),
    ("4.16", "bdi {bdi}: cgroup_ino={cgroup_ino}"),
];

pub(super) const BALANCE_DIRTY_PAGES: Texts = &[
    (
        "3.2",
        "bdi {bdi}: limit={limit} setpoint={setpoint} dirty={dirty} bdi_setpoint={bdi_setpoint} \
         bdi_dirty={bdi_dirty} dirty_ratelimit={dirty_ratelimit} task_ratelimit={task_ratelimit} \
         dirtied={dirtied} dirtied_pause={dirtied_pause} pause={pause} paused={paused}",
    ),
    (
        "3.3",
        "bdi {bdi}: limit={limit} setpoint={setpoint} dirty={dirty} bdi_setpoint={bdi_setpoint} \
         bdi_dirty={bdi_dirty} dirty_ratelimit={dirty_ratelimit} task_ratelimit={task_ratelimit} \
         dirtied={dirtied} dirtied_pause={dirtied_pause} paused={paused} pause={pause} \
         period={period} think={think}",
    ),
    (
        "4.2",
        "bdi {bdi}: limit={limit} setpoint={setpoint} dirty={dirty} bdi_setpoint={bdi_setpoint} \
         bdi_dirty={bdi_dirty} dirty_ratelimit={dirty_ratelimit} task_ratelimit={task_ratelimit} \
         dirtied={dirtied} dirtied_pause={dirtied_pause} paused={paused} pause={pause} \
         period={period} think={think} cgroup={cgroup}",
    ),
    (
        "4.16",
        "bdi {bdi}: limit={limit} setpoint={setpoint} dirty={dirty} bdi_setpoint={bdi_setpoint} \
         bdi_dirty={bdi_dirty} dirty_ratelimit={dirty_ratelimit} task_ratelimit={task_ratelimit} \
         dirtied={dirtied} dirtied_pause={dirtied_pause} paused={paused} pause={pause} \
         period={period} think={think} cgroup_ino={cgroup_ino}",
    ),
    (
        "6.11",
        "bdi {bdi}: limit={limit} setpoint={setpoint} dirty={dirty} wb_setpoint={bdi_setpoint} \
         wb_dirty={bdi_dirty} dirty_ratelimit={dirty_ratelimit} task_ratelimit={task_ratelimit} \
         dirtied={dirtied} dirtied_pause={dirtied_pause} paused={paused} pause={pause} \
         period={period} think={think} cgroup_ino={cgroup_ino}",
    ),
];

pub(super) const BDI_DIRTY_RATELIMIT: Texts = &[
    (
        "3.2",
        "bdi {bdi}: write_bw={write_bw} awrite_bw={awrite_bw} dirty_rate={dirty_rate} \
         dirty_ratelimit={dirty_ratelimit} task_ratelimit={task_ratelimit} \
         balanced_dirty_ratelimit={balanced_dirty_ratelimit}",
    ),
    (
        "4.2",
        "bdi {bdi}: write_bw={write_bw} awrite_bw={awrite_bw} dirty_rate={dirty_rate} \
         dirty_ratelimit={dirty_ratelimit} task_ratelimit={task_ratelimit} \
         balanced_dirty_ratelimit={balanced_dirty_ratelimit} cgroup={cgroup}",
    ),
    (
        "4.16",
        "bdi {bdi}: write_bw={write_bw} awrite_bw={awrite_bw} dirty_rate={dirty_rate} \
         dirty_ratelimit={dirty_ratelimit} task_ratelimit={task_ratelimit} \
         balanced_dirty_ratelimit={balanced_dirty_ratelimit} cgroup_ino={cgroup_ino}",
    ),
];

pub(super) const GLOBAL_DIRTY_STATE: Texts = &[
    (
        "3.1",
        "dirty={dirty} writeback={writeback} unstable={unstable} bg_thresh={bg_thresh} \
         thresh={thresh} limit={limit} dirtied={dirtied} written={written}",
    ),
    (
        "5.8",
        "dirty={dirty} writeback={writeback} bg_thresh={bg_thresh} thresh={thresh} \
         limit={limit} dirtied={dirtied} written={written}",
    ),
];

pub(super) const WRITEBACK_WORK: Texts = &[
    (
        "2.6.36",
        "bdi {bdi}: sb_dev {sb_dev} nr_pages={nr_pages} sync_mode={sync_mode} kupdate={kupdate} \
         range_cyclic={range_cyclic} background={background}",
    ),
    (
        "3.2",
        "bdi {bdi}: sb_dev {sb_dev} nr_pages={nr_pages} sync_mode={sync_mode} kupdate={kupdate} \
         range_cyclic={range_cyclic} background={background} reason={reason}",
    ),
    (
        "4.2",
        "bdi {bdi}: sb_dev {sb_dev} nr_pages={nr_pages} sync_mode={sync_mode} kupdate={kupdate} \
         range_cyclic={range_cyclic} background={background} reason={reason} cgroup={cgroup}",
    ),
    (
        "4.16",
        "bdi {bdi}: sb_dev {sb_dev} nr_pages={nr_pages} sync_mode={sync_mode} kupdate={kupdate} \
         range_cyclic={range_cyclic} background={background} reason={reason} \
         cgroup_ino={cgroup_ino}",
    ),
];

pub(super) const WRITEBACK_QUEUE_IO: Texts = &[
    (
        "3.2",
        "bdi {bdi}: older={older} age={age} enqueue={enqueue} reason={reason}",
    ),
    (
        "4.16",
        "bdi {bdi}: older={older} age={age} enqueue={enqueue} reason={reason} \
         cgroup_ino={cgroup_ino}",
    ),
];

pub(super) const SINGLE_INODE: Texts = &[
    (
        "3.1",
        "bdi {bdi}: ino={ino} state={state} dirtied_when={dirtied_when} age={age} index={index} \
         to_write={to_write} wrote={wrote}",
    ),
    (
        "4.16",
        "bdi {bdi}: ino={ino} state={state} dirtied_when={dirtied_when} age={age} index={index} \
         to_write={to_write} wrote={wrote} cgroup_ino={cgroup_ino}",
    ),
];

pub(super) const SB_INODES_REQUEUE: Texts = &[
    (
        "3.8",
        "bdi {bdi}: ino={ino} state={state} dirtied_when={dirtied_when} age={age}",
    ),
    (
        "4.16",
        "bdi {bdi}: ino={ino} state={state} dirtied_when={dirtied_when} age={age} \
         cgroup_ino={cgroup_ino}",
    ),
];

pub(super) const DIRTY_INODE: Texts = &[
    ("3.9", "bdi {bdi}: ino={ino} flags={inode_flags}"),
    (
        "4.1",
        "bdi {bdi}: ino={ino} state={state} flags={inode_flags}",
    ),
];

pub(super) const WRITE_INODE: Texts = &[
    ("3.9", "bdi {bdi}: ino={ino} sync_mode={sync_mode}"),
    (
        "4.16",
        "bdi {bdi}: ino={ino} sync_mode={sync_mode} cgroup_ino={cgroup_ino}",
    ),
];

pub(super) const COMPACTION_ISOLATE: Texts = &[
    ("2.6.38", "nr_scanned={nr_scanned} nr_taken={nr_taken}"),
    (
        "4.1",
        "range=(0x{start_pfn:x} ~ 0x{end_pfn:x}) nr_scanned={nr_scanned} nr_taken={nr_taken}",
    ),
];

pub(super) const COMPACTION_BEGIN: Texts = &[
    (
        "3.14",
        "zone_start={zone_start} migrate_start={migrate_pfn} free_start={free_pfn} \
         zone_end={zone_end}",
    ),
    (
        "4.1",
        "zone_start=0x{zone_start:x} migrate_pfn=0x{migrate_pfn:x} free_pfn=0x{free_pfn:x} \
         zone_end=0x{zone_end:x}, mode={mode}",
    ),
];

pub(super) const COMPACTION_END: Texts = &[
    ("3.14", "status={status}"),
    (
        "4.1",
        "zone_start=0x{zone_start:x} migrate_pfn=0x{migrate_pfn:x} free_pfn=0x{free_pfn:x} \
         zone_end=0x{zone_end:x}, mode={mode} status={status}",
    ),
];

pub(super) const COMPACTION_RESULT: Texts =
    &[("4.1", "node={nid} zone={zone:8} order={order} ret={ret}")];

pub(super) const COMPACTION_DEFER: Texts = &[(
    "4.1",
    "node={nid} zone={zone:8} order={order} order_failed={order_failed} consider={consider} \
     limit={defer_limit}",
)];

pub(super) const KCOMPACTD: Texts = &[(
    "4.6",
    "nid={nid} order={order} classzone_idx={highest_zone:8}",
)];

pub(super) const MIGRATE_PAGES: Texts = &[
    (
        "3.8",
        "nr_succeeded={nr_succeeded} nr_failed={nr_failed} mode={mode} reason={reason}",
    ),
    (
        "5.9",
        "nr_succeeded={nr_succeeded} nr_failed={nr_failed} nr_thp_succeeded={nr_thp_succeeded} \
         nr_thp_failed={nr_thp_failed} nr_thp_split={nr_thp_split} mode={mode} reason={reason}",
    ),
    (
        "6.7",
        "nr_succeeded={nr_succeeded} nr_failed={nr_failed} nr_thp_succeeded={nr_thp_succeeded} \
         nr_thp_failed={nr_thp_failed} nr_thp_split={nr_thp_split} nr_split={nr_split} \
         mode={mode} reason={reason}",
    ),
];

pub(super) const MM_PAGE_ALLOC: Texts = &[
    (
        "2.6.36",
        "page={page} pfn={pfn} order={order} migratetype={migratetype} gfp_flags={gfp_flags}",
    ),
    (
        "5.17",
        "page={page} pfn=0x{pfn:x} order={order} migratetype={migratetype} gfp_flags={gfp_flags}",
    ),
];

pub(super) const MM_PAGE_ALLOC_ZONE_LOCKED: Texts = &[
    (
        "2.6.36",
        "page={page} pfn={pfn} order={order} migratetype={migratetype} \
         percpu_refill={percpu_refill}",
    ),
    (
        "5.17",
        "page={page} pfn=0x{pfn:x} order={order} migratetype={migratetype} \
         percpu_refill={percpu_refill}",
    ),
];

pub(super) const MM_PAGE_ALLOC_EXTFRAG: Texts = &[
    (
        "2.6.36",
        "page={page} pfn={pfn} alloc_order={alloc_order} fallback_order={fallback_order} \
         pageblock_order={pageblock_order} alloc_migratetype={alloc_migratetype} \
         fallback_migratetype={fallback_migratetype} fragmenting={fragmenting} \
         change_ownership={change_ownership}",
    ),
    (
        "5.17",
        "page={page} pfn=0x{pfn:x} alloc_order={alloc_order} fallback_order={fallback_order} \
         pageblock_order={pageblock_order} alloc_migratetype={alloc_migratetype} \
         fallback_migratetype={fallback_migratetype} fragmenting={fragmenting} \
         change_ownership={change_ownership}",
    ),
];

pub(super) const MARK_VICTIM: Texts = &[
    ("4.14", "pid={pid}"),
    (
        "6.8",
        "pid={pid} comm={comm} total-vm={total_vm}kB anon-rss={anon_rss}kB \
         file-rss:{file_rss}kB shmem-rss:{shmem_rss}kB uid={uid} pgtables={pgtables}kB \
         oom_score_adj={oom_score_adj}",
    ),
];

pub(super) const KHUGEPAGED_SCAN_PMD: Texts = &[
    (
        "4.5",
        "mm={mm}, scan_pfn=0x{scan_pfn:x}, writable={writable}, referenced={referenced}, \
         none_or_zero={none_or_zero}, status={status}, unmapped={unmapped}",
    ),
    (
        "6.18",
        "mm={mm}, scan_pfn=0x{scan_pfn:x}, referenced={referenced}, \
         none_or_zero={none_or_zero}, status={status}, unmapped={unmapped}",
    ),
];

pub(super) const COLLAPSE_ISOLATE: Texts = &[
    (
        "4.5",
        "scan_pfn=0x{scan_pfn:x}, none_or_zero={none_or_zero}, referenced={referenced}, \
         writable={writable}, status={status}",
    ),
    (
        "6.18",
        "scan_pfn=0x{scan_pfn:x}, none_or_zero={none_or_zero}, referenced={referenced}, \
         status={status}",
    ),
    (
        "7.2",
        "scan_pfn=0x{scan_pfn:x}, none_or_zero={none_or_zero}, referenced={referenced}, \
         status={status}, order={order}",
    ),
];

pub(super) const PAGE_CACHE: Texts = &[
    (
        "3.11",
        "dev {dev} ino {ino:x} page={page} pfn={pfn} ofs={ofs}",
    ),
    ("5.17", "dev {dev} ino {ino:x} pfn=0x{pfn:x} ofs={ofs}"),
    (
        "6.9",
        "dev {dev} ino {ino:x} pfn=0x{pfn:x} ofs={ofs} order={order}",
    ),
];
