//! Tables as text, laid out as mmtests prints them.
//!
//! Source: `Compare.pm` and `PrintGeneric.pm` of mmtests. Names stand left, every other column is
//! right-justified in at least twelve characters, a percentage follows as ` (%7.2f%%)`, and a heading is
//! split at its first `-` into lines above its column. Two things differ on purpose: old tables let
//! wide values touch, here at least two blanks stand between columns; and a kernel's name such as
//! `v3.6+swapin_readahead=hugh-new,page_cluster=4` is broken where its parts end.
//!
//! Text is plain. Whoever wants colour passes a [`Style`], which sees each part after it was padded.

mod words;

use std::borrow::Cow;

pub(crate) use words::hanging;
use words::{FOLDED_MIN, folded, length, wrapped};
pub use words::{counted, heading_lines, printable, printable_lines};

/// Smallest width of a column, as in `%12.2f`.
const WIDTH_MIN: usize = 12;

/// Blanks between two columns at least.
const GAP: usize = 2;
/// Lines that a name has at most where mmtests prints it.
const MMTESTS_LINES: usize = 2;

/// What a stretch of text is, for a [`Style`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Heading of a block.
    Title,
    /// Heading of a column.
    Heading,
    /// A change for the better, a claim borne out.
    Good,
    /// A change for the worse, a claim contradicted.
    Bad,
    /// Something that could not be told.
    Unknown,
    /// Everything else.
    Plain,
}

/// Gives text its looks; must not change what is read.
pub trait Style {
    /// The text with its looks.
    fn paint(&self, role: Role, text: &str) -> String;
}

/// No looks: the text itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainStyle;

impl Style for PlainStyle {
    fn paint(&self, _role: Role, text: &str) -> String {
        text.to_owned()
    }
}

/// Side to which a column is justified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Names and other text.
    Left,
    /// Numbers.
    Right,
}

/// One field of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Value.
    pub value: String,
    /// What follows the value, such as ` (  12.50%)`; aligned by itself.
    pub note: String,
    /// What the note is, for a [`Style`].
    pub role: Role,
}

impl Field {
    /// A value with a percentage as mmtests prints it; `role` says which way it points.
    pub fn with_percent(value: impl Into<String>, percent: f64, role: Role) -> Field {
        Field {
            value: value.into(),
            note: format!(" ({percent:7.2}%)"),
            role,
        }
    }

    /// The same with a mark behind its note.
    #[must_use]
    pub fn noted(mut self, mark: &str) -> Field {
        self.note += mark;
        self
    }

    /// A value that has a role itself.
    pub fn with_role(value: impl Into<String>, role: Role) -> Field {
        Field {
            value: value.into(),
            note: String::new(),
            role,
        }
    }
}

impl<T: Into<String>> From<T> for Field {
    fn from(value: T) -> Field {
        Field::with_role(value, Role::Plain)
    }
}

#[derive(Debug, Clone)]
struct Column {
    heading: String,
    align: Align,
}

/// A table to be printed.
#[derive(Debug, Clone, Default)]
pub struct TextTable {
    columns: Vec<Column>,
    rows: Vec<Vec<Field>>,
}

/// A column with its widths.
struct Laid {
    /// Lines of the heading.
    heading: Vec<String>,
    align: Align,
    value: usize,
    note: usize,
}

impl Laid {
    fn width(&self) -> usize {
        self.value + self.note
    }
}

impl TextTable {
    /// A table without columns.
    pub fn new() -> TextTable {
        TextTable::default()
    }

    /// Adds a column.
    #[must_use]
    pub fn column(mut self, heading: impl Into<String>, align: Align) -> TextTable {
        let heading: String = heading.into();
        self.columns.push(Column {
            heading: printable(&heading).into_owned(),
            align,
        });
        self
    }

