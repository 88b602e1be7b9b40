//! What follows from the declarations, computed once: slots, templates, lookups by name.

use super::field::Field;
use super::kind::Kind;
use super::template::Template;
use crate::release::Release;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Most fields that one tracepoint has, over all eras.
pub const SLOTS: usize = 20;

/// A field that the tracepoint does not have.
pub(super) const NO_SLOT: u8 = u8::MAX;

/// One tracepoint, worked out.
#[derive(Debug)]
pub(super) struct KindSchema {
    /// Fields by slot.
    pub(super) fields: Vec<Field>,
    /// Slot by field, [`NO_SLOT`] where it has none.
    pub(super) slot_of: Vec<u8>,
    /// Texts, oldest first.
    pub(super) templates: Vec<Template>,
}

#[derive(Debug)]
pub(super) struct Schema {
    pub(super) kinds: Vec<KindSchema>,
    by_name: BTreeMap<&'static str, Kind>,
}

impl Schema {
    fn new() -> Schema {
        let kinds = Kind::ALL
            .iter()
            .map(|kind| KindSchema::new(*kind))
            .collect();
        Schema {
            kinds,
            by_name: Kind::ALL.iter().map(|kind| (kind.name(), *kind)).collect(),
        }
    }

    pub(super) fn named(&self, name: &str) -> Option<Kind> {
        self.by_name.get(name).copied()
    }
}

impl KindSchema {
    fn new(kind: Kind) -> KindSchema {
        let spec = kind.spec();
        let texts = spec.texts.iter();
        let mut templates: Vec<Template> = texts
            .map(|(since, text)| Template::new(since, text))
            .collect();
        let mut fields = Vec::new();
        // The newest text gives the order; what only older ones have comes behind.
        for template in templates.iter().rev() {
            for field in template.fields() {
                if !fields.contains(&field) {
                    fields.push(field);
                }
            }
        }
        fields.extend(
            spec.unprinted
                .iter()
                .filter(|f| !fields.contains(f))
                .copied()
                .collect::<Vec<_>>(),
        );
        assert!(
            fields.len() <= SLOTS,
            "{}: more than {SLOTS} fields",
            spec.name
        );
        let mut slot_of = vec![NO_SLOT; Field::ALL.len()];
        for (slot, field) in fields.iter().enumerate() {
            slot_of[*field as usize] = slot as u8;
        }
        templates.iter_mut().for_each(|t| t.place(&slot_of));
        KindSchema {
            fields,
            slot_of,
            templates,
        }
    }

    /// The text of a release: the last one that is not newer; the first for kernels before the event.
    pub(super) fn template(&self, release: Release) -> &Template {
        let not_newer = self.templates.iter().rfind(|t| t.since <= release);
        not_newer.unwrap_or(&self.templates[0])
    }
}

/// The declarations, worked out.
#[inline]
pub(super) fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(Schema::new)
}
