//! The declarations as a page of documentation.

use super::{Kind, ValueType};
use std::fmt::Write;

fn kind_of(value: ValueType) -> &'static str {
    match value {
        ValueType::Signed => "number",
        ValueType::Unsigned => "number ≥ 0",
        ValueType::Pointer => "address, text",
        ValueType::Text => "text",
        ValueType::Gfp => "allocation flags, text",
        ValueType::ReclaimFlags => "`RECLAIM_WB_*`, text",
        ValueType::Lru => "LRU list, text",
        ValueType::Throttle => "`VMSCAN_THROTTLE_*`, text",
        ValueType::Device => "`major:minor`, text",
    }
}

/// The page `docs/events.md`: every tracepoint with its fields and its text in every era.
pub fn documentation() -> String {
    let mut page = String::from(
        "# Events\n\n\
         Every tracepoint that lowmark reads and writes, made from the declarations in\n\
         `crates/lowmark-record/src/event/`. Field names are those of JSON, Parquet and CSV; a text shows how\n\
         kernels print it, from the release named on.\n",
    );
    let mut group = "";
    for kind in Kind::ALL {
        let spec = kind.spec();
        if spec.group != group {
            group = spec.group;
            let _ = writeln!(page, "\n## {group}");
        }
        let until = spec
            .until
            .map_or(String::new(), |until| format!(" Gone in {until}."));
        let _ = writeln!(page, "\n### `{}`\n\n{}{until}\n", spec.name, spec.doc);
        let _ = writeln!(page, "| field | kind | meaning |\n|---|---|---|");
        for field in kind.fields() {
            let spec = field.spec();
            let _ = writeln!(
                page,
                "| `{}` | {} | {} |",
                spec.name,
                kind_of(spec.value),
                spec.doc
            );
        }
        page.push('\n');
        for (since, text) in spec.texts {
            let _ = writeln!(page, "- {since}: `{text}`");
        }
    }
    page
}
