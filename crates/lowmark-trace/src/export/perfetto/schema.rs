//! The part of Perfetto's trace format that lowmark writes.
//!
//! Messages and numbers of the published schema (`protos/perfetto/trace/` of google/perfetto); what is not
//! here is neither written nor read. Every message keeps its published name.

/// A trace: packets one after the other.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Trace {
    /// The packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// A packet.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TracePacket {
    /// Time of the packet, ns of the boot clock; bundles have a time in each event instead.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Who wrote it; interned texts are the sequence's.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Texts that later packets name by number.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// [`SEQ_INCREMENTAL_STATE_CLEARED`], [`SEQ_NEEDS_INCREMENTAL_STATE`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// What it is about.
    #[prost(oneof = "Data", tags = "1, 6, 11, 45, 60")]
    pub data: Option<Data>,
}

/// The sequence begins here.
pub const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
/// The packet names interned texts.
pub const SEQ_NEEDS_INCREMENTAL_STATE: u32 = 2;

/// What a packet is about.
#[derive(Clone, PartialEq, ::prost::Oneof)]
pub enum Data {
    /// Events of one CPU.
    #[prost(message, tag = "1")]
    FtraceEvents(FtraceEventBundle),
    /// Clocks at one moment.
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    /// A slice's begin or end, or a counter's value.
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    /// Where the trace is from.
    #[prost(message, tag = "45")]
    SystemInfo(SystemInfo),
    /// A track.
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

/// Where the trace is from.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SystemInfo {
    /// What wrote it, with its version.
    #[prost(string, optional, tag = "4")]
    pub tracing_service_version: Option<String>,
}

/// Clocks at one moment.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ClockSnapshot {
    /// Clocks.
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    /// The clock that all times are shown in.
    #[prost(uint32, optional, tag = "2")]
    pub primary_trace_clock: Option<u32>,
}

/// One clock.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Clock {
    /// Which.
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    /// What it showed, ns.
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// `BUILTIN_CLOCK_MONOTONIC`.
pub const CLOCK_MONOTONIC: u32 = 3;
/// `BUILTIN_CLOCK_BOOTTIME`.
pub const CLOCK_BOOTTIME: u32 = 6;

/// Texts that packets name by number.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct InternedData {
    /// Functions of the kernel.
    #[prost(message, repeated, tag = "26")]
    pub kernel_symbols: Vec<InternedString>,
}

/// A text and its number.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct InternedString {
    /// Number, from 1.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// Text.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub str: Option<Vec<u8>>,
}

/// Events of one CPU in order of time.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FtraceEventBundle {
    /// CPU.
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    /// Events.
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
}

/// An event.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FtraceEvent {
    /// Time, ns.
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    /// Thread.
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    /// The tracepoint and its fields.
    #[prost(oneof = "FtraceData", tags = "46, 47, 48, 49, 327, 443, 444, 607, 608")]
    pub event: Option<FtraceData>,
}

/// A tracepoint and its fields.
#[derive(Clone, PartialEq, ::prost::Oneof)]
pub enum FtraceData {
    /// `mm_vmscan_direct_reclaim_begin`
    #[prost(message, tag = "46")]
    DirectReclaimBegin(ReclaimBegin),
    /// `mm_vmscan_direct_reclaim_end`
    #[prost(message, tag = "47")]
    DirectReclaimEnd(ReclaimEnd),
    /// `mm_vmscan_kswapd_wake`
    #[prost(message, tag = "48")]
    KswapdWake(KswapdWake),
    /// `mm_vmscan_kswapd_sleep`
    #[prost(message, tag = "49")]
    KswapdSleep(KswapdSleep),
    /// Any other.
    #[prost(message, tag = "327")]
    Generic(GenericFtraceEvent),
    /// `mm_shrink_slab_start`
    #[prost(message, tag = "443")]
    ShrinkSlabStart(ShrinkSlabStart),
    /// `mm_shrink_slab_end`
    #[prost(message, tag = "444")]
    ShrinkSlabEnd(ShrinkSlabEnd),
    /// `mm_vmscan_memcg_reclaim_begin`
    #[prost(message, tag = "607")]
    MemcgReclaimBegin(ReclaimBegin),
    /// `mm_vmscan_memcg_reclaim_end`
    #[prost(message, tag = "608")]
    MemcgReclaimEnd(ReclaimEnd),
}

/// `MmVmscanDirectReclaimBeginFtraceEvent` and `MmVmscanMemcgReclaimBeginFtraceEvent`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReclaimBegin {
    /// Allocation order.
    #[prost(int32, optional, tag = "1")]
    pub order: Option<i32>,
    /// Whether dirty pages may be written.
    #[prost(int32, optional, tag = "2")]
    pub may_writepage: Option<i32>,
    /// Allocation flags in the bits of 6.18. The one message has 32 bits for it, the other 64: all that are
    /// set are in the lower ones, and so the bytes are the same.
    #[prost(uint64, optional, tag = "3")]
    pub gfp_flags: Option<u64>,
}

/// `MmVmscanDirectReclaimEndFtraceEvent` and `MmVmscanMemcgReclaimEndFtraceEvent`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReclaimEnd {
    /// Pages freed.
    #[prost(uint64, optional, tag = "1")]
    pub nr_reclaimed: Option<u64>,
}

/// `MmVmscanKswapdWakeFtraceEvent`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct KswapdWake {
    /// Node.
    #[prost(int32, optional, tag = "1")]
    pub nid: Option<i32>,
    /// Allocation order.
    #[prost(int32, optional, tag = "2")]
    pub order: Option<i32>,
    /// Zone index.
    #[prost(int32, optional, tag = "3")]
    pub zid: Option<i32>,
}

