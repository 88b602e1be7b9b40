//! Events as flat JSON objects, one a line.

use super::{Event, Field, Kind, NO_CPU, Names, ValueType};
use crate::release::Release;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Era whose names of allocation flags JSON has: in it `GFP_NOWAIT` is what it is when it is read.
const ERA: Release = Release::new(6, 12);

impl Event {
    /// Writes the event as a JSON object. Sets of flags are text, as kernels of 6.12 print them.
    pub fn to_json(&self, names: &Names, out: &mut Vec<u8>) {
        let mut number = |key: &str, value: u64| {
            out.extend_from_slice(key.as_bytes());
            ValueType::Unsigned.render(value, names, ERA, out);
        };
        number("{\"t\":", self.time_ns);
        if self.cpu != NO_CPU {
            number(",\"cpu\":", u64::from(self.cpu));
        }
        number(",\"task\":", u64::from(self.task));
        out.extend_from_slice(b",\"event\":\"");
        out.extend_from_slice(self.kind.name().as_bytes());
        out.push(b'"');
        for (field, value) in self.fields() {
            let spec = field.spec();
            out.extend_from_slice(b",\"");
            out.extend_from_slice(spec.name.as_bytes());
            out.extend_from_slice(b"\":");
            if spec.value.is_number() {
                spec.value.render(value, names, ERA, out);
            } else {
                let mut text = Vec::new();
                spec.value.render(value, names, ERA, &mut text);
                let text = String::from_utf8_lossy(&text);
                // A string always serializes, and writing to a vector cannot fail.
                let _ = serde_json::to_writer(&mut *out, &text);
            }
        }
        out.push(b'}');
    }

    /// Reads an event from a JSON object. Keys that are unknown are skipped.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and where.
    pub fn from_json(text: &str, names: &mut Names) -> Result<Event, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let event = EventSeed { names }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(event)
    }
}

struct EventSeed<'n> {
    names: &'n mut Names,
}

/// A number or a text.
enum Scalar<'a> {
    Number(u64),
    Text(Cow<'a, str>),
}

struct ScalarSeed;

impl<'de> DeserializeSeed<'de> for ScalarSeed {
    type Value = Scalar<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ScalarSeed {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number or a text")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(value.cast_unsigned()))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }
}

impl<'de> DeserializeSeed<'de> for EventSeed<'_> {
    type Value = Event;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Event, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EventSeed<'_> {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `t`, `task` and `event`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let (mut time_ns, mut cpu, mut task, mut kind) = (None, NO_CPU, None, None);
        let mut values: Vec<(Field, Scalar<'de>)> = Vec::new();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "t" => time_ns = Some(map.next_value()?),
                "cpu" => cpu = map.next_value()?,
                "task" => task = Some(map.next_value()?),
                "event" => {
                    let name: Cow<'de, str> = map.next_value()?;
                    let known = Kind::named(&name);
                    kind = Some(known.ok_or_else(|| {
                        de::Error::custom(format_args!("unknown event `{name}`"))
                    })?);
                }
                name => match Field::named(name) {
                    Some(field) => values.push((field, map.next_value_seed(ScalarSeed)?)),
                    None => drop(map.next_value::<IgnoredAny>()?),
                },
            }
        }
        let missing = de::Error::missing_field;
        let mut event = Event::new(
            kind.ok_or_else(|| missing("event"))?,
            time_ns.ok_or_else(|| missing("t"))?,
            cpu,
            task.ok_or_else(|| missing("task"))?,
        );
        for (field, value) in values {
            let kind = field.spec().value;
            let value = match value {
                Scalar::Number(value) => Some(value).filter(|_| kind.is_number()),
                Scalar::Text(text) => kind.parse(text.as_bytes(), self.names),
            };
            let value = value.ok_or_else(|| {
                de::Error::custom(format_args!("`{}` has no such value", field.name()))
            })?;
            event.set(field, value);
        }
        Ok(event)
    }
}
