//! Binary records to events, by the formats that the file itself carries.
//!
//! 1. For each event id the format's fields are matched with the declared ones once, by name and aliases.
//! 2. Numbers are read as they are. Sets of allocation flags have other bits in every kernel: the format's
//!    own table gives their names. Values that the kernel prints by name get it from the format's table.
//! 3. Where a table has names of enumerators that the format does not give the value of, the declared
//!    numbers are used (`VMSCAN_THROTTLE_*`), or the number stays a number.

use crate::format::{Field as FormatField, Format, Formats, NameTable, Shape};
use crate::record::{Endian, RawRecord};
use lowmark_record::event::{Transform, ValueType};
use lowmark_record::{Event, Field, Kind, Names};
use std::collections::HashMap;

/// Values of a set of flags that are remembered per event.
const REMEMBERED: usize = 256;

/// How one field of an event is found in its record.
#[derive(Debug)]
struct Source {
    field: Field,
    place: FormatField,
    transform: Transform,
    /// Names of values or of flags, where the kernel prints names.
    table: Option<NameTable>,
    /// What was worked out before.
    known: HashMap<u64, Option<u64>>,
}

/// How the records of one event id are read.
#[derive(Debug)]
struct Decoder {
    kind: Kind,
    sources: Vec<Source>,
}

/// What an id stands for.
#[derive(Debug)]
enum Entry {
    Decoder(Decoder),
    /// An event that is not declared, by name.
    Foreign(String),
}

/// The formats of a file, worked out as they are needed.
#[derive(Debug)]
pub(crate) struct Decoders {
    endian: Endian,
    entries: HashMap<u16, Entry>,
    pid: Option<FormatField>,
}

/// What became of a record.
pub(crate) enum Decoded<'a> {
    /// An event.
    Event(Event),
    /// An event of this name, which is not declared.
    Foreign(&'a str),
    /// An id without a format.
    Unknown,
    /// A record shorter than its format says.
    Short(&'static str),
}

impl Decoders {
    pub(crate) fn new(endian: Endian) -> Decoders {
        Decoders {
            endian,
            entries: HashMap::new(),
            pid: None,
        }
    }

    /// Process id of a record.
    pub(crate) fn pid(&mut self, record: &RawRecord<'_>, formats: &Formats) -> Option<i32> {
        if self.pid.is_none() {
            self.pid = formats.get(record.event)?.field("common_pid").cloned();
        }
        let value = self.pid.as_ref()?.read(record.data, self.endian)?;
        i32::try_from(value).ok()
    }

    /// Reads a record; the event's task is left to the caller.
    pub(crate) fn decode(
        &mut self,
        record: &RawRecord<'_>,
        formats: &Formats,
        names: &mut Names,
    ) -> Decoded<'_> {
        let endian = self.endian;
        let entry = match self.entries.entry(record.event) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let Some(format) = formats.get(record.event) else {
                    return Decoded::Unknown;
                };
                place.insert(Entry::of(format))
            }
        };
        let decoder = match entry {
            Entry::Foreign(name) => return Decoded::Foreign(name),
            Entry::Decoder(decoder) => decoder,
        };
        let mut event = Event::new(decoder.kind, record.time_ns, record.cpu, 0);
        for source in &mut decoder.sources {
            match source.read(record.data, endian, names) {
                Some(Some(value)) => event.set(source.field, value),
                Some(None) => {}
                None => return Decoded::Short(decoder.kind.name()),
            }
        }
        Decoded::Event(event)
    }
}

impl Entry {
    fn of(format: &Format) -> Entry {
        let Some(kind) = Kind::named(&format.name) else {
            return Entry::Foreign(format.name.clone());
        };
        let sources = kind
            .fields()
            .iter()
            .filter_map(|field| Source::of(*field, format));
        Entry::Decoder(Decoder {
            kind,
            sources: sources.collect(),
        })
    }
}

impl Source {
    fn of(field: Field, format: &Format) -> Option<Source> {
        let spec = field.spec();
        let own = (spec.name, Transform::Same);
        let candidates = std::iter::once(own).chain(spec.aliases.iter().copied());
        let (place, transform) = candidates
            .filter_map(|(name, transform)| {
                Some((format.fields.iter().find(|f| f.name == name)?, transform))
            })
            .next()?;
        Some(Source {
            field,
            place: place.clone(),
            transform,
            table: format.flags(&place.name).cloned(),
            known: HashMap::new(),
        })
    }

    /// The value; the outer none says that the record is too short, the inner that there is no value.
    #[inline]
    fn read(&mut self, data: &[u8], endian: Endian, names: &mut Names) -> Option<Option<u64>> {
        let kind = self.field.spec().value;
        if kind == ValueType::Text && self.place.shape != Shape::Scalar {
            let text = self.place.read_str(data, endian)?;
            return Some((!text.is_empty()).then(|| names.intern(text.as_bytes())));
        }
        let raw = self.place.read(data, endian)?.cast_unsigned();
        let value = match self.transform {
            Transform::Same => raw,
            Transform::PowerOfTwo => 1u64.checked_shl(raw as u32).unwrap_or(0),
            Transform::PagesToBytes => raw.wrapping_shl(12),
            Transform::SyncMode if self.table.is_none() => {
                let mode = if raw == 0 { "async" } else { "sync" };
                return Some(Some(names.intern(mode.as_bytes())));
            }
            Transform::SyncMode => raw,
        };
        match kind {
            ValueType::Gfp | ValueType::Text => {
                if let Some(known) = self.known.get(&value) {
                    return Some(*known);
                }
                let text = self.text(value);
                let translated = kind.parse(text.as_bytes(), names);
                if self.known.len() < REMEMBERED {
                    self.known.insert(value, translated);
                }
                Some(translated)
            }
            _ => Some(Some(value)),
        }
    }

    /// What the kernel prints for a value: a name, flags, or an address.
    fn text(&self, value: u64) -> String {
        match &self.table {
            Some(table) => table.render(value),
            None if self.place.ctype.contains('*') => format!("{value:#x}"),
            None if self.place.ctype == "bool" => (value != 0).to_string(),
            None => format!("{}", value.cast_signed()),
        }
    }
}
