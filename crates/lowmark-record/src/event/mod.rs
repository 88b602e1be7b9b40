//! Tracepoint events.
//!
//! Fields ([`field`]) and tracepoints ([`kind`]) are declared once. From the declarations follow the slots
//! in which an event keeps its values, how each era's text is read and written, JSON, and the tables of
//! the documentation.
//!
//! ```text
//! field.rs kind.rs texts.rs   the declarations
//! schema.rs template.rs       what follows from them
//! literal.rs memo.rs          texts that are compared fast
//! value.rs gfp.rs names.rs    values as text
//! log.rs json.rs              events kept, and as JSON
//! ```

mod documentation;
pub mod field;
pub mod gfp;
mod json;
pub mod kind;
mod literal;
mod log;
mod memo;
mod names;
mod schema;
mod template;
mod texts;
mod value;

use crate::release::Release;
pub use documentation::documentation;
pub use field::{Field, FieldSpec, Transform, ValueType};
pub use kind::{EventSpec, Kind};
pub use log::EventLog;
pub use names::{NameId, Names};
pub use schema::SLOTS;
use schema::{NO_SLOT, schema};
pub use template::Spelling;
pub use value::{
    RECLAIM_WB_ANON, RECLAIM_WB_ASYNC, RECLAIM_WB_FILE, RECLAIM_WB_MIXED, RECLAIM_WB_SYNC,
    ValueNames,
};

/// CPU of an event of which it is not known.
pub const NO_CPU: u32 = u32::MAX;

/// The flag columns of ftrace text, `d..1.`, four or five characters as they stand there; zeros where the
/// trace has none. A recording does not keep them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns([u8; 5]);

impl Columns {
    /// The columns of a text, if it has at most five characters.
    pub fn of(text: &[u8]) -> Columns {
        let mut columns = [0; 5];
        if let Some(place) = columns.get_mut(..text.len()) {
            place.copy_from_slice(text);
        }
        Columns(columns)
    }

    /// The characters.
    pub fn text(&self) -> &[u8] {
        let end = self.0.iter().position(|&b| b == 0);
        &self.0[..end.unwrap_or(self.0.len())]
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time, ns: since the run began; of a trace, by the clock of the trace.
    pub time_ns: u64,
    /// CPU on which it happened, [`NO_CPU`] if that is not known.
    pub cpu: u32,
    /// Index into the recording's tasks.
    pub task: u32,
    /// Which tracepoint.
    pub kind: Kind,
    /// Interrupts, preemption and so on, as text shows them.
    pub columns: Columns,
    /// Slots that hold a value.
    present: u32,
    /// Values by slot; 0 where none is present, so that equal events are equal.
    values: [u64; SLOTS],
}

impl Event {
    /// An event without values.
    #[inline]
    pub fn new(kind: Kind, time_ns: u64, cpu: u32, task: u32) -> Event {
        Event {
            time_ns,
            cpu,
            task,
            kind,
            columns: Columns::default(),
            present: 0,
            values: [0; SLOTS],
        }
    }

    /// The value of a field; none if the event has no such field, or not in its era.
    #[inline]
    pub fn get(&self, field: Field) -> Option<u64> {
        let slot = schema().kinds[self.kind as usize].slot_of[field as usize];
        (slot != NO_SLOT && self.present >> slot & 1 != 0).then(|| self.values[usize::from(slot)])
    }

    /// The same as a signed number.
    #[inline]
    pub fn signed(&self, field: Field) -> Option<i64> {
        self.get(field).map(u64::cast_signed)
    }

    /// Sets a field; one that the tracepoint doesn't have is left out.
    #[inline]
    pub fn set(&mut self, field: Field, value: u64) {
        let slot = schema().kinds[self.kind as usize].slot_of[field as usize];
        if slot != NO_SLOT {
            self.present |= 1 << slot;
            self.values[usize::from(slot)] = value;
        }
    }

    /// Sets a slot that the schema gave.
    #[inline]
    fn set_slot(&mut self, slot: u8, value: u64) {
        let slot = usize::from(slot) % SLOTS;
        self.present |= 1 << slot;
        self.values[slot] = value;
    }

    /// The same event with values.
    pub fn with(mut self, values: &[(Field, u64)]) -> Event {
        for &(field, value) in values {
            self.set(field, value);
        }
        self
    }

    /// Fields that have a value, in the order of the newest text.
    pub fn fields(&self) -> impl Iterator<Item = (Field, u64)> {
        let fields = schema().kinds[self.kind as usize].fields.iter();
        fields
            .zip(self.values)
            .enumerate()
            .filter(|(slot, _)| self.present >> slot & 1 != 0)
            .map(|(_, (field, value))| (*field, value))
    }

    /// Makes the event one of an era: fields whose slot is not in `mask` ([`Kind::mask_in`]) lose their
    /// value, those in it that have none are 0, as a kernel would print them. Texts stay away.
    pub fn keep(&mut self, mask: u32) {
        self.present &= mask;
        for (slot, field) in self.kind.fields().iter().enumerate() {
            if mask >> slot & 1 != 0 && field.spec().value != ValueType::Text {
                self.present |= 1 << slot;
            }
        }
        for (slot, value) in self.values.iter_mut().enumerate() {
            if mask >> slot & 1 == 0 {
                *value = 0;
            }
        }
    }

