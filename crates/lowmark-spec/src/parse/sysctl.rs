//! Settings: names as they are known here, and values, of which those in bytes may be written as sizes.

use super::error::{Problem, Result};
use super::scope::Scope;
use super::source::Span;
use super::tree::{Node, shorten};
use crate::kernel::setting_name;

/// The name of a setting, which stands at `span`.
pub(crate) fn name(text: &str, span: Span) -> Result<String> {
    setting_name(text).ok_or_else(|| {
        other_size(text, span).unwrap_or_else(|| {
            Problem::new(
                span,
                format!(
                    "expected the name of a setting, found \"{}\"",
                    shorten(text)
                ),
                "write it without its prefix: page_cluster, dirty_ratio",
            )
        })
    })
}

/// What is wrong with a setting of huge pages of another size than the PMD's (`hugepages-64kB/enabled`, 6.8); none if it
/// is not one.
pub(crate) fn other_size(text: &str, span: Span) -> Option<Problem> {
    text.contains("hugepages-").then(|| {
        Problem::new(
            span,
            format!(
                "huge pages that are smaller than a PMD maps are not modelled, and not set in guests: found \"{}\"",
                shorten(text)
            ),
            "leave it out: kernels from 6.8 on use none of these sizes unless they are told to",
        )
    })
}

/// The value of a setting as the kernel takes it. `text` stands at `span`.
///
/// Settings in bytes (`dirty_bytes`) take a size, those in KiB (`min_free_kbytes`) a plain number alone: a unit would
/// leave open whether it is counted. All others are the kernel's to understand.
pub(crate) fn value(name: &str, text: &str, span: Span, scope: &Scope<'_>) -> Result<String> {
    let plain = text.trim();
    if !plain.is_empty() && plain.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(plain.to_owned());
    }
    let node = Node::text(span, text);
    if name.ends_with("_bytes") {
        return Ok(scope.size(&node)?.to_string());
    }
    if name.ends_with("_kbytes") {
        let help = match scope.size(&node) {
            Ok(bytes) => format!("write {name} = {}", bytes / 1024),
            Err(_) => format!("write for example {name} = 65536"),
        };
        return Err(Problem::new(
            span,
            format!(
                "expected a plain number of KiB for {name}, found \"{}\"",
                shorten(text)
            ),
            help,
        ));
    }
    Ok(text.to_owned())
}
