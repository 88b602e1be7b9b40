//! Values of settings: those in bytes may be written as sizes.

use super::error::{Problem, Result};
use super::scope::Scope;
use super::source::Span;
use super::tree::{Node, shorten};

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
