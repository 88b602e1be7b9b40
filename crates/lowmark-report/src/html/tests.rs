use crate::document::{Document, Section};
use crate::plot::{Bar, Course, Curves, IntervalRow, Intervals, Panel, Plot, Series, Shares};
use crate::table::{Align, Field, Role, TextTable};

fn document(section: Section<'_>) -> Document<'_> {
    Document {
        name: "report <of> \"a & b\"".to_owned(),
        sections: vec![section],
    }
}

/// Whatever a process, a file or a kernel is called: it is shown, not obeyed.
#[test]
fn everything_is_escaped() {
    let evil = "<script>alert(1)</script>\u{1b}[2J&amp;'\"";
    let mut section = Section::titled(evil);
    section.answer(evil);
    section.title(evil);
    section.line(evil);
    section.stretches([(Role::Bad, evil.to_owned())]);
    section.paragraph(evil, 0);
    section.drawn(move |_| evil.to_owned());
    let mut table = TextTable::new()
        .column(evil, Align::Left)
        .column(evil, Align::Right);
    table.row([Field::from(evil), Field::from(evil).noted(evil)]);
    section.table(table);
    for plot in plots(evil) {
        section.plot(plot);
    }
    let page = Document {
        name: evil.to_owned(),
        sections: vec![section],
    }
    .html();
    assert!(!page.contains("<script"), "{page}");
    assert!(!page.contains('\u{1b}'));
    assert!(page.matches("&lt;script&gt;").count() > 20);
}

fn plots(name: &str) -> Vec<Plot> {
    let text = || name.to_owned();
    vec![
        Plot::Course(Course {
            title: text(),
            begin_s: 1.0,
            length_s: 2.0,
            panels: vec![Panel {
                name: text(),
                values: vec![0.0, 2.0, 1.0],
                full: 2.0,
                scale: text(),
                waits: false,
            }],
            waits: vec![Bar {
                name: text(),
                begin_s: 1.5,
                end_s: 1.6,
            }],
        }),
        Plot::Intervals(Intervals {
            title: text(),
            axis: text(),
            remark: text(),
            rows: vec![row(name, 5.0, Role::Good), row(name, -400.0, Role::Bad)],
        }),
        Plot::Curves(Curves {
            title: text(),
            axis: text(),
            values: vec![text(), text()],
            series: vec![Series {
                name: text(),
                points: vec![Some((1.0, 0.1)), None],
            }],
        }),
        Plot::Shares(Shares {
            title: text(),
            parts: vec![(text(), 3, Role::Good), (text(), 0, Role::Bad)],
        }),
    ]
}

fn row(name: &str, value: f64, role: Role) -> IntervalRow {
    IntervalRow {
        name: name.to_owned(),
        value,
        interval: Some([value - 1.0, value + 1.0]),
        words: format!("{value:+.1} %"),
        role,
    }
}

/// A plot of nothing, of one value, of the largest values that there are: it is drawn, or said in words.
#[test]
fn plots_of_any_values() {
    let values = [0.0, f64::MIN_POSITIVE, 1.0, -1.0, 1e18, -1e18];
    let mut section = Section::new();
    for value in values {
        let rows = vec![row("a", value, Role::Plain), row("b", 0.0, Role::Plain)];
        for rows in [Vec::new(), rows] {
            section.plot(Plot::Intervals(Intervals {
                title: "intervals".to_owned(),
                axis: "%".to_owned(),
                remark: String::new(),
                rows,
            }));
        }
        let points = vec![Some((value, value.abs() / 7.0)), None];
        for points in [Vec::new(), points] {
            section.plot(Plot::Curves(Curves {
                title: "curves".to_owned(),
                axis: "x".to_owned(),
                values: points.iter().map(|_| "1".to_owned()).collect(),
                series: vec![Series {
                    name: String::new(),
                    points,
                }],
            }));
        }
        section.plot(Plot::Course(Course {
            title: "course".to_owned(),
            begin_s: value.abs(),
            length_s: value.abs(),
            panels: vec![Panel {
                name: "p".to_owned(),
                values: vec![value.abs()],
                full: value.abs().max(1e-9),
                scale: String::new(),
                waits: true,
            }],
            waits: Vec::new(),
        }));
    }
    let page = document(section).html();
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    assert_eq!(page.matches("<figure>").count(), 5 * values.len());
}

/// Plots say in words what they show, and both sizes have ids of their own.
#[test]
fn plots_have_titles_and_descriptions() {
    let mut section = Section::new();
    for plot in plots("pgscan_direct") {
        section.plot(plot);
    }
    let page = document(section).html();
    let drawings = page.matches("role=\"img\"").count();
    assert_eq!(drawings, 7, "three of two sizes, one of one");
    assert_eq!(page.matches("<title id=").count(), drawings);
    assert_eq!(page.matches("<desc id=").count(), drawings);
    assert!(page.contains("interval 4.0 to 6.0"), "{page}");
    for colour in ["fill=\"#", "stroke=\"#", "style=\""] {
        assert!(!page.contains(colour), "colours are the style sheet's");
    }
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let page = || {
        let mut section = Section::new();
        plots("x").into_iter().for_each(|plot| section.plot(plot));
        document(section).html()
    };
    assert_eq!(page(), page());
}

/// Colours of the style sheet below a rule, by name: red, green and blue.
fn colours(rule: &str) -> Vec<(String, [f64; 3])> {
    let (_, rest) = super::STYLE.split_once(rule).expect("a rule");
    let (_, rest) = rest.split_once("{").expect("its begin");
    let rest = rest.trim_start().trim_start_matches(":root {");
    let (body, _) = rest.split_once('}').expect("its end");
    let declarations = body
        .split(';')
        .filter_map(|it| it.trim().strip_prefix("--")?.split_once(": #"));
    let part = |hex: &str, at: usize| {
        let value = u8::from_str_radix(&hex[at..at + 2], 16).expect("a colour");
        f64::from(value) / 255.0
    };
    let found =
        declarations.map(|(name, hex)| (name.to_owned(), [0, 2, 4].map(|at| part(hex, at))));
    found.collect()
}

/// Relative luminance by WCAG 2.
fn luminance(colour: [f64; 3]) -> f64 {
    let linear = colour.map(|part| {
        if part <= 0.04045 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

/// What WCAG 2 asks of text (4.5), in the light, in the dark and on paper; of lines that carry no meaning nothing.
#[test]
fn text_stands_out_from_the_page() {
    for rule in [
        ":root",
        "@media (prefers-color-scheme: dark)",
        "@media print",
    ] {
        let colours = colours(rule);
        let luminance = |name: &str| {
            let found = colours.iter().find(|(known, _)| known == name);
            luminance(found.unwrap_or_else(|| panic!("{rule} has no {name}")).1)
        };
        let grounds = ["page", "raised"];
        assert!(colours.len() >= 16, "{rule}: {colours:?}");
        for (name, _) in &colours {
            if grounds.contains(&name.as_str()) || ["line", "grid"].contains(&name.as_str()) {
                continue;
            }
            for ground in grounds {
                let (a, b) = (luminance(name), luminance(ground));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 4.5, "{rule}: {name} on {ground}: {contrast:.2}");
            }
        }
    }
    assert!((luminance([1.0; 3]) - 1.0).abs() < 1e-9);
}
