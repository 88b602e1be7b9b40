//! What is made of traces and recordings, as functions of any bytes: reports, comparisons, exports. Fuzz targets
//! run them, and `crates/lowmark/tests/fuzz_reports.rs` replays their corpus.
//!
//! 1. Everything comes to an end without a panic, an overflow or a failed assertion.
//! 2. What can be checked without knowing the right answer is: made again it is the same, no event is missing in
//!    a report, an exported trace has the events that were written, and nothing that a terminal obeys comes out.

use lowmark_record::store::{EVENTS_FILE, RECORDING_FILE};
use lowmark_record::{Account, Event, Recording, Release, Sink, Tables};
use lowmark_report::Comparison;
use lowmark_report::dirty::DirtyReport;
use lowmark_report::reclaim::{
    self, CompatReport, ReclaimFigures, ReclaimOptions, ReclaimReport, ReportColumn, RunContext,
};
use lowmark_report::table::PlainStyle;
use lowmark_report::why::{Surroundings, WhyOptions, WhyReport};
use lowmark_trace::export::{self, EraFinder, Exported, Exporter, Format, Options};
use lowmark_trace::input::Input;
use std::io::Cursor;
use std::path::Path;

/// Takes the numbers that were read.
pub type Look<'a> = dyn FnMut(u64) + 'a;

/// A maker of something.
pub type Target = fn(&[u8], &mut Look<'_>);

/// All of them, with their names: those of the binaries and of the directories of the corpus.
pub const TARGETS: [(&str, Target); 3] = [
    ("report", report),
    ("export", exports),
    ("recording", recording),
];

/// Widths of the terminals on which a report is printed; the number of its events chooses one.
const WIDTHS: [Option<usize>; 3] = [None, Some(20), Some(80)];

/// What stands between `recording.json` and `events.jsonl` in one input.
const BETWEEN: u8 = 0;

/// Forms of events that need nothing but a file.
const FORMATS: [Format; 5] = [
    Format::Ftrace,
    Format::TraceDat,
    Format::Perfetto,
    Format::Json,
    Format::Csv,
];

/// All that is made of the events of one source.
struct All<'a, 'b> {
    reclaim: ReclaimReport,
    dirty: DirtyReport,
    compat: CompatReport,
    why: WhyReport,
    look: &'a mut Look<'b>,
}

impl Sink for All<'_, '_> {
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.reclaim.event(event, tables);
        self.dirty.event(event, tables);
        self.compat.event(event, tables);
        self.why.event(event, tables);
        event.fields().for_each(|(_, value)| (self.look)(value));
    }
}

impl<'a, 'b> All<'a, 'b> {
    fn new(look: &'a mut Look<'b>) -> All<'a, 'b> {
        All {
            reclaim: ReclaimReport::new(ReclaimOptions {
                compare_script: true,
                release: None,
            }),
            dirty: DirtyReport::default(),
            compat: CompatReport::new(None::<Release>),
            why: WhyReport::new(WhyOptions::default()),
            look,
        }
    }

    /// Everything that `report`, `why` and `compare` print of it.
    fn told(
        self,
        tables: &Tables,
        account: &Account,
        context: RunContext,
        surroundings: &Surroundings,
    ) -> String {
        let figures = self.reclaim.finish(tables, account.clone(), context);
        assert_eq!(
            figures.events.values().sum::<u64>(),
            account.understood,
            "events in the report"
        );
        let mut told = figures.json().to_string();
        let width = WIDTHS[(account.understood % WIDTHS.len() as u64) as usize];
        told += &printable(side_by_side(&figures, width));
        told += &printable(self.dirty.text(&PlainStyle, width.unwrap_or(100)));
        told += &format!("{:?}", self.dirty.figures());
        let answer = self.why.finish(tables, account, surroundings);
        told += &printable(answer.text(&PlainStyle, width));
        told += &printable(answer.short().text(&PlainStyle, width));
        told += &answer.json().to_string();
        for ignore_pid in [false, true] {
            told += &self.compat.summary(ignore_pid).text();
        }
        told
    }
}

/// The report on one trace, on two of them, and their comparison.
fn side_by_side(figures: &ReclaimFigures, width: Option<usize>) -> String {
    let column = |reports| ReportColumn {
        name: "\u{1b}[2Jfuzz".to_owned(),
        reports,
    };
    let two = [column(vec![figures]), column(vec![figures, figures])];
    let comparison = Comparison::of_traces(&two);
    let mut text = reclaim::section(&two[..1]).text(&PlainStyle, width);
    text += &reclaim::section(&two).text(&PlainStyle, width);
    text += &comparison.text(&PlainStyle, width);
    assert!(comparison.json().is_object());
    text
}

fn printable(text: String) -> String {
    let obeyed = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(obeyed, None, "{text:?}");
    text
}

