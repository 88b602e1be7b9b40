//! Pages of all verbs: whole, readable without a network and without scripts, and with everything that the text says.

use crate::common::pages::{self, Made};
use crate::common::{Place, tree};
use scraper::{ElementRef, Html, Selector};
use std::collections::{BTreeMap, BTreeSet};

fn all<'h>(document: &'h Html, selector: &str) -> Vec<ElementRef<'h>> {
    let selector = Selector::parse(selector).expect("a selector");
    document.select(&selector).collect()
}

/// What a reader of the page reads, words apart; plots are not counted.
fn words(document: &Html) -> String {
    let body = all(document, "body");
    let mut text = String::new();
    for node in body[0].descendants() {
        let hidden = node.ancestors().any(|above| {
            let element = above.value().as_element();
            element.is_some_and(|it| matches!(it.name(), "svg" | "caption" | "footer"))
        });
        if let (Some(own), false) = (node.value().as_text(), hidden) {
            text += own;
            text.push(' ');
        }
    }
    text
}

/// Words with how often each stands there; what stands in brackets has no blanks before it.
fn counted(text: &str) -> BTreeMap<String, usize> {
    let mut joined = text.to_owned();
    while joined.contains("( ") {
        joined = joined.replace("( ", "(");
    }
    let mut counts = BTreeMap::new();
    for word in joined.split_whitespace() {
        *counts.entry(word.to_owned()).or_insert(0) += 1;
    }
    counts
}

/// Words and figures of the text that the page has not, or not as often.
fn missing(made: &Made, document: &Html) -> Vec<String> {
    let page = words(document);
    let found = counted(&page);
    let missing = counted(&made.text).into_iter().filter(|(word, count)| {
        // Marks of chapters are the text's; headings of columns are broken where a part ends.
        let is_name = word.chars().any(char::is_alphabetic);
        let is_there = found.get(word).copied().unwrap_or(0) >= *count;
        word != "==" && !is_there && !(is_name && page.contains(word.as_str()))
    });
    missing
        .map(|(word, count)| format!("{word} × {count}"))
        .collect()
}

fn is_whole(made: &Made, document: &Html) {
    let name = made.name;
    assert_eq!(
        document.errors,
        Vec::<std::borrow::Cow<'static, str>>::new(),
        "{name}"
    );
    for tag in [
        "html[lang]",
        "head title",
        "body h1",
        "main",
        "meta[name=viewport]",
    ] {
        assert_eq!(all(document, tag).len(), 1, "{name}: {tag}");
    }
    let mut ids = BTreeSet::new();
    for element in all(document, "[id]") {
        let id = element.value().id().expect("it has one");
        assert!(ids.insert(id.to_owned()), "{name}: {id} stands there twice");
    }
    for element in all(document, "[aria-labelledby]") {
        let named = element.attr("aria-labelledby").expect("it has one");
        assert!(
            named.split(' ').all(|id| ids.contains(id)),
            "{name}: {named}"
        );
    }
}

/// Nothing is loaded, nothing runs, and the page forbids both.
fn stands_alone(made: &Made, document: &Html) {
    let name = made.name;
    for element in all(document, "*") {
        let tag = element.value().name();
        assert!(
            ![
                "script", "link", "img", "iframe", "object", "embed", "base", "form"
            ]
            .contains(&tag),
            "{name}: {tag}"
        );
        for (attribute, value) in element.value().attrs() {
            assert!(
                !attribute.starts_with("on") && attribute != "style",
                "{name}: {attribute}"
            );
            let is_link = ["href", "src", "xlink:href", "action"].contains(&attribute);
            assert!(!is_link || value.starts_with('#'), "{name}: {value}");
        }
    }
    for part in ["url(", "@import", "http:", "https:", "//"] {
        let styles = all(document, "style");
        let style: String = styles.iter().flat_map(|it| it.text()).collect();
        assert!(!style.contains(part), "{name}: {part}");
    }
    let policy = all(document, "meta[http-equiv=Content-Security-Policy]");
    let policy = policy[0].attr("content").expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
}

