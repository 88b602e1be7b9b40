//! Tables as text, laid out as mmtests prints them.
//!
//! Source: `Compare.pm` and `PrintGeneric.pm` of mmtests. Names stand left, every other column is
//! right-justified in at least twelve characters, a percentage follows as ` (%7.2f%%)`, and a heading is
//! split at its first `-` into lines above its column. Two things differ on purpose: old tables let
//! wide values touch, here at least two blanks stand between columns; and a kernel's name such as
//! `v3.6+swapin_readahead=hugh-new,page_cluster=4` is broken where its parts end.
//!
//! Text is plain. Whoever wants colour passes a [`Style`], which sees each part after it was padded.

/// Smallest width of a column, as in `%12.2f`.
const WIDTH_MIN: usize = 12;

/// Blanks between two columns at least.
const GAP: usize = 2;

/// A line of a heading is broken at this length even where no part ends.
const HEADING_MAX: usize = 32;

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
        self.columns.push(Column {
            heading: heading.into(),
            align,
        });
        self
    }

    /// Adds a row; fields beyond the last column are not printed, missing ones are blank.
    pub fn row<F: Into<Field>>(&mut self, fields: impl IntoIterator<Item = F>) {
        self.rows.push(fields.into_iter().map(Into::into).collect());
    }

    /// The table as lines, each ended by a newline.
    ///
    /// Where it is wider than `width`, columns go on in further bands below, each with the columns of
    /// names repeated (those justified left before the first that is not); with none it is never divided.
    pub fn render(&self, style: &dyn Style, width: Option<usize>) -> String {
        let laid: Vec<Laid> = (0..self.columns.len()).map(|c| self.lay(c)).collect();
        let bands = bands(&laid, width.unwrap_or(usize::MAX));
        let texts: Vec<String> = bands.iter().map(|b| self.band(&laid, b, style)).collect();
        texts.join("\n")
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
            let gap = if index == 0 { 0 } else { GAP };
            let heading = vec![column.heading.clone()];
            return Laid {
                heading,
                align: Align::Left,
                value: value + gap,
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

    fn band(&self, laid: &[Laid], columns: &[usize], style: &dyn Style) -> String {
        let mut text = String::new();
        let lines = columns
            .iter()
            .map(|&c| laid[c].heading.len())
            .max()
            .unwrap_or(0);
        let headed = columns
            .iter()
            .any(|&c| laid[c].heading.iter().any(|l| !l.is_empty()));
        for line in (0..lines).filter(|_| headed) {
            let parts = columns.iter().map(|&c| {
                let text = laid[c].heading.get(line).map_or("", String::as_str);
                let padded = pad(text, laid[c].width(), laid[c].align, c > 0);
                style.paint(Role::Heading, &padded)
            });
            push_line(&mut text, parts);
        }
        for row in &self.rows {
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

fn length(text: &str) -> usize {
    text.chars().count()
}

/// A heading as lines: mmtests' split at the first `-` for plain names, at the ends of parts for
/// kernels with mechanisms or settings, so that lines stay within `width` where possible.
pub fn heading_lines(heading: &str, width: usize) -> Vec<String> {
    if heading.contains(['+', ',', '=', ' ']) {
        return wrapped(heading, width.clamp(WIDTH_MIN, HEADING_MAX));
    }
    match release_end(heading) {
        Some(at) => vec![heading[..at].to_owned(), heading[at + 1..].to_owned()],
        None => vec![heading.to_owned()],
    }
}

/// Position of the `-` at which mmtests splits a name: the first, or the one after `-rcN`.
fn release_end(name: &str) -> Option<usize> {
    let first = name.find('-')?;
    let candidate = name[first + 1..].strip_prefix("rc").map(|rest| {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        (digits, rest)
    });
    match candidate {
        Some((digits, rest)) if digits > 0 => rest[digits..]
            .starts_with('-')
            .then_some(name.len() - rest.len() + digits),
        _ => Some(first),
    }
    .filter(|&at| at > 0 && at + 1 < name.len())
}

/// Lines of at most `width`, broken before `+`, after `,`, `=`, `-` and at blanks.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in pieces(text) {
        let line = lines.last().map_or(0, |l| length(l));
        if line > 0 && line + length(piece.trim_end()) > width {
            lines.push(String::new());
        }
        for c in piece.chars() {
            if lines.last().is_some_and(|l| length(l) >= HEADING_MAX) {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
        }
    }
    lines
        .iter()
        .map(|l| l.trim().to_owned())
        .filter(|l| !l.is_empty())
        .collect()
}

/// The parts between which a line may end.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let end = match c {
            '+' => at,
            ',' | '=' | '-' | ' ' => at + c.len_utf8(),
            _ => continue,
        };
        if end > start {
            pieces.push(&text[start..end]);
            start = end;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_mmtests_prints_it() {
        let mut table = TextTable::new()
            .column("", Align::Left)
            .column("4.4.0-kcompactd-v1r1", Align::Right)
            .column("4.4.0-nodefrag-v1r3", Align::Right);
        table.row([
            Field::from("Amean    System-1"),
            Field::with_percent("102.86", 0.0, Role::Plain),
            Field::with_percent("46.81", 54.50, Role::Good),
        ]);
        table.row([
            Field::from("Amean    System-12"),
            Field::with_percent("51.98", 0.0, Role::Plain),
            Field::with_percent("56.96", -9.57, Role::Bad),
        ]);
        let expected = [
            "                                    4.4.0                  4.4.0",
            "                           kcompactd-v1r1          nodefrag-v1r3",
            "Amean    System-1       102.86 (   0.00%)       46.81 (  54.50%)",
            "Amean    System-12       51.98 (   0.00%)       56.96 (  -9.57%)",
            "",
        ]
        .join("\n");
        assert_eq!(table.render(&PlainStyle, None), expected);
    }

    #[test]
    fn wide_values_never_touch() {
        let mut table = TextTable::new()
            .column("", Align::Left)
            .column("a", Align::Right)
            .column("b", Align::Right);
        table.row(["x", "123456789012345", "12345678901"]);
        table.row(["y", "1", "2"]);
        let text = table.render(&PlainStyle, None);
        assert!(text.contains("x  123456789012345  12345678901\n"), "{text}");
    }

    #[test]
    fn notes_are_aligned_even_where_some_are_missing() {
        let mut table = TextTable::new()
            .column("", Align::Left)
            .column("h", Align::Right);
        table.row([
            Field::from("with"),
            Field::with_percent("1.00", 2.0, Role::Plain),
        ]);
        table.row([Field::from("without"), Field::from("3.00")]);
        let expected = "                             h\n\
                        with           1.00 (   2.00%)\n\
                        without        3.00\n";
        assert_eq!(table.render(&PlainStyle, None), expected);
    }

    #[test]
    fn headings() {
        let split = |name: &str| heading_lines(name, 21);
        assert_eq!(split("traceonly-v2r2"), ["traceonly", "v2r2"]);
        assert_eq!(
            split("3.4.0-rc2-lumpyremove-v2r3"),
            ["3.4.0-rc2", "lumpyremove-v2r3"]
        );
        assert_eq!(split("3.4.0-rc2"), ["3.4.0-rc2"]);
        assert_eq!(split("v3.6"), ["v3.6"]);
        assert_eq!(split("x-"), ["x-"]);
        assert_eq!(split(""), [""]);
        assert_eq!(
            split("v3.6+swapin_readahead=hugh-new,page_cluster=4"),
            ["v3.6", "+swapin_readahead=", "hugh-new,", "page_cluster=4"]
        );
    }

    #[test]
    fn bands_repeat_the_names() {
        let mut table = TextTable::new().column("", Align::Left);
        for heading in ["a", "b", "c"] {
            table = table.column(heading, Align::Right);
        }
        table.row(["row", "1", "2", "3"]);
        let text = table.render(&PlainStyle, Some(30));
        assert_eq!(text.matches("row").count(), 2);
        assert!(text.lines().all(|l| l.chars().count() <= 30));
        assert_eq!(TextTable::new().render(&PlainStyle, Some(1)), "");
        let mut names = TextTable::new()
            .column("a", Align::Left)
            .column("b", Align::Left);
        names.row(["row", "kind"]);
        assert_eq!(names.render(&PlainStyle, Some(1)), "a    b\nrow  kind\n");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_touches(
            fields in prop::collection::vec(prop::collection::vec("[0-9]{1,20}", 3), 1..5),
            heading in "[a-z+=, é-]{0,60}",
        ) {
            let mut table = TextTable::new()
                .column("", Align::Left)
                .column(heading.clone(), Align::Right)
                .column("other", Align::Right);
            for row in &fields {
                table.row(row.iter().map(String::as_str));
            }
            let text = table.render(&PlainStyle, None);
            let lines: Vec<&str> = text.lines().collect();
            for (row, line) in fields.iter().zip(&lines[lines.len() - fields.len()..]) {
                prop_assert_eq!(line.split("  ").filter(|p| !p.trim().is_empty()).count(), row.len());
            }
            let blank = |c: &char| !c.is_whitespace();
            let kept: String = heading_lines(&heading, 20).concat().chars().filter(blank).collect();
            let expected: String = heading.chars().filter(blank).collect();
            // mmtests' own split drops the `-` at which it splits.
            prop_assert!(kept == expected || expected.replacen('-', "", 1) == kept);
        }
    }
}
