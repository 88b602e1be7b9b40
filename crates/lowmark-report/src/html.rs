//! A report as one page of HTML that needs nothing else: no network, no script, no font but those of the reader.
//!
//! 1. Of each section the answers come first, then the plots, then what the text has, in its order.
//! 2. A plot is drawn twice, for a screen and for a phone; the style sheet shows the one that fits. Both have a title and a
//!    description, which say what is to be seen.
//! 3. Tables have captions and headings, and scroll by themselves where they are wider than the page, by keyboard too.
//! 4. Everything that is not written here is escaped by the template engine, and control characters are shown as text.
//!
//! ```text
//! html.rs    the page and its sections
//! table.rs   tables
//! figure.rs  plots with their legends
//! draw.rs    what plots look like, by plotters
//! svg.rs     its shapes as SVG with classes
//! style.css  looks, in the light, in the dark and on paper
//! ```

mod draw;
mod figure;
mod svg;
mod table;

use crate::document::{Block, Document, Lines, Section, WIDTH};
use crate::plot::Plot;
use crate::table::{Role, printable, printable_lines};
use figure::Figures;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style sheet.
const STYLE: &str = include_str!("html/style.css");

/// What a page may load: nothing but the style sheet that is in it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

impl Document<'_> {
    /// The report as a page: the same bytes for the same report.
    pub fn html(&self) -> String {
        let mut figures = Figures::default();
        let sections = self.sections.iter().enumerate();
        let sections: Vec<Markup> = sections
            .map(|(at, section)| self.section(at, section, &mut figures))
            .collect();
        let name = printable(&self.name);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="generator" content={ "lowmark " (env!("CARGO_PKG_VERSION")) };
                    title { (name) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header { h1 { (name) } (self.contents()) }
                    main { @for section in &sections { (section) } }
                    footer { p { "Written by lowmark " (env!("CARGO_PKG_VERSION")) ". This page loads nothing." } }
                }
            }
        };
        page.into_string() + "\n"
    }

    /// Links to the sections, where there are several with headings.
    fn contents(&self) -> Markup {
        let titled = self.sections.iter().enumerate();
        let titled: Vec<(usize, &str)> = titled
            .filter_map(|(at, section)| Some((at, section.title.as_deref()?)))
            .collect();
        html! {
            @if titled.len() > 1 {
                nav aria-label="Sections" { ul {
                    @for (at, title) in titled { li { a href={ "#s" (at + 1) } { (printable(title)) } } }
                } }
            }
        }
    }

    fn section(&self, at: usize, section: &Section<'_>, figures: &mut Figures) -> Markup {
        let title = section.title.as_deref().map(printable);
        let leading = section.blocks.iter().filter_map(leading);
        let caption = section.title.as_deref().unwrap_or(&self.name);
        let (curves, others): (Vec<&Plot>, Vec<&Plot>) =
            (section.plots.iter()).partition(|plot| matches!(plot, Plot::Curves(_)));
        html! {
            section id={ "s" (at + 1) } {
                @if let Some(title) = &title { h2 { (title) } }
                @for answer in &section.answers { p.answer { (printable(answer)) } }
                @for answer in leading { p.answer { (printable_lines(&answer.text)) } }
                @for plot in others { (figures.figure(plot)) }
                @if !curves.is_empty() {
                    div.grid { @for plot in curves { (figures.figure(plot)) } }
                }
                (blocks(&section.blocks, caption, title.is_some()))
            }
        }
    }
}

/// The answer that a section's text begins with.
fn leading<'b>(block: &'b Block<'_>) -> Option<&'b Lines> {
    match block {
        Block::Lines(lines) if lines.leads => Some(lines),
        _ => None,
    }
}

fn blocks(blocks: &[Block<'_>], caption: &str, nested: bool) -> Markup {
    let mut caption = caption;
    let mut all = Vec::new();
    for block in blocks {
        all.push(match block {
            Block::Title(text) => {
                caption = text;
                let text = printable(text);
                html! { @if nested { h3 { (text) } } @else { h2 { (text) } } }
            }
            Block::Line(parts) => line(parts),
            Block::Lines(lines) if lines.leads => html! {},
            Block::Lines(lines) => running(lines),
            Block::Table(table, _) => table::table(table, caption),
            Block::Drawn(draw) => {
                let text = draw(WIDTH);
                html! {
                    div.scroll tabindex="0" role="region" aria-label=(printable(caption)) { pre { (printable_lines(&text)) } }
                }
            }
            Block::Blank => html! {},
        });
    }
    html! { @for block in all { (block) } }
}

fn line(parts: &[(Role, String)]) -> Markup {
    let below = parts
        .first()
        .is_some_and(|(_, text)| text.starts_with("  "));
    html! {
        p.line.below[below] {
            @for (role, text) in parts {
                @match class(*role) {
                    Some(class) => span class=(class) { (printable(text)) },
                    None => (printable(text)),
                }
            }
        }
    }
}

fn running(lines: &Lines) -> Markup {
    html! {
        @for text in lines.text.lines() {
            @if lines.head.is_empty() {
                p { (printable(text)) }
            } @else {
                p.item { b { (printable(&lines.head)) } " " (printable(text)) }
            }
        }
    }
}

/// The class of what a text is.
fn class(role: Role) -> Option<&'static str> {
    match role {
        Role::Title | Role::Heading => Some("strong"),
        Role::Good => Some("good"),
        Role::Bad => Some("bad"),
        Role::Unknown => Some("unknown"),
        Role::Plain => None,
    }
}

#[cfg(test)]
mod tests;
