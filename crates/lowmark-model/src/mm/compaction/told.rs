//! What memory decides about compaction, on its way to the trace.
//!
//! Whether compaction can help, is put off or is done is decided by [`Mm`](crate::mm::Mm), which has neither a clock nor a
//! trace. What it has decided waits here until the task that asked records another event, spends time or sleeps
//! (`World::tell`): no time passes between.

use super::events::{result_name, success_name};
use crate::kernel::Blocks;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::types::{CompactResult, Pfn};
use lowmark_record::{Field, Kind};
use std::cell::RefCell;

/// A value of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    Number(u64),
    Text(&'static str),
}

/// What events of a zone begin with.
fn of_zone(zone: &Zone, order: u64) -> Vec<(Field, Value)> {
    let name = super::events::zone_name(zone.kind);
    vec![
        (Field::Nid, Value::Number(zone.node.into())),
        (Field::Zone, Value::Text(name)),
        (Field::Order, Value::Number(order)),
    ]
}

/// An event without its time.
pub(crate) type Telling = (Kind, Vec<(Field, Value)>);

/// Events that wait to be recorded.
#[derive(Debug, Default)]
pub(crate) struct Told {
    on: bool,
    waiting: RefCell<Vec<Telling>>,
}

impl Told {
    /// What is decided is of interest from now on.
    pub(crate) fn listen(&mut self) {
        self.on = true;
    }

    /// All that waits, the oldest first.
    pub(crate) fn take(&self) -> Vec<Telling> {
        self.waiting.take()
    }

    fn tell(&self, kind: Kind, values: impl FnOnce() -> Vec<(Field, Value)>) {
        if self.on {
            self.waiting.borrow_mut().push((kind, values()));
        }
    }

    /// `mm_compaction_suitable`, `mm_compaction_finished`: what a look at a zone has come to; `order` is −1 where no block
    /// is wanted.
    pub(super) fn result(&self, kind: Kind, zone: &Zone, order: i64, result: &'static str) {
        self.tell(kind, || {
            let mut fields = of_zone(zone, order as u64);
            fields.push((Field::Ret, Value::Text(result)));
            fields
        });
    }

    /// `mm_compaction_deferred`, `mm_compaction_defer_compaction`, `mm_compaction_defer_reset`: compaction of a zone is put
    /// off, is going to be, or is no longer.
    pub(super) fn deferral(&self, kind: Kind, zone: &Zone, order: usize) {
        let known = &zone.compaction;
        self.tell(kind, || {
            let mut fields = of_zone(zone, order as u64);
            fields.extend([
                (Field::OrderFailed, Value::Number(known.order_failed as u64)),
                (Field::Consider, Value::Number(known.considered.into())),
                (Field::DeferLimit, Value::Number(1 << known.defer_shift)),
            ]);
            fields
        });
    }

    /// `mm_compaction_isolate_freepages`, `mm_compaction_fast_isolate_freepages`: free pages of a range have been isolated.
    pub(super) fn freepages(&self, kind: Kind, range: [Pfn; 2], scanned: u64, taken: u64) {
        self.tell(kind, || {
            vec![
                (Field::StartPfn, Value::Number(range[0].into())),
                (Field::EndPfn, Value::Number(range[1].into())),
                (Field::NrScanned, Value::Number(scanned)),
                (Field::NrTaken, Value::Number(taken)),
            ]
        });
    }
}

/// What `__compact_finished` says of a zone: where it goes on, that there is no block yet.
pub(super) fn finished_name(result: CompactResult, looked: bool, rules: &Blocks) -> &'static str {
    match result {
        CompactResult::Continue if looked => "no_suitable_page",
        result => result_name(result, success_name(rules)),
    }
}