    /// Removes every value.
    #[inline]
    pub fn clear(&mut self) {
        if self.present != 0 {
            self.present = 0;
            self.values = [0; SLOTS];
        }
    }

    /// Writes the event's text as a kernel of `release` prints it.
    pub fn render(&self, names: &Names, release: Release, out: &mut Vec<u8>) {
        let schema = &schema().kinds[self.kind as usize];
        schema.template(release).render(self, names, release, out);
    }
}

impl Kind {
    /// The tracepoint of this name.
    pub fn named(name: &str) -> Option<Kind> {
        schema().named(name)
    }

    /// Every field that it has in any era, in the order of the newest text.
    pub fn fields(self) -> &'static [Field] {
        &schema().kinds[self as usize].fields
    }

    /// The slots that the text of a kernel of `release` has; none if it does not have the tracepoint.
    pub fn mask_in(self, release: Release) -> Option<u32> {
        let schema = &schema().kinds[self as usize];
        let printed = schema.template(release).fields();
        let mask = printed.fold(0, |mask, f| mask | 1 << schema.slot_of[f as usize]);
        self.exists_in(release).then_some(mask)
    }

    /// Whether kernels of `release` have it.
    pub fn exists_in(self, release: Release) -> bool {
        let until = self.spec().until.and_then(|until| until.parse().ok());
        schema().kinds[self as usize].templates[0].since <= release
            && until.is_none_or(|until: Release| release < until)
    }
}

/// A tracepoint's text in one era: fixed texts and fields in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventText {
    /// Each field with the fixed text before it.
    pub pieces: Vec<(&'static str, Field, Spelling)>,
    /// The fixed text behind the last field.
    pub after: &'static str,
}

impl Kind {
    /// Its text in kernels of `release`.
    pub fn text_in(self, release: Release) -> EventText {
        let template = schema().kinds[self as usize].template(release);
        EventText {
            pieces: template.pieces().collect(),
            after: template.after(),
        }
    }
}

/// How well a text was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Understood {
    /// It is the text of some era, to the letter.
    Exactly,
    /// Fields were found by their labels; it may hold others.
    ByLabels,
    /// No field was found.
    Not,
}

/// Longest text that is remembered as a whole, bytes.
const READ_MAX: usize = 512;

/// Reads the texts of events. It remembers which era's text each tracepoint had last and tries that first, and
/// the text itself, as counts of reclaim repeat from batch to batch.
#[derive(Debug, Clone)]
pub struct TextParser {
    last: Vec<usize>,
    read: Vec<Read>,
    memo: memo::Memo,
}

/// The text of a tracepoint that was read last, and its values.
#[derive(Debug, Clone, Default)]
struct Read {
    /// Empty: none, or one that is not expected to come again.
    text: Vec<u8>,
    present: u32,
    values: [u64; SLOTS],
}

impl Default for TextParser {
    fn default() -> Self {
        let kinds = schema().kinds.iter();
        TextParser {
            last: kinds.map(|k| k.templates.len() - 1).collect(),
            read: vec![Read::default(); Kind::ALL.len()],
            memo: memo::Memo::default(),
        }
    }
}

impl TextParser {
    /// Fills the values of `event`, whose kind is set, from its text.
    #[inline]
    pub fn parse(&mut self, text: &[u8], event: &mut Event, names: &mut Names) -> Understood {
        let schema = &schema().kinds[event.kind as usize];
        let read = &mut self.read[event.kind as usize];
        if !text.is_empty() && read.text == text {
            (event.present, event.values) = (read.present, read.values);
            return Understood::Exactly;
        }
        event.clear();
        let template = &schema.templates[self.last[event.kind as usize]];
        if !template.parse(text, event, names, &mut self.memo) {
            return self.parse_other(text, event, names);
        }
        read.text.clear();
        if template.repeats() && text.len() <= READ_MAX {
            read.text.extend_from_slice(text);
            (read.present, read.values) = (event.present, event.values);
        }
        Understood::Exactly
    }

    /// A text that is not of the era of the last one.
    #[inline(never)]
    fn parse_other(&mut self, text: &[u8], event: &mut Event, names: &mut Names) -> Understood {
        let schema = &schema().kinds[event.kind as usize];
        let memo = &mut self.memo;
        for (index, template) in schema.templates.iter().enumerate().rev() {
            event.clear();
            if template.parse(text, event, names, memo) {
                self.last[event.kind as usize] = index;
                return Understood::Exactly;
            }
        }
        event.clear();
        let templates = schema.templates.iter().rev();
        let found: usize = templates
            .map(|template| template.parse_labels(text, event, names, memo))
            .sum();
        if found > 0 {
            Understood::ByLabels
        } else {
            Understood::Not
        }
    }
}

#[cfg(test)]
mod tests;