/// `MmVmscanKswapdSleepFtraceEvent`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct KswapdSleep {
    /// Node.
    #[prost(int32, optional, tag = "1")]
    pub nid: Option<i32>,
}

/// `MmShrinkSlabStartFtraceEvent`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ShrinkSlabStart {
    /// Objects in the cache.
    #[prost(uint64, optional, tag = "1")]
    pub cache_items: Option<u64>,
    /// Share of this call.
    #[prost(uint64, optional, tag = "2")]
    pub delta: Option<u64>,
    /// Allocation flags in the bits of 6.18.
    #[prost(uint32, optional, tag = "3")]
    pub gfp_flags: Option<u32>,
    /// LRU pages there were.
    #[prost(uint64, optional, tag = "4")]
    pub lru_pgs: Option<u64>,
    /// Objects left over from earlier calls.
    #[prost(int64, optional, tag = "5")]
    pub nr_objects_to_shrink: Option<i64>,
    /// LRU pages scanned meanwhile.
    #[prost(uint64, optional, tag = "6")]
    pub pgs_scanned: Option<u64>,
    /// `struct shrinker`.
    #[prost(uint64, optional, tag = "7")]
    pub shr: Option<u64>,
    /// Function that scans, by its number among the interned kernel symbols.
    #[prost(uint64, optional, tag = "8")]
    pub shrink: Option<u64>,
    /// Objects to scan.
    #[prost(uint64, optional, tag = "9")]
    pub total_scan: Option<u64>,
    /// Node.
    #[prost(int32, optional, tag = "10")]
    pub nid: Option<i32>,
    /// Scan priority.
    #[prost(int32, optional, tag = "11")]
    pub priority: Option<i32>,
}

/// `MmShrinkSlabEndFtraceEvent`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ShrinkSlabEnd {
    /// Objects left after.
    #[prost(int64, optional, tag = "1")]
    pub new_scan: Option<i64>,
    /// What the shrinker returned last.
    #[prost(int32, optional, tag = "2")]
    pub retval: Option<i32>,
    /// `struct shrinker`.
    #[prost(uint64, optional, tag = "3")]
    pub shr: Option<u64>,
    /// Function that scans, by its number among the interned kernel symbols.
    #[prost(uint64, optional, tag = "4")]
    pub shrink: Option<u64>,
    /// Objects scanned.
    #[prost(int64, optional, tag = "5")]
    pub total_scan: Option<i64>,
    /// Objects left before.
    #[prost(int64, optional, tag = "6")]
    pub unused_scan: Option<i64>,
    /// Node.
    #[prost(int32, optional, tag = "7")]
    pub nid: Option<i32>,
}

/// A tracepoint that the schema has no message for.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GenericFtraceEvent {
    /// Its name.
    #[prost(string, optional, tag = "1")]
    pub event_name: Option<String>,
    /// Its fields.
    #[prost(message, repeated, tag = "2")]
    pub field: Vec<GenericField>,
}

/// `GenericFtraceEvent.Field`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GenericField {
    /// Name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Value.
    #[prost(oneof = "GenericValue", tags = "3, 4, 5")]
    pub value: Option<GenericValue>,
}

/// Value of a [`GenericField`].
#[derive(Clone, PartialEq, ::prost::Oneof)]
pub enum GenericValue {
    /// A text.
    #[prost(string, tag = "3")]
    StrValue(String),
    /// A signed number.
    #[prost(int64, tag = "4")]
    IntValue(i64),
    /// An unsigned number.
    #[prost(uint64, tag = "5")]
    UintValue(u64),
}

/// A track.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TrackDescriptor {
    /// Number of the track, unique in the trace.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Name, where it is not that of its thread or process.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// It stands for a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// It stands for a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// The track that it belongs to.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// It is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

/// A process.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProcessDescriptor {
    /// Process id.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A thread.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ThreadDescriptor {
    /// Process id.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Thread id.
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    /// Name.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// A counter.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CounterDescriptor {
    /// `UNIT_COUNT` is 2.
    #[prost(int32, optional, tag = "3")]
    pub unit: Option<i32>,
    /// What is counted.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// A slice's begin or end, or a counter's value.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TrackEvent {
    /// What else is known.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// [`TYPE_SLICE_BEGIN`], [`TYPE_SLICE_END`], [`TYPE_INSTANT`] or [`TYPE_COUNTER`].
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Categories.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// Name of the slice.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// Value of the counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
}

/// A slice begins.
pub const TYPE_SLICE_BEGIN: i32 = 1;
/// The innermost slice of the track ends.
pub const TYPE_SLICE_END: i32 = 2;
/// Something without a length.
pub const TYPE_INSTANT: i32 = 3;
/// A counter has a value.
pub const TYPE_COUNTER: i32 = 4;

/// An argument of a slice.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DebugAnnotation {
    /// Name.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// Value.
    #[prost(oneof = "AnnotationValue", tags = "3, 4, 6")]
    pub value: Option<AnnotationValue>,
}

/// Value of a [`DebugAnnotation`].
#[derive(Clone, PartialEq, ::prost::Oneof)]
pub enum AnnotationValue {
    /// An unsigned number.
    #[prost(uint64, tag = "3")]
    UintValue(u64),
    /// A signed number.
    #[prost(int64, tag = "4")]
    IntValue(i64),
    /// A text.
    #[prost(string, tag = "6")]
    StringValue(String),
}
