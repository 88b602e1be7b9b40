//! Kernels: `VERSION[+MECHANISM[=VARIANT]]…[,sysctl=value]…`.

use std::collections::BTreeMap;

use crate::kernel::{KernelSpec, Toggle, is_setting};

use super::error::{Problem, Result};
use super::source::Span;
use super::tree::{Node, shorten};

const EXAMPLE: &str =
    "write for example v3.6, v6.12, v3.6+swapin_readahead=hugh-new or v3.6,page_cluster=4";

/// Parses `text`, the value of `node`.
pub(crate) fn read(node: &Node, text: &str) -> Result<KernelSpec> {
    // Places can be told only if nothing was substituted.
    let literal = matches!(&node.value, super::tree::Value::Text(written) if written == text);
    let place = |part: &str| -> Span {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        if literal {
            node.part(start..start + part.len())
        } else {
            node.span
        }
    };
    let wrong = |part: &str, expected: &str| {
        let message = format!("expected {expected}, found \"{}\"", shorten(part));
        Problem::new(place(part), message, EXAMPLE)
    };
    let mut settings = text.split(',');
    let mut toggles = settings.next().unwrap_or("").split('+');
    let version = toggles.next().unwrap_or("");
    if !is_version(version) {
        return Err(wrong(version, "a kernel version"));
    }
    let mut spec = KernelSpec {
        text: text.to_owned(),
        version: version.to_owned(),
        toggles: Vec::new(),
        sysctl: BTreeMap::new(),
    };
    for part in toggles {
        let (mechanism, variant) = match part.split_once('=') {
            Some((mechanism, variant)) => (mechanism, Some(variant)),
            None => (part, None),
        };
        if !is_word(mechanism) {
            return Err(wrong(part, "a mechanism after `+`"));
        }
        if variant.is_some_and(|variant| !is_word(variant)) {
            return Err(wrong(part, "a variant after `=`"));
        }
        if spec
            .toggles
            .iter()
            .any(|toggle| toggle.mechanism == mechanism)
        {
            return Err(wrong(part, "every mechanism at most once"));
        }
        let variant = variant.map(str::to_owned);
        spec.toggles.push(Toggle {
            mechanism: mechanism.to_owned(),
            variant,
        });
    }
    for part in settings {
        match part.split_once('=') {
            Some((name, value)) if is_setting(name) && !value.trim().is_empty() => {
                if spec
                    .sysctl
                    .insert(name.to_owned(), value.to_owned())
                    .is_some()
                {
                    return Err(wrong(part, "every setting at most once"));
                }
            }
            _ => return Err(wrong(part, "a setting name=value after `,`")),
        }
    }
    Ok(spec)
}

/// `v3.6`, `v2.6.36-rc4`: a `v`, two to four numbers, perhaps a release candidate.
fn is_version(text: &str) -> bool {
    let number =
        |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else {
        return false;
    };
    let (release, candidate) = match rest.split_once("-rc") {
        Some((release, candidate)) => (release, Some(candidate)),
        None => (rest, None),
    };
    (2..=4).contains(&release.split('.').count())
        && release.split('.').all(number)
        && candidate.is_none_or(number)
}

/// The name of a mechanism or a variant.
fn is_word(text: &str) -> bool {
    const BYTES_MAX: usize = 64;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (1..=BYTES_MAX).contains(&text.len()) && text.bytes().all(plain)
}
