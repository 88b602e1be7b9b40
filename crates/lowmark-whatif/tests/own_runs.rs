//! Runs of the model reconstructed by the model: what is put in has to come out.

use lowmark_record::Recording;
use lowmark_spec::{BuiltIn, KernelSpec, Machine, Overrides, Scenario, Source, parse};
use lowmark_whatif::{
    Access, Answer, COUNTERS, Candidate, Error, Figures, Kind, Order, Question, Runner, Setting,
    Verdict, ask,
};

const RAM: u64 = 48 << 20;
const PAGES: u64 = 14_000;

/// The model on a small machine, with one kernel as it was and another as it would be.
struct Model {
    machine: Machine,
    was: KernelSpec,
    would_be: KernelSpec,
}

impl Model {
    fn new(was: &str, would_be: &str) -> Model {
        let kernel = |text| KernelSpec::parse(text).expect("a kernel");
        Model {
            machine: Machine::small(RAM, 256 << 20),
            was: kernel(was),
            would_be: kernel(would_be),
        }
    }

    fn recording(&self, load: &Candidate, setting: Setting) -> Recording {
        let scenario = self.scenario(load, setting).expect("a scenario");
        self.run(vec![scenario]).expect("it runs").remove(0)
    }
}

impl Runner for Model {
    type Error = String;

    fn run(&self, scenarios: Vec<Scenario>) -> Result<Vec<Recording>, String> {
        let options = lowmark_model::Options::default();
        let run = |scenario| lowmark_model::run(&scenario, &options, &mut |_| {});
        let runs = scenarios.into_iter().map(run);
        runs.collect::<Result<_, _>>().map_err(|it| it.to_string())
    }

    fn scenario(&self, load: &Candidate, setting: Setting) -> Result<Scenario, String> {
        let source = Source {
            name: "load".to_owned(),
            text: load.text("guest-256m", "v6.1"),
        };
        let scenarios = parse(&source, &BuiltIn, &Overrides::default());
        let mut scenario = scenarios.map_err(|it| it.to_string())?.remove(0);
        scenario.machine = self.machine.clone();
        scenario.kernel = match setting {
            Setting::Was => self.was.clone(),
            Setting::WouldBe => self.would_be.clone(),
        };
        Ok(scenario)
    }
}

const NOTHING_SPECIAL: Question = Question {
    other_kernel: false,
    readahead_from_none: false,
    less_memory: false,
};

fn load(kind: Kind, order: Order, access: Access) -> Candidate {
    Candidate {
        kind,
        order,
        access,
        pages: PAGES,
        touches: PAGES + PAGES / 3,
    }
}

fn answer(model: &Model, load: &Candidate) -> Answer {
    let recording = model.recording(load, Setting::Was);
    match ask(&recording, NOTHING_SPECIAL, model) {
        Ok(answer) => answer,
        Err(Error::Refused(refusal)) => panic!("{load:?} is refused: {refusal}"),
        Err(Error::Run(error)) => panic!("{load:?}: {error}"),
    }
}

/// A load of each class is found again: its order, its size within a hundredth, and all counters within 4 % or so.
#[test]
fn loads_are_found_again() {
    let model = Model::new("v6.1", "v6.1,page_cluster=0");
    for kind in [Kind::Private, Kind::Shared] {
        for order in [Order::Forward, Order::Backward, Order::Random] {
            let put_in = load(kind, order, Access::Write);
            let answer = answer(&model, &put_in);
            let best = &answer.load.fit.kept[0];
            assert!(best.loss < 2_000, "{put_in:?}: {best:?}");
            assert_eq!(best.candidate.order, order, "{put_in:?}: {best:?}");
            let off = best.candidate.pages.abs_diff(PAGES);
            assert!(off <= PAGES / 20, "{put_in:?}: {best:?}");
        }
    }
}

/// What the reconstructions say of a setting is what the load itself does with it.
#[test]
fn answers_are_what_the_load_does() {
    let model = Model::new("v6.1", "v6.1,page_cluster=0");
    let put_in = load(Kind::Private, Order::Forward, Access::Write);
    let answer = answer(&model, &put_in);
    let truth = Figures::of(&model.recording(&put_in, Setting::WouldBe));
    let mut numbers = 0;
    for row in &answer.rows {
        let at = COUNTERS.iter().position(|counter| counter.name == row.name);
        let truth = truth.0[at.expect("a counter")].expect("a figure");
        if row.verdict == Verdict::Number {
            let off = row.would_be.abs_diff(truth);
            assert!(off * 10 <= truth, "{row:?}, and it is {truth}");
            numbers += 1;
        }
    }
    // A fault without readahead brings one page in, so that there are many more of them.
    let major = answer.rows.iter().find(|row| row.name == "pgmajfault");
    assert!(
        major.is_some_and(|row| row.would_be > 4 * row.was),
        "{major:?}"
    );
    assert!(numbers > 0);
}

#[test]
fn the_same_recording_gives_the_same_answer() {
    let model = Model::new("v6.1", "v6.1,watermark_scale_factor=200");
    let put_in = load(Kind::Private, Order::Random, Access::ReadLater);
    let [first, second] = [0; 2].map(|_| answer(&model, &put_in));
    assert_eq!(first.rows, second.rows);
    assert_eq!(first.load.fit, second.load.fit);
}

/// Counters of a load that has huge pages, files or writers in it are not taken for memory of its own.
#[test]
fn what_is_not_reconstructed_is_refused() {
    let model = Model::new("v6.1", "v6.1,swappiness=10");
    let recording = model.recording(
        &load(Kind::Private, Order::Forward, Access::Write),
        Setting::Was,
    );
    for (counter, value, word) in [
        ("thp_fault_alloc", 3, "huge page"),
        ("pgsteal_file", 30_000, "files"),
        ("nr_dirtied", 30_000, "writers"),
        ("pgfault", 10, "fewer than"),
    ] {
        let mut changed = recording.clone();
        changed.counters.insert(counter.to_owned(), value);
        match ask(&changed, NOTHING_SPECIAL, &model) {
            Err(Error::Refused(refusal)) => assert!(refusal.because.contains(word), "{refusal}"),
            other => panic!("{counter}: {other:?}"),
        }
    }
}

/// Whatever a recording claims, there is an answer or a refusal.
#[test]
fn counters_out_of_this_world_are_refused() {
    let model = Model::new("v6.1", "v6.1,swappiness=10");
    let recording = model.recording(
        &load(Kind::Private, Order::Forward, Access::Write),
        Setting::Was,
    );
    for name in [
        "",
        "pswpin",
        "pgpgin",
        "pgfault",
        "pgalloc_dma32",
        "pgsteal_direct",
        "pgmajfault",
    ] {
        let mut changed = recording.clone();
        for (counter, value) in &mut changed.counters {
            if counter.starts_with(name) {
                *value = u64::MAX;
            }
        }
        let answer = ask(&changed, NOTHING_SPECIAL, &model);
        assert!(
            !matches!(answer, Err(Error::Run(_))),
            "{name:?}: {answer:?}"
        );
    }
}

/// Where the kernel did what no load of memory alone does, nothing is answered.
#[test]
fn a_load_that_does_not_fit_is_refused() {
    let model = Model::new("v6.1", "v6.1,swappiness=10");
    let mut recording = model.recording(
        &load(Kind::Private, Order::Forward, Access::Write),
        Setting::Was,
    );
    for (name, value) in &mut recording.counters {
        if name.starts_with("pgsteal") || name.starts_with("pswpout") {
            *value = *value * 9 + 50_000;
        }
    }
    let refused = ask(&recording, NOTHING_SPECIAL, &model);
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
}
