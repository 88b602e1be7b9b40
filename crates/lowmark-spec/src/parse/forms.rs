//! How values of a machine file are read and written: each [`Form`] knows both ways.
//!
//! What is written is a TOML value that reads back as the same value. Sizes and times are written in the unit that gives
//! the shortest exact text: `"1.5G"`, `"7.3ms"`, and `"117737ns"` rather than `"117.737us"`.

use super::error::Result;
use super::exact::Unit;
use super::expr;
use super::scope::Scope;
use super::tree::Node;

/// How values of one kind are read from a node and written as a TOML value; none is written of a value that a file
/// gives by leaving its key away.
pub(crate) struct Form<V> {
    pub(crate) read: fn(&Scope<'_>, &Node) -> Result<V>,
    pub(crate) write: fn(&V) -> Option<String>,
}

/// Bytes.
pub(crate) const SIZE: Form<u64> = sized(|scope, node| scope.size(node));
/// Bytes, at least one.
pub(crate) const SOME_SIZE: Form<u64> = sized(|scope, node| scope.some_size(node));
/// Bytes for which a file system has an inode.
pub(crate) const INODE_RATIO: Form<u64> = sized(|scope, node| scope.inode_ratio(node));
/// A length in whole pages, rounded up, at least one; bytes.
pub(crate) const PAGES: Form<u64> = sized(|scope, node| scope.pages(node));
/// An offset, rounded down to a whole page; bytes.
pub(crate) const PAGE_OFFSET: Form<u64> = sized(|scope, node| scope.page_offset(node));
/// Time of one piece of work.
pub(crate) const WORK: Form<u64> = Form {
    read: |scope, node| scope.work(node),
    write: |ns| Some(time_text(*ns)),
};
/// A whole number.
pub(crate) const COUNT: Form<u64> = Form {
    read: |scope, node| scope.count(node),
    write: |count| Some(count.to_string()),
};
/// `true` or `false`.
pub(crate) const FLAG: Form<bool> = Form {
    read: |scope, node| scope.flag(node),
    write: |flag| Some(flag.to_string()),
};
/// A text in which `$name` stands for a value.
pub(crate) const TEXT: Form<String> = Form {
    read: |scope, node| scope.text(node),
    write: |text| Some(quoted(&text.replace('$', "$$"))),
};

/// A count from 1 to `MAX`.
pub(crate) const fn up_to<const MAX: u32>() -> Form<u32> {
    Form {
        read: |scope, node| scope.some_up_to(node, MAX),
        write: |count| Some(count.to_string()),
    }
}

/// Bytes that are read by `read`.
const fn sized(read: fn(&Scope<'_>, &Node) -> Result<u64>) -> Form<u64> {
    Form {
        read,
        write: |bytes| Some(size_text(*bytes)),
    }
}

/// A value that a file gives by one of a few words.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// What the words name, with an article, for messages.
    const WHAT: &'static str;
    /// The words with their values.
    const WORDS: &'static [(&'static str, Self)];
}

/// One of the words of `W`.
pub(crate) const fn word<W: Word>() -> Form<W> {
    Form {
        read: |scope, node| scope.choice(node, W::WHAT, W::WORDS),
        write: |value| {
            let found = W::WORDS.iter().find(|(_, known)| known == value);
            found.map(|(word, _)| quoted(word))
        },
    }
}

/// A size with its unit, between quotes.
pub(crate) fn size_text(bytes: u64) -> String {
    let plain = bytes.to_string();
    let text = expr::shortest(
        bytes,
        Unit::SIZE,
        &["K", "M", "G", "T", "KB", "MB", "GB", "TB"],
    );
    match text {
        Some(text) if text.len() <= plain.len() => format!("\"{text}\""),
        _ => format!("\"{plain}\""),
    }
}

/// A time with its unit, between quotes.
pub(crate) fn time_text(ns: u64) -> String {
    let text = expr::shortest(ns, Unit::TIME, &["ns", "us", "ms", "s"]);
    format!("\"{}\"", text.unwrap_or_else(|| format!("{ns}ns")))
}

/// A text as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A key of a TOML table. One with a dot in it is quoted: it is not that of a table in the table.
pub(crate) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}
