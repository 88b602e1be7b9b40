//! Mechanisms that can be set one by one, and their variants.

use crate::output::Page;
use lowmark_model::kernel::versions::{Change, HISTORY, at};
use lowmark_model::kernel::{DESCRIPTIONS, Mechanisms, NEEDS, versions};
use miette::miette;
use serde::Serialize;
use serde_json::{Value, json};

/// What is said of a mechanism.
#[derive(Serialize)]
struct Mechanism {
    name: &'static str,
    text: String,
    /// What of the kernel it is a part of, if the model leaves that out of some kernels.
    within: Option<&'static str>,
    variants: Vec<Variant>,
}

/// What is said of a variant.
#[derive(Serialize)]
struct Variant {
    name: &'static str,
    text: String,
    /// Whether the oldest kernel has it.
    oldest: bool,
    /// Changes of the kernel that bring it.
    changes: Vec<Origin>,
    /// Variants of other mechanisms without which it does not work.
    needs: Vec<Needed>,
}

/// A mechanism that a variant depends on.
#[derive(Serialize)]
struct Needed {
    mechanism: &'static str,
    /// Its variants that will do.
    variants: Vec<&'static str>,
}

/// A change of the kernel.
#[derive(Serialize)]
struct Origin {
    name: &'static str,
    version: String,
    commit: &'static str,
}

/// The mechanisms of the oldest kernel.
fn oldest() -> Option<Mechanisms> {
    versions().first().map(|version| at(*version))
}

/// Every change of the history with the settings that it alters.
fn effects() -> Vec<(&'static Change, Vec<(&'static str, &'static str)>)> {
    let Some(mut mechanisms) = oldest() else {
        return Vec::new();
    };
    let effect = |change: &'static Change| {
        let before = mechanisms.settings();
        change.apply(&mut mechanisms);
        let after = mechanisms.settings();
        let altered = after.into_iter().zip(before).filter(|(a, b)| a != b);
        (change, altered.map(|(after, _)| after).collect())
    };
    HISTORY.iter().map(effect).collect()
}

/// What a variant needs.
fn needs(mechanism: &str, variant: &str) -> Vec<Needed> {
    let own = NEEDS
        .iter()
        .filter(|need| need.mechanism == mechanism && need.variant == variant);
    let needed = own.map(|need| Needed {
        mechanism: need.other,
        variants: need.works_with(),
    });
    needed.collect()
}

/// The mechanism asked for, or all.
fn asked(which: super::Which<'_>) -> miette::Result<Vec<Mechanism>> {
    let mut found = all();
    if let Some(which) = which {
        found.retain(|mechanism| mechanism.name == which);
        if found.is_empty() {
            return Err(miette!(
                help = "`lowmark list mechanisms` names all of them, `lowmark list kernels` the changes of the kernel",
                "the model has no mechanism called {which}"
            ));
        }
    }
    Ok(found)
}

fn all() -> Vec<Mechanism> {
    let oldest = oldest().map(|oldest| oldest.settings()).unwrap_or_default();
    let effects = effects();
    let variant = |mechanism: &'static str, name: &'static str, text: &str| {
        let bringing = effects
            .iter()
            .filter(|(_, set)| set.contains(&(mechanism, name)));
        let origin = |(change, _): &(&'static Change, _)| Origin {
            name: change.name,
            version: change.version.to_string(),
            commit: change.commit,
        };
        Variant {
            name,
            text: text.trim().to_owned(),
            oldest: oldest.contains(&(mechanism, name)),
            changes: bringing.map(origin).collect(),
            needs: needs(mechanism, name),
        }
    };
    let mechanism = |description: &lowmark_model::kernel::Description| {
        let variants = description.variants.iter();
        Mechanism {
            name: description.name,
            text: description.doc.trim().to_owned(),
            within: description.within,
            variants: variants
                .map(|(name, text)| variant(description.name, name, text))
                .collect(),
        }
    };
    DESCRIPTIONS.iter().map(mechanism).collect()
}

pub(super) fn text(page: &Page, which: super::Which<'_>) -> miette::Result<String> {
    let mut text = String::new();
    for mechanism in asked(which)? {
        text += &format!(
            "{}\n{}",
            page.title(mechanism.name),
            page.paragraph(&mechanism.text, 2)
        );
        if let Some(within) = mechanism.within {
            let note = format!(
                "A part of {within}, which the model leaves out of some kernels (`lowmark list coverage`)."
            );
            text += &page.paragraph(&note, 2);
        }
        for variant in &mechanism.variants {
            text += &format!("  {}\n", page.title(&format!("={}", variant.name)));
            text += &page.paragraph(&variant.text, 6);
            text += &page.paragraph(&since(variant), 6);
            for Needed {
                mechanism,
                variants,
            } in &variant.needs
            {
                let note = format!("needs {mechanism}={}", variants.join(" or "));
                text += &page.paragraph(&note, 6);
            }
        }
        text.push('\n');
    }
    let note = "Set one with --kernel VERSION+MECHANISM=VARIANT, for example \
        --kernel v3.6+swapin_readahead=hugh-new";
    Ok(text + &page.paragraph(note, 0))
}

/// Which kernels have a variant.
fn since(variant: &Variant) -> String {
    let oldest = versions().first().filter(|_| variant.oldest);
    let oldest = oldest.map(|version| format!("in {version}, the oldest kernel of the model"));
    let changes = variant.changes.iter();
    let changes = changes.map(|origin| {
        format!(
            "since {}, commit {} ({})",
            origin.version, origin.commit, origin.name
        )
    });
    let parts: Vec<String> = oldest.into_iter().chain(changes).collect();
    if parts.is_empty() {
        "in no released kernel of the model".to_owned()
    } else {
        parts.join("; ")
    }
}

pub(super) fn json(which: super::Which<'_>) -> miette::Result<Value> {
    Ok(json!(asked(which)?))
}