fn can_be_heard(made: &Made, document: &Html) {
    let name = made.name;
    for table in all(document, "table") {
        let part = |selector: &str| {
            table
                .select(&Selector::parse(selector).expect("one"))
                .count()
        };
        assert_eq!(part("caption"), 1, "{name}");
        assert!(part("th") > 0, "{name}: {}", table.html());
        assert!(part("th:not([scope])") == 0, "{name}");
    }
    for drawing in all(document, "svg[role=img]") {
        for part in ["title", "desc"] {
            let own = drawing.select(&Selector::parse(part).expect("one")).next();
            let said: String = own.expect(part).text().collect();
            assert!(said.len() > 4, "{name}: {said:?}");
        }
    }
    for region in all(document, ".scroll") {
        let is_named = region
            .attr("aria-label")
            .is_some_and(|label| !label.is_empty());
        assert!(region.attr("tabindex") == Some("0") && is_named, "{name}");
    }
}

#[test]
fn pages_say_what_the_text_says_and_stand_alone() {
    let mut drawn = BTreeSet::new();
    for made in pages::all() {
        let document = Html::parse_document(&made.html);
        is_whole(&made, &document);
        stands_alone(&made, &document);
        can_be_heard(&made, &document);
        assert!(made.text.split_whitespace().count() > 20, "{}", made.name);
        assert!(
            !made.html.contains(env!("CARGO_MANIFEST_DIR")),
            "{}",
            made.name
        );
        assert_eq!(
            missing(&made, &document),
            Vec::<String>::new(),
            "{}",
            made.name
        );
        // The answer comes first.
        let main = all(&document, "main section:first-child > *");
        let first = main
            .iter()
            .find(|it| it.value().name() == "p")
            .expect("a paragraph");
        let has_answer = !matches!(made.name, "run" | "compare-traces");
        assert!(
            !has_answer || first.attr("class") == Some("answer"),
            "{}",
            made.name
        );
        if !all(&document, "figure").is_empty() {
            drawn.insert(made.name);
        }
    }
    let plotted = [
        "why",
        "why-dirty",
        "report",
        "report-several",
        "report-recording",
        "compare",
        "sweep",
        "sweep-run",
        "bisect",
        "twin",
        "reproduce",
    ];
    for name in plotted {
        assert!(drawn.contains(name), "{name} has no plot");
    }
}

/// A word that is not on the page is missed, and so is a figure that stands there less often.
#[test]
fn the_comparison_of_words_misses_nothing() {
    let made = Made {
        name: "x",
        text: "Elapsed 0.74 (   34.79%) 0.74 == Loads ==".to_owned(),
        html: "<!DOCTYPE html><html><body><p>Elapsed 0.74 (34.79%) Loads<svg><text>0.74</text></svg></body></html>"
            .to_owned(),
    };
    let document = Html::parse_document(&made.html);
    assert_eq!(missing(&made, &document), ["0.74 × 2"]);
}

#[test]
fn the_same_run_gives_the_same_page() {
    let place = Place::new();
    let page = |jobs: &'static str| {
        let call = [
            "compare",
            "small.toml",
            "--kernel",
            "v3.6",
            "--kernel",
            "v3.14",
            "--jobs",
            jobs,
        ];
        pages::made(&place, "again", &call).html
    };
    assert_eq!(page("1"), page("4"));
}

/// An existing file is replaced as a whole, and what cannot be written is said before anything is run.
#[test]
fn a_page_is_a_file_like_other_outputs() {
    let place = Place::new();
    place.write("old.html", "old");
    let run = ["run", "small.toml", "--html"];
    let to = |file: &'static str| [&run[..], &[file]].concat();
    place.lowmark(&to("old.html")).good();
    let page = std::fs::read_to_string(place.path("old.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));

    std::fs::create_dir(place.path("directory")).expect("made");
    place
        .lowmark(&to("directory"))
        .error(&["directory", "a page is one file"]);
    place
        .lowmark(&to("missing/a.html"))
        .error(&["missing/a.html", "cannot create"]);
    place.lowmark(&to("-")).error(&["--html -", "name a file"]);
    let names: Vec<String> = (tree(&place.path("")).keys())
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(
        names,
        ["old.html", "small.toml"],
        "nothing half written stays"
    );
}
