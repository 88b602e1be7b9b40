//! A report before it is written: sections of lines, tables and plots.
//!
//! Every report for people is a [`Document`]. There are two writers of it: [`Document::text`] for terminals and pipes, and
//! [`crate::html`] for pages. What stands in the text stands in the page; plots are for pages alone, as are answers that a
//! text gives by its tables.

use crate::plot::Plot;
use crate::table::{Role, Style, TextTable, hanging, printable};

/// Width of running text and of drawn lines where that of the terminal is not known.
pub(crate) const WIDTH: usize = 100;

/// A report.
#[derive(Default)]
pub struct Document<'a> {
    /// Its name, for the head of a page; a text has none.
    pub name: String,
    /// Its parts.
    pub sections: Vec<Section<'a>>,
}

/// A part of a report: of one run, one capture, one group of columns.
#[derive(Default)]
pub struct Section<'a> {
    pub(crate) title: Option<String>,
    /// Whether other sections belong to it: a text marks its heading.
    pub(crate) is_chapter: bool,
    pub(crate) answers: Vec<String>,
    pub(crate) plots: Vec<Plot>,
    pub(crate) blocks: Vec<Block<'a>>,
}

/// How wide lines may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// As wide as the terminal; without one they are not folded.
    Terminal,
    /// As wide as the terminal; 100 characters without one.
    Running,
    /// The same, but never wider than 100 characters.
    Narrow,
}

impl Room {
    /// The width at which lines are folded, if they are.
    pub(crate) fn width(self, terminal: Option<usize>) -> Option<usize> {
        match self {
            Room::Terminal => terminal,
            Room::Running => Some(terminal.unwrap_or(WIDTH)),
            Room::Narrow => Some(terminal.unwrap_or(WIDTH).min(WIDTH)),
        }
    }
}

/// Lines of text, folded at blanks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// What the lines are of, before them: a name, a number.
    pub head: String,
    /// The text behind it; it may have several lines.
    pub text: String,
    /// Indent of what goes on.
    pub indent: usize,
    /// How wide they may be.
    pub room: Room,
    /// Whether this is the answer that a reader looks for first.
    pub leads: bool,
}

/// Draws lines of block characters of at most this width.
type Draw<'a> = Box<dyn Fn(usize) -> String + 'a>;

/// A piece of a section.
pub(crate) enum Block<'a> {
    /// Heading of what follows.
    Title(String),
    /// A line that is never folded, in stretches with looks.
    Line(Vec<(Role, String)>),
    /// Running text.
    Lines(Lines),
    /// A table, divided into bands where it is wider.
    Table(TextTable, Room),
    /// A time line of block characters; a page has the plot beside it.
    Drawn(Draw<'a>),
    /// An empty line, which pages have no need of.
    Blank,
}

/// Sections with an empty line between any two.
pub fn separated(mut sections: Vec<Section<'_>>) -> Vec<Section<'_>> {
    let between = sections.len().saturating_sub(1);
    sections[..between].iter_mut().for_each(Section::blank);
    sections
}

impl Document<'_> {
    /// The report as text.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        let sections = self.sections.iter();
        sections.map(|it| it.text(style, width)).collect()
    }
}

