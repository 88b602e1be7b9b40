//! What is printed of twins: each as a table, and of several what they have in common.

use super::loads::Load;
use super::{Args, Pair};
use crate::cli::Format;
use crate::guests;
use crate::output::{self, Page};
use lowmark_report::table::{Align, Field, TextTable};
use lowmark_report::twin::{Distribution, Effects, OneSidedOverAll, Twin, one_sided};
use serde::Serialize;
use std::cmp::Reverse;

/// How many of the worst loads are named.
const WORST: usize = 3;

/// A load with its twins.
pub(super) struct Judged {
    load: Load,
    /// Each with what is to be said of its kernel.
    twins: Vec<(Twin, String)>,
    missing: Vec<String>,
    error: Option<String>,
}

/// All that several loads have in common, in JSON.
#[derive(Serialize)]
struct OverAll<'a> {
    seed: Option<u64>,
    loads: Vec<LoadWritten<'a>>,
    distribution: Option<Distribution>,
    one_sided: Vec<OneSidedOverAll>,
    effects: Option<Effects>,
}

#[derive(Serialize)]
struct LoadWritten<'a> {
    name: &'a str,
    file: &'a str,
    class: &'a str,
    twins: Vec<&'a Twin>,
    not_kept: &'a [String],
    error: Option<&'a str>,
}

impl Judged {
    pub(super) fn new(load: Load, pairs: &[Pair], missing: Vec<String>) -> Judged {
        let twins = pairs.iter().filter_map(|pair| {
            let system = pair.kernel.first().and_then(guests::describe);
            Some((pair.twin()?, system.unwrap_or_default()))
        });
        Judged {
            twins: twins.collect(),
            load,
            missing,
            error: None,
        }
    }

    pub(super) fn failed(load: Load, error: String) -> Judged {
        Judged {
            load,
            twins: Vec::new(),
            missing: Vec::new(),
            error: Some(error),
        }
    }

    /// Figures of all its twins, and how many are near.
    fn near(&self) -> (usize, usize) {
        let near = self.twins.iter().map(|(twin, _)| twin.near());
        near.fold((0, 0), |(all, near), (a, n)| (all + a, near + n))
    }

    fn sections(&self, page: &Page) -> String {
        let twins = self.twins.iter().map(|(twin, system)| {
            let title = format!("{} on {}, {}", twin.workload, twin.machine, twin.kernel);
            format!(
                "{}\n{system}; runs of each: {}\n\n{}",
                page.title(&title),
                twin.runs,
                twin.text(page.style.as_ref(), page.width)
            )
        });
        let mut sections: Vec<String> = twins.collect();
        sections.extend(self.remarks());
        sections.join("\n")
    }

    fn remarks(&self) -> Option<String> {
        let missing = self.missing.iter();
        let missing = missing.map(|title| format!("no run of the kernel was kept: {title}\n"));
        let error = self.error.iter();
        let error = error.map(|error| format!("{}: {error}\n", self.load.name));
        let remarks: String = missing.chain(error).collect();
        (!remarks.is_empty()).then_some(remarks)
    }
}

/// Prints it all: of files each twin, of random loads a line for each; of several the rest.
pub(super) fn print(args: &Args, judged: &[Judged], several: bool) -> miette::Result<()> {
    let twins = || {
        judged
            .iter()
            .flat_map(|it| it.twins.iter().map(|(twin, _)| twin))
    };
    match (args.printing.format, several) {
        (Format::Json, false) => match twins().collect::<Vec<_>>().as_slice() {
            [twin] => output::print_json(twin),
            twins => output::print_json(&twins),
        },
        (Format::Json, true) => output::print_json(&over_all(args, judged)),
        (Format::Table, false) => {
            let page = Page::stdout();
            let sections = judged.iter().map(|it| it.sections(&page));
            output::print(&sections.collect::<Vec<_>>().join("\n"))
        }
        (Format::Table, true) => {
            let page = Page::stdout();
            let mut text = String::new();
            if args.workloads.is_empty() {
                text += &lines(&page, judged);
            } else {
                for it in judged {
                    let title = page.title(&format!("== {} ==", it.load.name));
                    text += &format!("{title}\n\n{}\n", it.sections(&page));
                }
            }
            output::print(&format!("{text}{}", over_all_text(&page, args, judged)))
        }
    }
}