/// A trace of any kind, as `report`, `report --compat` and `compare` read it.
pub fn report(data: &[u8], look: &mut Look<'_>) {
    let told = |look: &mut Look<'_>| {
        let input = Input::from_reader("fuzz", Cursor::new(data.to_vec())).ok()?;
        let mut all = All::new(look);
        let source = lowmark_trace::read(input, &mut all).ok()?;
        let (context, nothing) = (RunContext::default(), Surroundings::default());
        Some(all.told(&source.tables, &source.account, context, &nothing))
    };
    let first = told(look);
    assert!(
        !made_twice(data) || first == told(&mut |_| {}),
        "reported twice"
    );
}

/// Whether the report on this input is made a second time, to see that it is the same: under the fuzzer, where a
/// report takes most of the time, that is one in several, which the sum of its bytes chooses.
fn made_twice(data: &[u8]) -> bool {
    let sum = data.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    sum.is_multiple_of(super::SECOND_TIME_EVERY)
}

/// A trace of any kind, as `export` reads it, in every form.
pub fn exports(data: &[u8], look: &mut Look<'_>) {
    let open = || Input::from_reader("fuzz", Cursor::new(data.to_vec())).ok();
    let Some(input) = open() else {
        return;
    };
    let mut finder = EraFinder::default();
    let Ok(source) = lowmark_trace::read(input, &mut finder) else {
        return;
    };
    look(source.account.understood);
    let mut options = Options::new("fuzz");
    options.any_comm = true;
    options.release = finder.release();
    let place = tempfile::tempdir().expect("a directory");
    let path = |format: Format| place.path().join(format.name());
    let create = |format| export::create(format, &path(format), &options).expect("created");
    let mut forward = Forward(FORMATS.map(create).into());
    let input = open().expect("opened before");
    lowmark_trace::read(input, &mut forward).expect("read before");
    for (format, exporter) in FORMATS.into_iter().zip(forward.0) {
        let exported = exporter.finish().expect("written");
        check(format, &path(format), &exported, &source.account);
    }
}

/// Passes events on to exporters, each of which writes a file of its own.
struct Forward(Vec<Box<dyn Exporter>>);

impl Sink for Forward {
    fn event(&mut self, event: &Event, tables: &Tables) {
        for exporter in &mut self.0 {
            exporter.event(event, tables);
        }
    }
}

/// No event is missing, and what is text can be read again.
fn check(format: Format, path: &Path, exported: &Exported, account: &Account) {
    let left_out: u64 = exported.not_in_era.values().sum();
    assert_eq!(exported.events + left_out, account.understood, "{format}");
    if format == Format::Ftrace && exported.events > 0 {
        let input = Input::open(path).expect("a trace");
        let again = lowmark_trace::read(input, &mut EraFinder::default()).expect("a trace");
        assert_eq!(
            again.account.understood, exported.events,
            "{:?}",
            again.account
        );
    }
}

/// A recording: `recording.json`, a byte 0 and `events.jsonl`, as `report` and `export` read it.
pub fn recording(data: &[u8], look: &mut Look<'_>) {
    let between = data.iter().position(|byte| *byte == BETWEEN);
    let (document, events) = match between {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    let place = tempfile::tempdir().expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(place.path().join(name), bytes).expect("written");
    };
    write(RECORDING_FILE, document);
    write(EVENTS_FILE, events);
    let told = |look: &mut Look<'_>| {
        let mut all = All::new(look);
        let (recording, source) = Recording::stream(place.path(), &mut all).ok()?;
        all.dirty.gauges(&recording);
        let context = RunContext {
            elapsed_s: Some(recording.elapsed_ns as f64 / 1e9),
            user_s: Some(1.0),
            system_s: Some(1.0),
            vmstat: Some(reclaim::VmstatChange {
                counters: recording.counters.clone(),
                fell: Vec::new(),
            }),
        };
        let known = Surroundings::of_recording(&recording);
        Some(all.told(&source.tables, &source.account, context, &known))
    };
    let first = told(look);
    assert!(
        !made_twice(data) || first == told(&mut |_| {}),
        "reported twice"
    );
    let Ok(recording) = Recording::read(place.path()) else {
        assert!(first.is_none(), "refused as a whole, reported as a stream");
        return;
    };
    let path = place.path().join("perfetto");
    let exporter = export::create(Format::Perfetto, &path, &Options::new("fuzz"));
    let source = recording.replay(&mut Forward(vec![exporter.expect("created")]));
    assert_eq!(source.account.understood, recording.events.len() as u64);
    // A key may stand twice in what was read, and its first text is then in no event: what is written counts.
    let written = tempfile::tempdir().expect("a directory");
    let (first, second) = (written.path().join("1"), written.path().join("2"));
    recording.write(&first).expect("it was read");
    let again = Recording::read(&first).expect("it was written");
    again.write(&second).expect("it was read");
    for file in [RECORDING_FILE, EVENTS_FILE] {
        let [first, second] = [&first, &second].map(|dir| std::fs::read(dir.join(file)).ok());
        assert_eq!(first, second, "{file} written again");
    }
}
