//! `lowmark report`: what a trace or a recording says about reclaim.

use crate::cli::{Format, Paging, Printing};
use crate::error;
use crate::output;
use crate::page::PageFile;
use crate::traces;
use lowmark_record::{Event, Release, Remark, Sink, Tables};
use lowmark_report::dirty::{DirtyFigures, DirtyReport, is_impossible};
use lowmark_report::document::{Document, Section};
use lowmark_report::host::HostReport;
use lowmark_report::plot::Plot;
use lowmark_report::reclaim::{
    self, CompatReport, ReclaimFigures, ReclaimOptions, ReclaimReport, ReportColumn, RunContext,
    VmstatChange,
};
use lowmark_report::table::printable_lines;
use lowmark_report::why::{Answer, Surroundings, WhyOptions, WhyReport};
use miette::{IntoDiagnostic, WrapErr, miette};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Reports on reclaim and dirty throttling from traces and recordings
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  lowmark report trace.txt.xz\n  lowmark report trace.dat --format json\n  \
    cat /sys/kernel/tracing/trace_pipe | lowmark report -\n  \
    lowmark report runs/a --vmstat before.txt after.txt --html report.html\n\n\
    Reads ftrace text of every kernel, perf script, trace-cmd report, trace.dat, perf.data (plain or \
    gz, xz, zst), recordings with events, and recordings of hosts. Exit status 2 if the file is cut or damaged: what could \
    be read is reported all the same."
)]
pub(crate) struct Args {
    /// Trace files, recordings, directories of recordings, or `-` for standard input
    #[arg(required = true, value_name = "TRACE|DIR")]
    traces: Vec<String>,
    /// What the kernel's trace-vmscan-postprocess.pl would say, its faults included but for one: its tables by process
    /// have values under headings of others, as a printf lacks fields; here each stands under its own
    #[arg(long, conflicts_with = "html")]
    compat: bool,
    /// With --compat: folds processes of the same name, as the script's option of this name does
    #[arg(long, requires = "compat")]
    ignore_pid: bool,
    /// An error, and no report, if anything was lost, unsorted, damaged, not understood or impossible
    #[arg(long)]
    strict: bool,
    /// /proc/vmstat before and after; or one file with the columns counter, before, after
    #[arg(long, num_args = 1..=2, value_names = ["BEFORE", "AFTER"])]
    vmstat: Vec<PathBuf>,
    /// Elapsed time of the test, s
    #[arg(long, value_name = "S", value_parser = seconds)]
    elapsed: Option<f64>,
    /// User time of the test, s
    #[arg(long, value_name = "S", value_parser = seconds)]
    user: Option<f64>,
    /// System time of the test, s
    #[arg(long, value_name = "S", value_parser = seconds)]
    system: Option<f64>,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    paging: Paging,
}

/// Does it.
pub(crate) fn run(args: &Args) -> miette::Result<u8> {
    let page = PageFile::create(&args.paging)?;
    let vmstat = vmstat(&args.vmstat)?;
    let targets = traces::targets(&args.traces)?;
    if vmstat.is_some() && targets.len() > 1 {
        return Err(miette!(
            help = "give one trace, or leave --vmstat away",
            "--vmstat belongs to one trace"
        ));
    }
    if args.compat {
        return compat(args, &targets);
    }
    let mut reports = Vec::new();
    let mut broken = false;
    for target in &targets {
        let context = RunContext {
            vmstat: vmstat.clone(),
            elapsed_s: args.elapsed,
            user_s: args.user,
            system_s: args.system,
        };
        let read = figures(target, context)?;
        broken |= say(target, &read, args.strict)?;
        reports.push(read);
    }
    tell_apart(&mut reports, &targets);
    let document = document(&reports);
    match args.printing.format {
        Format::Json if reports.len() == 1 => output::print_json(&reports[0].json())?,
        Format::Json => {
            let named = reports.iter().map(|r| (r.name.clone(), r.json()));
            output::print_json(&serde_json::Map::from_iter(named))?;
        }
        Format::Table => output::print_document(&document)?,
    }
    page.write(&document, false)?;
    Ok(if broken { error::EXIT_STATUS } else { 0 })
}

