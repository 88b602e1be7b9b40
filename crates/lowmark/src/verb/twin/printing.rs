//! What is printed of twins: each as a table, and of several what they have in common.

use super::loads::Load;
use super::{Args, Pair};
use crate::cli::Format;
use crate::guests;
use crate::output;
use crate::page::PageFile;
use lowmark_report::document::{Document, Section, separated};
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

    fn sections(&self) -> Vec<Section<'static>> {
        let twins = self.twins.iter().map(|(twin, system)| {
            let mut section = Section::titled(format!(
                "{} on {}, {}",
                twin.workload, twin.machine, twin.kernel
            ));
            section.line(format!("{system}; runs of each: {}", twin.runs));
            section.blank();
            section.append(twin.section());
            section
        });
        let mut sections: Vec<Section<'static>> = twins.collect();
        sections.extend(self.remarks());
        sections
    }

    fn remarks(&self) -> Option<Section<'static>> {
        let mut section = Section::new();
        for title in &self.missing {
            section.line(format!("no run of the kernel was kept: {title}"));
        }
        if let Some(error) = &self.error {
            for line in format!("{}: {error}", self.load.name).lines() {
                section.line(line);
            }
        }
        (!section.is_empty()).then_some(section)
    }
}

/// Prints it all: of files each twin, of random loads a line for each; of several the rest.
pub(super) fn print(
    args: &Args,
    judged: &[Judged],
    several: bool,
    page: PageFile,
) -> miette::Result<()> {
    let twins = || {
        judged
            .iter()
            .flat_map(|it| it.twins.iter().map(|(twin, _)| twin))
    };
    let document = document(args, judged, several);
    match (args.printing.format, several) {
        (Format::Json, false) => match twins().collect::<Vec<_>>().as_slice() {
            [twin] => output::print_json(twin),
            twins => output::print_json(&twins),
        },
        (Format::Json, true) => output::print_json(&over_all(args, judged)),
        (Format::Table, _) => output::print_document(&document),
    }?;
    page.write(&document, args.running.quiet)
}

fn document(args: &Args, judged: &[Judged], several: bool) -> Document<'static> {
    let mut sections = Vec::new();
    if !several {
        sections = separated(judged.iter().flat_map(Judged::sections).collect());
    } else if args.workloads.is_empty() {
        sections.push(lines(judged));
    } else {
        for it in judged {
            let mut chapter = Section::chapter(&it.load.name);
            for part in separated(it.sections()) {
                chapter.append(part);
            }
            chapter.blank();
            sections.push(chapter);
        }
    }
    if several {
        sections.push(over_all_section(args, judged));
    }
    let mut names: Vec<&str> = args.workloads.iter().map(String::as_str).collect();
    if names.is_empty() {
        names.push("of several loads");
    }
    Document {
        name: format!("lowmark twin {}", names.join(" ")),
        sections,
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
fn lines(judged: &[Judged]) -> Section<'static> {
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
    let mut section = Section::chapter("Loads");
    section.table(table);
    section.blank();
    for remarks in judged.iter().filter_map(Judged::remarks) {
        section.append(remarks);
    }
    section.blank();
    section
}

fn over_all_section(args: &Args, judged: &[Judged]) -> Section<'static> {
    let over_all = over_all(args, judged);
    let mut section = Section::chapter("Over all loads");
    match &over_all.distribution {
        Some(distribution) => section.append(distribution.section()),
        None => section.line("no counter moved"),
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
        section.blank();
        section.table(table);
    }
    if let Some(effects) = &over_all.effects {
        section.blank();
        section.append(effects.section());
    }
    let worst = worst(judged);
    if !worst.is_empty() {
        section.blank();
        section.line("the worst, to be judged again:");
        worst.into_iter().for_each(|line| section.line(line));
    }
    section
}

/// The loads with the smallest part of near figures, as files to be run again.
fn worst(judged: &[Judged]) -> Vec<String> {
    let mut worst: Vec<(&Judged, usize, usize)> = judged
        .iter()
        .map(|it| (it, it.near()))
        .map(|(it, (all, near))| (it, all, near))
        .filter(|(_, all, near)| near < all)
        .collect();
    // In parts of a million; those with more figures first where they are alike.
    worst.sort_by_key(|(_, all, near)| (near * 1_000_000 / all, Reverse(*all)));
    let worst = worst.into_iter().take(WORST).map(|(it, all, near)| {
        let file = &it.load.target;
        let again = match it.load.kernel_runs.as_ref().or(it.load.out.as_ref()) {
            Some(dir) => format!("lowmark twin {file} --kernel-runs {}", dir.display()),
            None => format!("lowmark twin {file}"),
        };
        format!("  {near} of {all} near: {again}")
    });
    worst.collect()
}