fn over_all<'a>(args: &Args, judged: &'a [Judged]) -> OverAll<'a> {
    let classed: Vec<(&str, &Twin)> = judged
        .iter()
        .flat_map(|it| it.twins.iter().map(|(twin, _)| (&*it.load.class, twin)))
        .collect();
    let twins: Vec<&Twin> = classed.iter().map(|(_, twin)| *twin).collect();
    let sided = twins.iter().map(|twin| (twin.title(), &twin.one_sided[..]));
    let written = |it: &'a Judged| LoadWritten {
        name: &it.load.name,
        file: &it.load.target,
        class: &it.load.class,
        twins: it.twins.iter().map(|(twin, _)| twin).collect(),
        not_kept: &it.missing,
        error: it.error.as_deref(),
    };
    OverAll {
        seed: args.ask.seed.filter(|_| args.random.is_some()),
        loads: judged.iter().map(written).collect(),
        distribution: Distribution::new(&classed),
        one_sided: one_sided::over_all(sided),
        effects: Effects::new(&twins),
    }
}

/// A line for each twin.
fn lines(page: &Page, judged: &[Judged]) -> String {
    let mut table = TextTable::new()
        .column("load", Align::Left)
        .column("class", Align::Left)
        .column("kernel", Align::Left);
    for heading in [
        "runs",
        "near",
        "of",
        "median error",
        "elapsed s",
        "model's s",
    ] {
        table = table.column(heading, Align::Right);
    }
    for it in judged {
        for (twin, _) in &it.twins {
            let (all, near) = twin.near();
            let counts = [twin.runs, near, all].map(|count| count.to_string());
            let elapsed = [&twin.elapsed.kernel_s, &twin.elapsed.model_s];
            let texts = [
                twin.workload.clone(),
                it.load.class.clone(),
                twin.release.clone().unwrap_or_else(|| twin.kernel.clone()),
            ];
            table.row(
                texts
                    .into_iter()
                    .chain(counts)
                    .chain([format!("{:.1}%", twin.median_error * 100.0)])
                    .chain(elapsed.map(|range| format!("{:.2}", range.median)))
                    .map(Field::from),
            );
        }
    }
    let remarks: String = judged.iter().filter_map(Judged::remarks).collect();
    let table = table.render(page.style.as_ref(), page.width);
    format!("{}\n\n{table}\n{remarks}\n", page.title("== Loads =="))
}

fn over_all_text(page: &Page, args: &Args, judged: &[Judged]) -> String {
    let over_all = over_all(args, judged);
    let style = page.style.as_ref();
    let mut text = format!("{}\n\n", page.title("== Over all loads =="));
    match &over_all.distribution {
        Some(distribution) => text += &distribution.text(style, page.width),
        None => text += "no counter moved\n",
    }
    if !over_all.one_sided.is_empty() {
        let mut table = TextTable::new()
            .column("moved on one side only", Align::Left)
            .column("", Align::Left)
            .column("loads", Align::Right)
            .column("most", Align::Right)
            .column("in", Align::Left);
        for counter in &over_all.one_sided {
            let count = [counter.loads.to_string(), counter.most.to_string()];
            let what = [counter.name.clone(), counter.why.to_string()];
            let fields = what.into_iter().chain(count).chain([counter.load.clone()]);
            table.row(fields.map(Field::from));
        }
        text += &format!("\n{}", table.render(style, page.width));
    }
    if let Some(effects) = &over_all.effects {
        text += &format!("\n{}", effects.text(style, page.width));
    }
    text + &worst(judged)
}

/// The loads with the smallest part of near figures, as files to be run again.
fn worst(judged: &[Judged]) -> String {
    let mut worst: Vec<(&Judged, usize, usize)> = judged
        .iter()
        .map(|it| (it, it.near()))
        .map(|(it, (all, near))| (it, all, near))
        .filter(|(_, all, near)| near < all)
        .collect();
    // In parts of a million; those with more figures first where they are alike.
    worst.sort_by_key(|(_, all, near)| (near * 1_000_000 / all, Reverse(*all)));
    let mut text = String::new();
    for (it, all, near) in worst.into_iter().take(WORST) {
        let file = &it.load.target;
        let again = match it.load.kernel_runs.as_ref().or(it.load.out.as_ref()) {
            Some(dir) => format!("lowmark twin {file} --kernel-runs {}", dir.display()),
            None => format!("lowmark twin {file}"),
        };
        text += &format!("\n  {near} of {all} near: {again}");
    }
    match text.is_empty() {
        true => text,
        false => format!("\nthe worst, to be judged again:{text}\n"),
    }
}