    /// Adds a row of fields, whose control characters are shown as text; fields beyond the last column are not printed, missing ones are blank.
    pub fn row<F: Into<Field>>(&mut self, fields: impl IntoIterator<Item = F>) {
        let fields = fields.into_iter().map(|field| {
            let mut field: Field = field.into();
            if let Cow::Owned(shown) = printable(&field.value) {
                field.value = shown;
            }
            field
        });
        self.rows.push(fields.collect());
    }

    /// Headings of the columns, and their sides.
    pub(crate) fn columns(&self) -> Vec<(&str, Align)> {
        let columns = self.columns.iter();
        columns.map(|it| (it.heading.as_str(), it.align)).collect()
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &[Vec<Field>] {
        &self.rows
    }

    /// The table as lines, each ended by a newline.
    ///
    /// Where it is wider than `width`, columns go on in further bands below, each with the columns of
    /// names repeated (those justified left before the first that is not); with none it is never divided.
    /// Where the names leave no room for another column, the widest column of them is folded at blanks.
    pub fn render(&self, style: &dyn Style, width: Option<usize>) -> String {
        let mut laid: Vec<Laid> = (0..self.columns.len()).map(|c| self.lay(c)).collect();
        let width = width.unwrap_or(usize::MAX);
        let folded = fold(&mut laid, width);
        let bands = bands(&laid, width);
        let band = |columns: &Vec<usize>| self.band(&laid, columns, folded, style);
        bands.iter().map(band).collect::<Vec<_>>().join("\n")
    }

    fn fields(&self, column: usize) -> impl Iterator<Item = &Field> {
        self.rows.iter().filter_map(move |row| row.get(column))
    }

    /// Widths of a column and the lines of its heading.
    fn lay(&self, index: usize) -> Laid {
        let column = &self.columns[index];
        let longest = self
            .fields(index)
            .map(|f| length(&f.value))
            .max()
            .unwrap_or(0);
        let note = self
            .fields(index)
            .map(|f| length(&f.note))
            .max()
            .unwrap_or(0);
        if column.align == Align::Left {
            let value = longest.max(length(&column.heading));
            let heading = vec![column.heading.clone()];
            return Laid {
                heading,
                align: Align::Left,
                value: value + gap(index),
                note,
            };
        }
        let value = (longest + GAP).max(WIDTH_MIN);
        let heading = heading_lines(&column.heading, value + note - GAP);
        let widest = heading.iter().map(|line| length(line)).max().unwrap_or(0);
        let value = value.max((widest + GAP).saturating_sub(note));
        Laid {
            heading,
            align: Align::Right,
            value,
            note,
        }
    }

    fn push_headings(
        &self,
        text: &mut String,
        laid: &[Laid],
        columns: &[usize],
        style: &dyn Style,
    ) {
        let headed = |c: &&usize| laid[**c].heading.iter().any(|line| !line.is_empty());
        let mut with_heading = columns.iter().filter(headed);
        let (Some(&first), another) = (with_heading.next(), with_heading.next()) else {
            return;
        };
        if another.is_none() && laid[first].heading.len() > MMTESTS_LINES {
            // One long name has the whole width of the table.
            let width = columns.iter().map(|&c| laid[c].width()).sum();
            for line in wrapped(&self.columns[first].heading, width) {
                let padded = pad(&line, width, Align::Right, false);
                push_line(text, [style.paint(Role::Heading, &padded)].into_iter());
            }
            return;
        }
        let lines = columns.iter().map(|&c| laid[c].heading.len()).max();
        for line in 0..lines.unwrap_or(0) {
            let parts = columns.iter().map(|&c| {
                let text = laid[c].heading.get(line).map_or("", String::as_str);
                let padded = pad(text, laid[c].width(), laid[c].align, c > 0);
                style.paint(Role::Heading, &padded)
            });
            push_line(text, parts);
        }
    }

    fn band(
        &self,
        laid: &[Laid],
        columns: &[usize],
        folded: Option<usize>,
        style: &dyn Style,
    ) -> String {
        let mut text = String::new();
        self.push_headings(&mut text, laid, columns, style);
        let lines = self.rows.iter().flat_map(|row| match folded {
            Some(column) => unfold(row, column, laid[column].value - gap(column)),
            None => vec![row.clone()],
        });
        for row in lines {
            let blank = Field::from("");
            let parts = columns.iter().map(|&c| {
                let field = row.get(c).unwrap_or(&blank);
                paint_field(field, &laid[c], c > 0, style)
            });
            push_line(&mut text, parts);
        }
        text
    }
}

fn paint_field(field: &Field, laid: &Laid, gap: bool, style: &dyn Style) -> String {
    let value = pad(&field.value, laid.value, laid.align, gap);
    let note = pad(&field.note, laid.note, Align::Left, false);
    if field.note.is_empty() {
        style.paint(field.role, &value) + &note
    } else {
        value + &style.paint(field.role, &note)
    }
}

/// What a column on the left has before it.
fn gap(column: usize) -> usize {
    if column == 0 { 0 } else { GAP }
}

/// Narrows the widest column of names where these leave no room for another column: so that all fit, or if that is
/// too narrow, one. Says which it is.
fn fold(laid: &mut [Laid], width: usize) -> Option<usize> {
    let names = laid.iter().take_while(|c| c.align == Align::Left).count();
    let total = |columns: &[Laid]| columns.iter().map(Laid::width).sum::<usize>();
    let (names_width, all) = (total(&laid[..names]), total(&laid[names..]));
    let one = laid[names..].iter().map(Laid::width).max().unwrap_or(0);
    if names_width + one <= width {
        return None;
    }
    let column = (0..names).max_by_key(|&c| laid[c].width())?;
    let room = |others: usize| width.saturating_sub(names_width - laid[column].value + others);
    let least = FOLDED_MIN + gap(column);
    let value = if room(all) >= least {
        room(all)
    } else {
        room(one).max(least)
    };
    if laid[column].note > 0 || value >= laid[column].value {
        return None;
    }
    laid[column].value = value;
    Some(column)
}

/// A row as lines, in which a column is folded to `width`.
fn unfold(row: &[Field], column: usize, width: usize) -> Vec<Vec<Field>> {
    let Some(field) = row.get(column) else {
        return vec![row.to_vec()];
    };
    let mut lines: Vec<Vec<Field>> = Vec::new();
    for part in folded(&field.value, width) {
        let mut line = if lines.is_empty() {
            row.to_vec()
        } else {
            vec![Field::from(""); row.len()]
        };
        line[column] = Field::with_role(part, field.role);
        lines.push(line);
    }
    lines
}

/// Columns of each band: those of the names and as many others as fit, at least one.
fn bands(laid: &[Laid], width: usize) -> Vec<Vec<usize>> {
    let names = laid.iter().take_while(|c| c.align == Align::Left).count();
    let names_width: usize = laid[..names].iter().map(Laid::width).sum();
    let mut bands: Vec<Vec<usize>> = Vec::new();
    let mut used = 0;
    for (index, column) in laid.iter().enumerate().skip(names) {
        used += column.width();
        match bands.last_mut() {
            Some(band) if used <= width => band.push(index),
            _ => {
                bands.push((0..names).chain([index]).collect());
                used = names_width + column.width();
            }
        }
    }
    if bands.is_empty() && names > 0 {
        bands.push((0..names).collect());
    }
    bands
}

/// Appends a line without the blanks at its end.
fn push_line(text: &mut String, parts: impl Iterator<Item = String>) {
    let line: String = parts.collect();
    text.push_str(line.trim_end());
    text.push('\n');
}

fn pad(text: &str, width: usize, align: Align, gap: bool) -> String {
    let missing = width.saturating_sub(length(text));
    let left = match align {
        Align::Right => missing,
        // A left column keeps its distance from the column before it.
        Align::Left if gap => GAP.min(missing),
        Align::Left => 0,
    };
    format!("{}{text}{}", " ".repeat(left), " ".repeat(missing - left))
}

#[cfg(test)]
mod tests;
