//! Tables as they are printed.

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
fn names_that_are_too_wide_are_folded() {
    let mut table = TextTable::new()
        .column("name", Align::Left)
        .column("what it is", Align::Left)
        .column("runs", Align::Right);
    table.row(["a", "one two three four five six seven", "1"]);
    table.row(["b", "averyveryverylongword", "2"]);
    let wide = table.render(&PlainStyle, None);
    assert_eq!(wide.lines().count(), 3, "{wide}");
    let expected = "name  what it is                runs\n\
                    a     one two three four           1\n      \
                          five six seven\n\
                    b     averyveryverylongw           2\n      \
                          ord\n";
    assert_eq!(table.render(&PlainStyle, Some(36)), expected);
    assert!(expected.lines().all(|line| length(line) <= 36));
    // As wide as it is, it stays as it is.
    let width = wide.lines().map(length).max();
    assert_eq!(table.render(&PlainStyle, width), wide);
}

#[test]
fn lines_hang_below_their_beginning() {
    let text = "        12  counted here and not there by the script\nshort\n";
    assert_eq!(hanging(text, 12, None), text);
    let expected =
        "        12  counted here and\n            not there by the\n            script\nshort\n";
    assert_eq!(hanging(text, 12, Some(28)), expected);
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
fn one_long_name_has_the_whole_width() {
    let mut table = TextTable::new().column("", Align::Left).column(
        "swap-small_order=seq_small-512m-ssd_v6.1_seed0",
        Align::Right,
    );
    table.row(["Direct reclaim pages scanned", "38043"]);
    let text = table.render(&PlainStyle, Some(80));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines
            .iter()
            .take(2)
            .any(|line| line.contains("swap-small_order=seq_")),
        "{text}"
    );
    assert_eq!(lines[1].len(), lines[2].len(), "{text}");
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