/// All reports as one, of which parts have what they are of in their headings if there are several.
fn document(reports: &[Read]) -> Document<'_> {
    let several = reports.len() > 1;
    let mut section = Section::new();
    for report in reports {
        for remark in &report.not_modelled {
            section.paragraph(format!("note: {}: {remark}", report.name), 0);
        }
    }
    for report in reports {
        if several {
            section.title(&report.name);
        }
        section.append(report.why.short());
        section.blank();
        for mut plot in report.why.plots(&report.figures, &report.dirty) {
            if let (true, Plot::Course(course)) = (several, &mut plot) {
                course.title += &format!(": {}", report.name);
            }
            section.plot(plot);
        }
    }
    // What happened comes before what did not.
    let (first, last): (Vec<&Read>, Vec<&Read>) =
        reports.iter().partition(|report| !report.reclaimed());
    for report in first {
        if let Some(throttling) = report.throttling(several) {
            section.append(throttling);
            section.blank();
        }
    }
    let with_events = reports.iter().filter(|report| report.has_events());
    let columns: Vec<ReportColumn<'_>> = with_events.map(Read::column).collect();
    if !columns.is_empty() {
        section.append(reclaim::section(&columns));
    }
    for report in last {
        if let Some(throttling) = report.throttling(several) {
            section.blank();
            section.append(throttling);
        }
    }
    for host in reports.iter().filter_map(|report| report.host.as_ref()) {
        section.blank();
        section.append(host.section());
    }
    let names = reports.iter().map(|report| report.name.as_str());
    Document {
        name: format!("lowmark report {}", names.collect::<Vec<_>>().join(" ")),
        sections: vec![section],
    }
}

/// A length of time, s.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|s: &f64| s.is_finite() && *s >= 0.0);
    seconds.ok_or_else(|| "expected seconds, for example 12.5".to_owned())
}

/// A trace or recording, read.
pub(crate) struct Read {
    /// Heading of its column.
    pub(crate) name: String,
    /// What it says of reclaim.
    pub(crate) figures: ReclaimFigures,
    /// What it says of dirty throttling.
    dirty: DirtyReport,
    /// Why tasks waited.
    why: Answer,
    /// Of a recording, what its backend left out.
    not_modelled: Vec<Remark>,
    /// Of the recording of a host, what its counters say.
    host: Option<HostReport>,
}

/// Events for all reports.
struct All<'a>(
    &'a mut ReclaimReport,
    &'a mut DirtyReport,
    &'a mut WhyReport,
);

impl Sink for All<'_> {
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.0.event(event, tables);
        self.1.event(event, tables);
        self.2.event(event, tables);
    }
}

impl Read {
    /// What is said of dirty throttling, if that is anything.
    fn throttling(&self, several: bool) -> Option<Section<'_>> {
        let mut section = Section::new();
        if several {
            section.title(&self.name);
        }
        section.append(self.dirty.section());
        (!self.dirty.is_empty()).then_some(section)
    }

    /// Whether anybody reclaimed anything, or waited for that.
    fn reclaimed(&self) -> bool {
        let begins = self.figures.pairs.iter().any(|pairs| pairs.begins > 0);
        let mut events = self.figures.events.keys();
        begins || events.any(|name| name.starts_with("mm_vmscan_lru_"))
    }

    /// The column of a report.
    pub(crate) fn column(&self) -> ReportColumn<'_> {
        ReportColumn {
            name: self.name.clone(),
            reports: vec![&self.figures],
        }
    }

    /// What it says of dirty throttling.
    pub(crate) fn dirty_figures(&self) -> DirtyFigures {
        self.dirty.figures()
    }

    /// Whether there was any event: only the recording of a host may have none.
    pub(crate) fn has_events(&self) -> bool {
        self.figures.account.understood > 0
    }

    /// The report as JSON, with what it says of dirty throttling, what was left out and what the counters of a host say,
    /// if that is anything.
    fn json(&self) -> serde_json::Value {
        let mut document = if self.has_events() {
            self.figures.json()
        } else {
            serde_json::json!({})
        };
        if let Some(fields) = document.as_object_mut()
            && let Some(host) = &self.host
        {
            // Numbers and names: nothing that JSON cannot hold.
            let host = serde_json::to_value(host).unwrap_or_default();
            fields.insert("host".to_owned(), host);
        }
        if let Some(fields) = document.as_object_mut()
            && !self.dirty.is_empty()
        {
            // Numbers and names: nothing that JSON cannot hold.
            let dirty = serde_json::to_value(self.dirty.figures()).unwrap_or_default();
            fields.insert("dirty_throttling".to_owned(), dirty);
        }
        if let Some(fields) = document.as_object_mut()
            && !self.not_modelled.is_empty()
        {
            let remarks = serde_json::to_value(&self.not_modelled).unwrap_or_default();
            fields.insert("not_modelled".to_owned(), remarks);
        }
        document
    }
}