impl<'a> Section<'a> {
    /// A section without a heading.
    pub fn new() -> Section<'a> {
        Section::default()
    }

    /// A section with a heading.
    pub fn titled(title: impl Into<String>) -> Section<'a> {
        Section {
            title: Some(title.into()),
            ..Section::default()
        }
    }

    /// A section to which those after it belong, or with parts that have headings of their own.
    pub fn chapter(title: impl Into<String>) -> Section<'a> {
        let mut section = Section::titled(title);
        section.is_chapter = true;
        section.blank();
        section
    }

    /// An answer that a page begins with. A text leaves it out, as its tables say the same.
    pub fn answer(&mut self, sentence: impl Into<String>) {
        self.answers.push(sentence.into());
    }

    /// A plot, which a text leaves out.
    pub fn plot(&mut self, plot: Plot) {
        self.plots.push(plot);
    }

    /// Heading of what follows.
    pub fn title(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Title(text.into()));
    }

    /// A line that is never folded.
    pub fn line(&mut self, text: impl Into<String>) {
        self.stretches([(Role::Plain, text.into())]);
    }

    /// The same, in stretches with looks.
    pub fn stretches(&mut self, parts: impl IntoIterator<Item = (Role, String)>) {
        self.blocks.push(Block::Line(parts.into_iter().collect()));
    }

    /// Running text.
    pub fn lines(&mut self, lines: Lines) {
        self.blocks.push(Block::Lines(lines));
    }

    /// Running text of at most 100 characters a line, what goes on indented.
    pub fn paragraph(&mut self, text: impl Into<String>, indent: usize) {
        self.lines(Lines {
            head: String::new(),
            text: text.into(),
            indent,
            room: Room::Narrow,
            leads: false,
        });
    }

    /// A table as wide as the terminal.
    pub fn table(&mut self, table: TextTable) {
        self.blocks.push(Block::Table(table, Room::Terminal));
    }

    /// A table that is divided without a terminal as well.
    pub fn narrow_table(&mut self, table: TextTable) {
        self.blocks.push(Block::Table(table, Room::Running));
    }

    /// A time line of block characters, of at most the width that it is called with.
    pub fn drawn(&mut self, draw: impl Fn(usize) -> String + 'a) {
        self.blocks.push(Block::Drawn(Box::new(draw)));
    }

    /// An empty line.
    pub fn blank(&mut self) {
        self.blocks.push(Block::Blank);
    }

    /// Appends another section, whose heading becomes one of this.
    pub fn append(&mut self, other: Section<'a>) {
        self.blocks.extend(other.title.map(Block::Title));
        self.answers.extend(other.answers);
        self.plots.extend(other.plots);
        self.blocks.extend(other.blocks);
    }

    /// Appends what has something in it, behind an empty line and a heading.
    pub fn part(&mut self, title: impl Into<String>, body: Section<'a>) {
        if !body.is_empty() {
            self.blank();
            self.title(title);
            self.append(body);
        }
    }

    /// Whether there is nothing that a text would have.
    pub fn is_empty(&self) -> bool {
        self.title.is_none() && self.blocks.is_empty()
    }

    /// The section as text.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        let title = |text: &str| format!("{}\n", style.paint(Role::Title, &printable(text)));
        let mut text = match (&self.title, self.is_chapter) {
            (Some(text), true) => title(&format!("== {text} ==")),
            (Some(text), false) => title(text),
            (None, _) => String::new(),
        };
        for block in &self.blocks {
            text += &match block {
                Block::Title(text) => title(text),
                Block::Line(parts) => {
                    let parts = parts
                        .iter()
                        .map(|(role, text)| style.paint(*role, &printable(text)));
                    parts.collect::<String>() + "\n"
                }
                Block::Lines(lines) => lines.folded(width),
                Block::Table(table, room) => table.render(style, room.width(width)),
                Block::Drawn(draw) => draw(width.unwrap_or(WIDTH)),
                Block::Blank => "\n".to_owned(),
            };
        }
        text
    }
}

impl Lines {
    fn folded(&self, width: Option<usize>) -> String {
        let indent = self.indent;
        let head = match self.head.as_str() {
            "" => String::new(),
            head => format!("{:<indent$}", printable(head)),
        };
        let lines = self.text.lines();
        let text: String = lines
            .map(|line| format!("{head}{}\n", printable(line)))
            .collect();
        hanging(&text, indent, self.room.width(width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Align, PlainStyle};

    #[test]
    fn a_section_is_its_blocks_one_below_the_other() {
        let mut section = Section::titled("Runs\u{1b}[1m");
        section.answer("for pages alone");
        section.stretches([
            (Role::Good, "borne out".to_owned()),
            (Role::Plain, "  yes".to_owned()),
        ]);
        section.lines(Lines {
            head: "G1".to_owned(),
            text: "one two three four five six".to_owned(),
            indent: 5,
            room: Room::Running,
            leads: false,
        });
        section.part("Nothing", Section::new());
        let mut body = Section::new();
        let mut table = TextTable::new().column("", Align::Left);
        table.row(["a"]);
        body.table(table);
        section.part("Table", body);
        section.drawn(|width| format!("{width}\n"));
        let text = section.text(&PlainStyle, Some(21));
        let expected = "Runs\\u{1b}[1m\nborne out  yes\nG1   one two three\n     four five six\n\nTable\na\n21\n";
        assert_eq!(text, expected);
        let document = Document {
            name: "x".to_owned(),
            sections: vec![Section::new(), section],
        };
        assert!(document.text(&PlainStyle, None).contains("\n100\n"));
    }
}
