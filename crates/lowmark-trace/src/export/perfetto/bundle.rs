//! Events as messages of bundles: the tracepoints that the schema knows as its own messages, all others as
//! generic ones with every field.
//!
//! What a message has no member for is lost: the zone of `direct_reclaim_begin` from 4.8 to 5.1, process and
//! cgroup of 7.1.

use super::schema::{
    FtraceData, FtraceEvent, GenericField, GenericFtraceEvent, GenericValue, InternedString,
    KswapdSleep, KswapdWake, ReclaimBegin, ReclaimEnd, ShrinkSlabEnd, ShrinkSlabStart,
};
use crate::export::gfp_bits;
use crate::export::row::{columns, render};
use lowmark_record::event::ValueType;
use lowmark_record::{Event, Field, Kind, Names};
use std::collections::HashMap;

/// Functions of the kernel, which messages name by number.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    iids: HashMap<u64, u64>,
    /// Those that no packet has told of yet.
    pub(super) new: Vec<InternedString>,
}

impl Symbols {
    /// The number of a text of the events, without the offset: `super_cache_scan+0x0/0x1f0`.
    fn iid(&mut self, names: &Names, id: u64) -> u64 {
        let next = self.iids.len() as u64 + 1;
        *self.iids.entry(id).or_insert_with(|| {
            let text = names.text(id);
            let symbol = text.split_once('+').map_or(text, |(symbol, _)| symbol);
            self.new.push(InternedString {
                iid: Some(next),
                str: Some(symbol.as_bytes().to_vec()),
            });
            next
        })
    }
}

/// An event as a message; whether it names a symbol.
pub(super) fn message(
    event: &Event,
    pid: Option<i32>,
    names: &Names,
    symbols: &mut Symbols,
) -> FtraceEvent {
    FtraceEvent {
        timestamp: Some(event.time_ns),
        pid: pid.map(i32::cast_unsigned),
        event: Some(data(event, names, symbols)),
    }
}

fn data(event: &Event, names: &Names, symbols: &mut Symbols) -> FtraceData {
    let wide = |field| event.signed(field);
    let unsigned = |field| event.get(field);
    // The kernel's own are `int`.
    let int = |field| event.signed(field).map(|value| value as i32);
    let gfp = event.get(Field::GfpFlags).map(gfp_bits);
    let begin = || ReclaimBegin {
        order: int(Field::Order),
        may_writepage: int(Field::MayWritepage),
        gfp_flags: gfp,
    };
    let end = || ReclaimEnd {
        nr_reclaimed: unsigned(Field::NrReclaimed),
    };
    let mut shrink = || {
        let shrinker = event.get(Field::Shrinker);
        shrinker.map(|id| symbols.iid(names, id))
    };
    match event.kind {
        Kind::DirectReclaimBegin => FtraceData::DirectReclaimBegin(begin()),
        Kind::DirectReclaimEnd => FtraceData::DirectReclaimEnd(end()),
        Kind::MemcgReclaimBegin => FtraceData::MemcgReclaimBegin(begin()),
        Kind::MemcgReclaimEnd => FtraceData::MemcgReclaimEnd(end()),
        Kind::KswapdWake => FtraceData::KswapdWake(KswapdWake {
            nid: int(Field::Nid),
            order: int(Field::Order),
            zid: int(Field::Zid),
        }),
        Kind::KswapdSleep => FtraceData::KswapdSleep(KswapdSleep {
            nid: int(Field::Nid),
        }),
        Kind::ShrinkSlabStart => FtraceData::ShrinkSlabStart(ShrinkSlabStart {
            cache_items: unsigned(Field::CacheItems),
            delta: unsigned(Field::Delta),
            gfp_flags: gfp.map(|bits| bits as u32),
            lru_pgs: unsigned(Field::LruPgs),
            nr_objects_to_shrink: wide(Field::NrObjectsToShrink),
            pgs_scanned: unsigned(Field::PgsScanned),
            shr: unsigned(Field::Shr),
            shrink: shrink(),
            total_scan: unsigned(Field::TotalScan),
            nid: int(Field::Nid),
            priority: int(Field::Priority),
        }),
        Kind::ShrinkSlabEnd => FtraceData::ShrinkSlabEnd(ShrinkSlabEnd {
            new_scan: wide(Field::NewScan),
            retval: int(Field::Retval),
            shr: unsigned(Field::Shr),
            shrink: shrink(),
            total_scan: wide(Field::TotalScan),
            unused_scan: wide(Field::UnusedScan),
            nid: int(Field::Nid),
        }),
        _ => FtraceData::Generic(generic(event, names)),
    }
}

fn generic(event: &Event, names: &Names) -> GenericFtraceEvent {
    let fields = columns(event.kind).filter_map(|(name, field)| {
        let value = event.get(field)?;
        let value = match field.spec().value {
            ValueType::Signed => GenericValue::IntValue(value.cast_signed()),
            ValueType::Unsigned | ValueType::Pointer => GenericValue::UintValue(value),
            kind => GenericValue::StrValue(text(kind, value, names)),
        };
        Some(GenericField {
            name: Some(name.to_owned()),
            value: Some(value),
        })
    });
    GenericFtraceEvent {
        event_name: Some(event.kind.name().to_owned()),
        field: fields.collect(),
    }
}

/// A value as text.
pub(super) fn text(kind: ValueType, value: u64, names: &Names) -> String {
    let mut text = Vec::new();
    render(kind, value, names, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