/// Reads a target to its figures. Of a recording the run's own counters and times are known.
pub(crate) fn figures(target: &str, context: RunContext) -> miette::Result<Read> {
    let mut report = ReclaimReport::new(ReclaimOptions {
        compare_script: true,
        release: None,
    });
    let mut dirty = DirtyReport::default();
    let mut why = WhyReport::new(WhyOptions::default());
    let mut all = All(&mut report, &mut dirty, &mut why);
    let (source, recording) = traces::read(target, &mut all)?;
    let mut context = context;
    let mut surroundings = Surroundings::default();
    if let Some(recording) = &recording {
        dirty.gauges(recording);
        surroundings = Surroundings::of_recording(recording);
        let own = RunContext::of(recording);
        context = RunContext {
            vmstat: context.vmstat.or(own.vmstat),
            elapsed_s: context.elapsed_s.or(own.elapsed_s),
            user_s: context.user_s.or(own.user_s),
            system_s: context.system_s.or(own.system_s),
        };
    }
    if let Some(change) = &context.vmstat {
        surroundings.counters = Some(change.counters.clone());
    }
    Ok(Read {
        why: why.finish(&source.tables, &source.account, &surroundings),
        host: recording.as_ref().and_then(HostReport::new),
        not_modelled: recording.map_or_else(Vec::new, |recording| recording.not_modelled),
        dirty,
        name: heading(target),
        figures: report.finish(&source.tables, source.account, context),
    })
}

/// Headings are names of files; where two are the same, whole paths.
fn tell_apart(reports: &mut [Read], targets: &[String]) {
    let names: BTreeSet<&String> = reports.iter().map(|report| &report.name).collect();
    if names.len() < reports.len() {
        for (report, target) in reports.iter_mut().zip(targets) {
            report.name.clone_from(target);
        }
    }
}

/// The last part of a path, without what says its format.
pub(super) fn heading(target: &str) -> String {
    let name = Path::new(target).file_name();
    let name = name.map_or(target.to_owned(), |name| {
        name.to_string_lossy().into_owned()
    });
    let endings = [
        ".xz",
        ".gz",
        ".zst",
        ".txt",
        ".trace",
        ".dat",
        ".data",
        ".perf",
        ".perf-script",
    ];
    let mut short = name.as_str();
    while let Some(shorter) = endings.iter().find_map(|ending| short.strip_suffix(ending)) {
        short = shorter;
    }
    match short {
        "" => name,
        short => short.to_owned(),
    }
}

/// Says what makes figures uncertain; with `strict` that is an error. Whether the file is broken.
pub(crate) fn say(target: &str, read: &Read, strict: bool) -> miette::Result<bool> {
    let account = &read.figures.account;
    let doubts = traces::doubts(target, account, read.dirty.impossible());
    if strict && !doubts.is_empty() {
        return Err(miette!(
            help = "without --strict what could be read is reported",
            "{}",
            doubts.join("; ")
        ));
    }
    for doubt in doubts {
        output::remark(false, &format!("warning: {doubt}"));
    }
    Ok(traces::is_broken(account))
}

/// What `--vmstat` names.
pub(super) fn vmstat(files: &[PathBuf]) -> miette::Result<Option<VmstatChange>> {
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path)
            .into_diagnostic()
            .wrap_err_with(|| format!("{}: cannot read", path.display()))
    };
    let change = match files {
        [] => return Ok(None),
        [table] => VmstatChange::from_table(&read(table)?)
            .into_diagnostic()
            .wrap_err_with(|| table.display().to_string())?,
        [before, after, ..] => VmstatChange::between(&read(before)?, &read(after)?)
            .into_diagnostic()
            .wrap_err_with(|| format!("{}, {}", before.display(), after.display()))?,
    };
    Ok(Some(change))
}

/// Feeds the script's double, and counts what other reports leave out.
struct Compat {
    report: CompatReport,
    impossible: u64,
}

impl Sink for Compat {
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.impossible += u64::from(is_impossible(event));
        self.report.event(event, tables);
    }
}

fn compat(args: &Args, targets: &[String]) -> miette::Result<u8> {
    let mut sections = Vec::new();
    let mut documents = serde_json::Map::new();
    let mut broken = false;
    for target in targets {
        let mut compat = Compat {
            report: CompatReport::new(None::<Release>),
            impossible: 0,
        };
        let (source, _) = traces::read(target, &mut compat)?;
        broken |= traces::is_broken(&source.account);
        let doubts = traces::doubts(target, &source.account, compat.impossible);
        if args.strict && !doubts.is_empty() {
            return Err(miette!("{}", doubts.join("; ")));
        }
        doubts
            .iter()
            .for_each(|doubt| output::remark(false, &format!("warning: {doubt}")));
        let summary = compat.report.summary(args.ignore_pid);
        let document = serde_json::to_value(&summary).into_diagnostic()?;
        documents.insert(heading(target), document);
        sections.push(summary.text());
    }
    match args.printing.format {
        Format::Table => output::print(&printable_lines(&sections.join("\n")))?,
        Format::Json => output::print_json(&documents)?,
    }
    Ok(if broken { error::EXIT_STATUS } else { 0 })
}
