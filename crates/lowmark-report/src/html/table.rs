//! Tables, as HTML has them.

use super::class;
use crate::table::{Align, Field, TextTable, printable};
use maud::{Markup, html};

/// A table with a caption for who does not see what it stands below.
pub(super) fn table(table: &TextTable, caption: &str) -> Markup {
    let columns = table.columns();
    let caption = printable(caption);
    let has_headings = columns.iter().any(|(heading, _)| !heading.is_empty());
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                @if has_headings {
                    thead { tr {
                        @for (heading, align) in columns.iter().copied() { (head(heading, align)) }
                    } }
                }
                tbody {
                    @for row in table.rows() {
                        tr {
                            @for (at, (_, align)) in columns.iter().copied().enumerate() {
                                (cell(row.get(at), align, at == 0))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn number(align: Align) -> Option<&'static str> {
    (align == Align::Right).then_some("number")
}

fn head(heading: &str, align: Align) -> Markup {
    html! {
        @if heading.trim().is_empty() {
            td {}
        } @else {
            th scope="col" class=[number(align)] { (heading.trim()) }
        }
    }
}

fn cell(field: Option<&Field>, align: Align, first: bool) -> Markup {
    let Some(field) = field else {
        return html! { td {} };
    };
    let value = field.value.trim();
    let note: String = field.note.split_whitespace().collect();
    let (of_value, of_note) = if note.is_empty() {
        (class(field.role), None)
    } else {
        (None, class(field.role))
    };
    let text = html! {
        @match of_value {
            Some(class) => span class=(class) { (value) },
            None => (value),
        }
        @if !note.is_empty() { " " span.note.{ (of_note.unwrap_or("plain")) } { (printable(&note)) } }
    };
    html! {
        @if first && align == Align::Left && !value.is_empty() {
            th scope="row" { (text) }
        } @else {
            td class=[number(align)] { (text) }
        }
    }
}
