//! Settings of the kernel that the model knows.

use crate::output::Page;
use lowmark_model::kernel::thp::{CHOICES, Choice};
use lowmark_model::kernel::{SETTINGS, Setting};
use lowmark_report::table::{Align, TextTable};
use serde_json::{Value, json};

pub(super) fn text(page: &Page) -> miette::Result<String> {
    let mut table = TextTable::new()
        .column("name", Align::Left)
        .column("what it is", Align::Left);
    for heading in ["values", "default", "since"] {
        table = table.column(heading, Align::Right);
    }
    for setting in SETTINGS {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        table.row([
            setting.name.to_owned(),
            setting.text.to_owned(),
            format!("{} to {}", setting.min, setting.max),
            or_dash(setting.default().map(|value| value.to_string())),
            or_dash(setting.since.map(|version| version.to_string())),
        ]);
    }
    for choice in CHOICES {
        table.row([
            choice.name.to_owned(),
            choice.text.to_owned(),
            format!("{} words", choice.words().len()),
            "-".to_owned(),
            choice.since.to_string(),
        ]);
    }
    let choices = CHOICES
        .iter()
        .map(|choice| format!("{} is one of {}.", choice.name, words(choice)));
    let choices: Vec<String> = choices.map(|text| page.paragraph(&text, 0)).collect();
    let note = "Set one with --set NAME=VALUE for all kernels, or with --kernel VERSION,NAME=VALUE for one, for \
        example --kernel v3.6,page_cluster=0";
    Ok(table.render(page.style.as_ref(), page.width)
        + "\n"
        + &choices.concat()
        + "\n"
        + &page.paragraph(note, 0))
}

pub(super) fn json() -> miette::Result<Value> {
    let setting = |setting: &Setting| {
        json!({
            "name": setting.name,
            "text": setting.text,
            "min": setting.min,
            "max": setting.max,
            "default": setting.default(),
            "since": setting.since.map(|version| version.to_string()),
        })
    };
    let choice = |choice: &Choice| {
        let words = choice.words().into_iter();
        let values =
            words.map(|(word, since)| json!({ "value": word, "since": since.to_string() }));
        json!({
            "name": choice.name,
            "text": choice.text,
            "values": values.collect::<Value>(),
            "since": choice.since.to_string(),
        })
    };
    Ok(SETTINGS
        .iter()
        .map(setting)
        .chain(CHOICES.iter().map(choice))
        .collect())
}

/// The words of a setting, those that came later with the version.
fn words(choice: &Choice) -> String {
    let words = choice.words().into_iter();
    let words = words.map(|(word, since)| {
        if since > choice.since {
            format!("{word} ({since})")
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(", ")
}
