//! The search on figures that follow from known effects and known noise.

use super::*;
use crate::comparison::Measured;
use crate::stats::Preference;
use crate::table::PlainStyle;
use crate::vmstat::ValueFormat;

const REPEATS: usize = 8;

/// Random numbers by SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of the standard normal distribution, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

fn row(name: &str, value: f64) -> Measured {
    Measured {
        name: name.to_owned(),
        unit: "s",
        better: Preference::Lower,
        format: ValueFormat::Decimals(2),
        value,
        exact: value,
    }
}

fn figures(rows: &[(&str, f64)]) -> Figures {
    Figures {
        cells: Vec::new(),
        rows: rows.iter().map(|(name, value)| row(name, *value)).collect(),
        counters: Default::default(),
    }
}

fn changes(count: usize) -> Vec<Change> {
    let change = |at: usize| Change {
        name: format!("c{at}"),
        version: Some("v9.9".to_owned()),
        commit: Some("0123456789ab".to_owned()),
        summary: format!("change {at}"),
    };
    (0..count).map(change).collect()
}

/// Names and values of the figures of a run.
type Values = Vec<(&'static str, f64)>;

/// Searches among so many changes: `value` is what figures a kernel has without noise, which is of the size 1.
fn search(count: usize, seed: u64, value: &dyn Fn(&Subset) -> Option<Values>) -> Verdict {
    let ends = ["a", "b"].map(str::to_owned);
    let mut bisection = Bisection::new(ends, changes(count), Vec::new());
    let mut random = Random(seed);
    loop {
        let wanted = bisection.wanted().expect("no figure was asked for");
        if wanted.is_empty() {
            break;
        }
        for subset in wanted {
            let Some(rows) = value(&subset) else {
                bisection.refused(subset, "none".to_owned());
                continue;
            };
            let one = |random: &mut Random| {
                let noisy = |(name, value): &(&'static str, f64)| (*name, value + random.normal());
                figures(&rows.iter().map(noisy).collect::<Vec<_>>())
            };
            let repeats: Vec<Figures> = (0..REPEATS).map(|_| one(&mut random)).collect();
            bisection.measured(subset, repeats.into());
        }
    }
    bisection.verdict().expect("no figure was asked for")
}

fn named(metric: &MetricVerdict) -> Vec<usize> {
    let mut named: Vec<usize> = metric.named().flat_map(|it| it.changes.clone()).collect();
    named.sort_unstable();
    named
}

fn sum(subset: &Subset, effects: &[(usize, f64)]) -> f64 {
    let of = |(at, effect): &(usize, f64)| if subset[*at] { *effect } else { 0.0 };
    100.0 + effects.iter().map(of).sum::<f64>()
}

/// Three causes of 5 to 25 times the noise, up or down, among 23 changes: nearly always those are named and no others.
#[test]
fn three_causes_among_twenty_others_are_named() {
    let (mut right, mut wrong) = (0, 0);
    for puzzle in 0..200u64 {
        let mut random = Random(1000 + puzzle);
        let mut effects: Vec<(usize, f64)> = Vec::new();
        while effects.len() < 3 {
            let at = random.below(23);
            let sign = if random.unit() < 0.8 { -1.0 } else { 1.0 };
            if effects.iter().all(|(known, _)| *known != at) {
                effects.push((at, sign * (5.0 + 20.0 * random.unit())));
            }
        }
        let total: f64 = effects.iter().map(|(_, effect)| effect).sum();
        // A difference that is there to be taken apart.
        if total.abs() < 3.0 {
            effects[0].1 *= 2.0;
        }
        let verdict = search(23, puzzle, &|subset| {
            let figure = ("Elapsed", sum(subset, &effects));
            Some(vec![figure, ("System", 50.0), ("User", 20.0)])
        });
        let mut expected: Vec<usize> = effects.iter().map(|(at, _)| *at).collect();
        expected.sort_unstable();
        let found: Vec<Vec<usize>> = verdict.metrics.iter().map(named).collect();
        right += usize::from(found == [expected.clone()]);
        let others = found.iter().flatten().filter(|at| !expected.contains(at));
        wrong += usize::from(others.count() > 0);
    }
    assert!(right >= 185, "{right} of 200 are right");
    assert!(wrong <= 4, "{wrong} of 200 name a change that does nothing");
}

#[test]
fn a_kernel_and_itself_have_no_cause() {
    let mut wrong = 0;
    for seed in 0..200 {
        let rows = |_: &Subset| Some(vec![("Elapsed", 10.0), ("System", 5.0), ("User", 1.0)]);
        let verdict = search(20, seed, &rows);
        wrong += usize::from(verdict.metrics.iter().any(|it| it.named().count() > 0));
    }
    assert!(wrong <= 10, "{wrong} of 200 name a cause");
}

#[test]
fn hundreds_of_changes_take_few_kernels() {
    let effects = [(17, 20.0), (90, -40.0), (131, -15.0)];
    let verdict = search(200, 1, &|subset| {
        Some(vec![("Elapsed", sum(subset, &effects))])
    });
    assert_eq!(named(&verdict.metrics[0]), [17, 90, 131]);
    assert!(verdict.kernels[0] < 60, "{:?} kernels", verdict.kernels);
    let metric = &verdict.metrics[0];
    let of = |at: usize| {
        metric
            .named()
            .find(|it| it.changes.start == at)
            .expect("named")
    };
    for (at, effect) in effects {
        let alone = of(at).alone.clone().expect("measured");
        let left_out = of(at).left_out.clone().expect("measured");
        for found in [of(at).in_order, alone, left_out] {
            assert!((found.value - effect).abs() < 3.0, "{at}: {found:?}");
        }
    }
    let together = metric.together.expect("measured");
    assert!((together.value + 35.0).abs() < 3.0, "{together:?}");
    assert!(!metric.rest.expect("measured").beyond_noise);
    assert!(!metric.interaction.expect("measured").beyond_noise);
}

/// Two changes do something only together: what they account for is more than the sum of each alone.
#[test]
fn interaction_is_told() {
    let verdict = search(12, 5, &|subset| {
        let both = if subset[3] && subset[8] { 30.0 } else { 0.0 };
        Some(vec![(
            "Elapsed",
            sum(subset, &[(3, 12.0), (8, 12.0)]) + both,
        )])
    });
    let metric = &verdict.metrics[0];
    assert_eq!(named(metric), [3, 8]);
    let interaction = metric.interaction.expect("measured");
    assert!(interaction.beyond_noise && (interaction.value - 30.0).abs() < 5.0);
    assert_eq!(metric.pairs.len(), 1);
    assert!(metric.pairs[0].interaction.beyond_noise);
    let text = verdict.text(&PlainStyle, None);
    assert!(
        text.contains("Left to interaction of the named changes: +"),
        "{text}"
    );
    assert!(
        text.contains("c3 together") || text.contains("c8 and c3 together"),
        "{text}"
    );
}

/// A change that is no cause makes an effect larger in order than it is on the first kernel: the effects that the sentence
/// names add up to the share of the difference that the sentence gives.
#[test]
fn a_sentence_adds_up() {
    let verdict = search(12, 5, &|subset| {
        // The ninth change undoes what the second and the fourth do together.
        let undone = subset[1] && subset[3] && !subset[8];
        let more = if undone { 60.0 } else { 0.0 };
        let both = sum(subset, &[(8, -20.0), (10, -20.0)]);
        Some(vec![("Elapsed", both + more)])
    });
    let metric = &verdict.metrics[0];
    let sentence = verdict.sentence(metric);
    let percents = |text: &str| -> Vec<i32> {
        let words: Vec<&str> = text.split([' ', '(']).collect();
        let before = words.windows(2).filter(|pair| pair[1].starts_with('%'));
        before.filter_map(|pair| pair[0].parse().ok()).collect()
    };
    let all = percents(&sentence);
    assert!(all.len() > 2 && sentence.contains(" alone)"), "{sentence}");
    assert!(sentence.contains("and their interaction ("), "{sentence}");
    assert!(
        (all[0] - all[1..].iter().sum::<i32>()).abs() <= 2,
        "{sentence}"
    );
}

/// Changes that no kernel has apart stand together, whatever is refused besides.
#[test]
fn changes_that_need_each_other_are_one() {
    let verdict = search(10, 2, &|subset| {
        // 4, 5 and 6 come together or not at all.
        let needed = subset[4] == subset[5] && subset[5] == subset[6];
        needed.then(|| vec![("Elapsed", sum(subset, &[(5, -20.0), (1, -10.0)]))])
    });
    assert_eq!(named(&verdict.metrics[0]), [1, 4, 5, 6]);
    let group = verdict.metrics[0].named().next().expect("named");
    assert_eq!(group.changes, 4..7);
    assert!(group.alone.is_ok() && group.left_out.is_ok());
    assert!(verdict.kernels[1] > 0, "some kernels were refused");
    let text = verdict.text(&PlainStyle, None);
    assert!(text.contains("c4 + c5 + c6"), "{text}");
}

/// What two changes do to one figure cancels out; they are found by another.
#[test]
fn changes_that_cancel_out_are_found_by_another_figure() {
    let verdict = search(16, 3, &|subset| {
        let elapsed = sum(subset, &[(2, 20.0), (5, -20.0), (12, -10.0)]);
        Some(vec![
            ("Elapsed", elapsed),
            ("System", sum(subset, &[(2, 9.0), (5, 9.0)])),
        ])
    });
    let elapsed = verdict
        .metrics
        .iter()
        .find(|it| it.metric.name == "Elapsed");
    assert_eq!(named(elapsed.expect("it differs")), [2, 5, 12]);
}

#[test]
fn what_was_asked_for_is_found_or_refused() {
    let run = |value: f64| {
        let mut figures = figures(&[("Swap Outs", value)]);
        figures.counters.insert("pswpout".to_owned(), value as u64);
        figures
    };
    let with = |metric: &str| {
        let ends = ["a", "b"].map(str::to_owned);
        let mut bisection = Bisection::new(ends, changes(1), vec![metric.to_owned()]);
        for (with, base) in [(false, 100.0), (true, 200.0)] {
            let repeats: Vec<Figures> = (0..5).map(|at| run(base + f64::from(at))).collect();
            bisection.measured(vec![with], repeats.into());
        }
        assert!(bisection.wanted()?.is_empty());
        bisection.verdict()
    };
    for name in ["swap-outs", "Swap Outs", "pswpout"] {
        let verdict = with(name).expect("it is there");
        assert_eq!(named(&verdict.metrics[0]), [0], "{name}");
        assert_eq!(verdict.metrics[0].difference(), 100.0);
    }
    let error = with("pgsteal").expect_err("there is none").to_string();
    assert!(
        error.contains("pgsteal") && error.contains("Swap Outs"),
        "{error}"
    );
}

#[test]
fn the_sentence_says_what_was_found() {
    let verdict = search(31, 4, &|subset| {
        Some(vec![("Elapsed", sum(subset, &[(7, -50.0), (21, -25.0)]))])
    });
    let sentence = verdict.sentence(&verdict.metrics[0]);
    let begin =
        "Of 31 changes between a and b two account for 101 % of the difference in Elapsed (";
    assert!(sentence.starts_with(begin), "{sentence}");
    assert!(
        sentence.ends_with("%): c7 (68 %) and c21 (34 %)."),
        "{sentence}"
    );
    let none = search(31, 4, &|_| Some(vec![("Elapsed", 1.0)]));
    let text = none.text(&PlainStyle, None);
    assert!(
        text.starts_with("None of 31 changes between a and b could be told from noise"),
        "{text}"
    );
    let json = verdict.json();
    assert_eq!(json["metrics"][0]["changes"][0]["names"][0], "c7");
    assert_eq!(json["metrics"][0]["changes"][0]["named"], true);
}

/// An earlier change hides what a later one does, and one between undoes even that: what it does alone and when it is left
/// out names it, and the sentence says so.
#[test]
fn what_does_not_show_in_order_is_found() {
    for hidden in [0.0, 15.0] {
        let verdict = search(23, 6, &|subset| {
            let behind = |at: usize| subset[4] && !subset[19] && subset[at];
            let undone = if behind(11) { 30.0 + hidden } else { 0.0 };
            Some(vec![(
                "Elapsed",
                sum(subset, &[(4, -60.0), (11, -30.0), (19, -40.0)]) + undone,
            )])
        });
        let metric = &verdict.metrics[0];
        assert_eq!(named(metric), [4, 11, 19], "{hidden}");
        let mut causes = metric.named();
        let cause = causes.find(|it| it.changes.start == 11).expect("named");
        assert!(!cause.is_cause_in_order(), "{cause:?}");
        let sentence = verdict.sentence(metric);
        let said = "c11 (23 % alone, ";
        assert!(sentence.contains(said), "{sentence}");
    }
}

/// What shows in one place alone, or here more and there less, is no cause.
#[test]
fn one_place_is_not_enough() {
    let verdict = search(12, 8, &|subset| {
        // The second change does something only behind the first one, and what is done later undoes it.
        let behind = if subset[2] && subset[5] && !subset[9] {
            25.0
        } else {
            0.0
        };
        Some(vec![(
            "Elapsed",
            sum(subset, &[(2, -60.0), (9, -20.0)]) + behind,
        )])
    });
    let metric = &verdict.metrics[0];
    let open: Vec<usize> = metric
        .attributions
        .iter()
        .filter(|it| !it.named)
        .map(|it| it.changes.start)
        .collect();
    assert_eq!(open, [5]);
    assert_eq!(named(metric), [2, 9]);
    let text = verdict.text(&PlainStyle, None);
    assert!(text.contains("? c5: shows in one place only"), "{text}");
}

/// A later change does the same: leaving the earlier one out is seen in nothing, and it is said why.
#[test]
fn what_later_changes_stand_in_for_is_told() {
    let ends = ["a", "b"].map(str::to_owned);
    let mut bisection = Bisection::new(ends, changes(2), Vec::new());
    loop {
        let wanted = bisection.wanted().expect("no figure was asked for");
        if wanted.is_empty() {
            break;
        }
        for subset in wanted {
            let base = if subset.contains(&true) { 50.0 } else { 100.0 };
            let repeats = (0..5).map(|at| figures(&[("Elapsed", base + f64::from(at))]));
            bisection.measured(subset, repeats.collect());
        }
    }
    let verdict = bisection.verdict().expect("no figure was asked for");
    assert_eq!(named(&verdict.metrics[0]), [0]);
    let text = verdict.text(&PlainStyle, None);
    assert!(
        text.contains("Leaving out c0 changes nothing at all"),
        "{text}"
    );
}
