//! A verdict for people: a sentence, the changes, what is left.

use super::{Attribution, Effect, MetricVerdict, Pair, Verdict};
use crate::document::{Lines, Room, Section};
use crate::plot::{IntervalRow, Intervals, Plot};
use crate::stats;
use crate::table::{Align, Field, Role, Style, TextTable, counted};
use std::ops::Range;

/// Causes that the sentence names; others are counted.
const SAID_MAX: usize = 4;
/// How far effects in order may be from what causes account for together and still explain it, percent of the difference.
const APART_PERCENT_MIN: f64 = 25.0;
/// Smallest interaction of a pair that is told, percent of the difference.
const PAIR_PERCENT_MIN: f64 = 5.0;

impl Verdict {
    /// The verdict as text, a part for each figure.
    pub fn text(&self, style: &dyn Style, width: Option<usize>) -> String {
        self.section().text(style, width)
    }

    /// The verdict, to be written.
    pub fn section(&self) -> Section<'static> {
        let mut section = Section::new();
        if self.metrics.is_empty() {
            section.lines(leading(self.nothing()));
        }
        for metric in &self.metrics {
            section.lines(leading(self.sentence(metric)));
            section.plots.extend(self.plot(metric));
        }
        let with_changes = self.metrics.iter();
        for metric in with_changes.filter(|it| !it.attributions.is_empty()) {
            section.blank();
            section.title(heading(metric));
            section.table(self.table(metric));
            for remark in self.remarks(metric) {
                section.paragraph(remark, 0);
            }
        }
        section.blank();
        for line in self.legend() {
            section.paragraph(line, 3);
        }
        section
    }

    /// What each change adds, and the whole difference.
    fn plot(&self, metric: &MetricVerdict) -> Option<Plot> {
        let row = |name: String, effect: &Effect, role: Role| IntervalRow {
            name,
            value: effect.value,
            interval: (effect.half_interval).map(|half| [effect.value - half, effect.value + half]),
            words: format!(
                "{} ({})",
                signed(effect.value, metric),
                share(effect.value, metric)
            ),
            role,
        };
        let changes = metric.attributions.iter().map(|it| {
            let (name, role) = if it.named {
                (self.name(&it.changes), Role::Plain)
            } else {
                (format!("{} ?", self.name(&it.changes)), Role::Unknown)
            };
            row(name, &it.in_order, role)
        });
        let mut rows: Vec<IntervalRow> = changes.collect();
        let others = [
            ("left to all other changes", &metric.rest),
            ("left to interaction", &metric.interaction),
        ];
        for (name, effect) in others {
            rows.extend(
                effect
                    .iter()
                    .map(|it| row(name.to_owned(), it, Role::Unknown)),
            );
        }
        let [from, to] = &self.ends;
        (!metric.attributions.is_empty()).then(|| {
            Plot::Intervals(Intervals {
                title: format!("{}: effect of each change", heading(metric)),
                axis: format!("{} more or less, {from} to {to}", heading(metric)),
                remark: "The point is what a change adds to those before it; the line is the interval that has it in 95 % \
                         of cases by Welch's t, without correction for many changes."
                    .to_owned(),
                rows,
            })
        })
    }

    /// That no figure differs.
    fn nothing(&self) -> String {
        let [from, to] = &self.ends;
        if self.changes.is_empty() {
            return format!(
                "No change lies between {from} and {to}, and no figure differs beyond noise."
            );
        }
        let changes = plural(self.changes.len(), "change");
        let of = match self.others.as_slice() {
            [] => plural(self.alike.len(), "figure"),
            _ => format!(
                "{} that are good or bad",
                plural(self.alike.len(), "figure")
            ),
        };
        format!(
            "None of {changes} between {from} and {to} could be told from noise: in {of} both kernels differ by no more \
             than their repeats do."
        )
    }

    /// What makes the difference in a figure.
    pub fn sentence(&self, metric: &MetricVerdict) -> String {
        let [from, to] = &self.ends;
        let name = &metric.metric.name;
        let format = |value: f64| metric.metric.format.text(value);
        let by = match metric.from {
            0.0 => String::new(),
            base => format!(", {:+.1}%", 100.0 * metric.difference() / base),
        };
        let difference = format!(
            "the difference in {name} ({} to {}{by})",
            format(metric.from),
            format(metric.to)
        );
        let changes = plural(self.changes.len(), "change");
        let named: Vec<&Attribution> = metric.named().collect();
        if named.is_empty() {
            return format!(
                "None of {changes} between {from} and {to} could be told from noise as a cause of {difference}."
            );
        }
        let said = self.causes_alone(metric).unwrap_or_else(|| {
            let said = (named.iter().take(SAID_MAX))
                .map(|it| format!("{} ({})", self.name(&it.changes), said_share(it, metric)));
            let mut said: Vec<String> = said.collect();
            if named.len() > SAID_MAX {
                said.push(format!("{} with less", number(named.len() - SAID_MAX)));
            }
            said
        });
        let verb = |one: &str, more: &str| {
            if named.len() == 1 {
                one.to_owned()
            } else {
                more.to_owned()
            }
        };
        let account = match &metric.together {
            Some(together) => format!(
                "{} for {} of",
                verb("accounts", "account"),
                share(together.value, metric)
            ),
            None => verb("is a cause of", "are causes of"),
        };
        format!(
            "Of {changes} between {from} and {to} {} {account} {difference}: {}.",
            number(named.len()),
            listed(&said)
        )
    }

    /// The effect of each cause on the first kernel alone, and their interaction: these add up to the effect of all causes
    /// together. None where the effects in order come near to that; other changes between the causes take them away from it.
    fn causes_alone(&self, metric: &MetricVerdict) -> Option<Vec<String>> {
        let (together, interaction) = (metric.together?, metric.interaction?);
        let in_order = stats::sum(metric.named().map(|it| it.in_order.value));
        let apart = percent(in_order - together.value, metric).abs();
        if apart < APART_PERCENT_MIN || metric.named().count() > SAID_MAX {
            return None;
        }
        let alone = |it: &Attribution| {
            let alone = it.alone.as_ref().ok()?;
            let share = share(alone.value, metric);
            Some(format!("{} ({share} alone)", self.name(&it.changes)))
        };
        let mut said = metric.named().map(alone).collect::<Option<Vec<String>>>()?;
        said.push(format!(
            "their interaction ({})",
            share(interaction.value, metric)
        ));
        Some(said)
    }

    fn table(&self, metric: &MetricVerdict) -> TextTable {
        let mut table = TextTable::new();
        for heading in ["change", "version", "commit"] {
            table = table.column(heading, Align::Left);
        }
        for heading in ["in order", "alone", "left out"] {
            table = table.column(heading, Align::Right);
        }
        table = table.column("what it changes", Align::Left);
        for attribution in &metric.attributions {
            let own = &self.changes[attribution.changes.clone()];
            let joined = |text: &dyn Fn(&super::Change) -> Option<&String>| {
                let mut texts: Vec<&str> =
                    own.iter().filter_map(text).map(String::as_str).collect();
                texts.dedup();
                texts.join(" + ")
            };
            let names = [
                self.name(&attribution.changes),
                joined(&|it| it.version.as_ref()),
                joined(&|it| it.commit.as_ref()),
            ];
            let summary = joined(&|it| Some(&it.summary));
            let in_order = Ok(attribution.in_order);
            let mut fields: Vec<Field> = names.into_iter().map(Field::from).collect();
            fields.extend(
                [&in_order, &attribution.alone, &attribution.left_out].map(|it| field(it, metric)),
            );
            fields.push(Field::from(summary));
            if !attribution.named {
                fields[0].value += " ?";
            }
            table.row(fields);
        }
        table
    }

    /// What is left besides the effects of single changes.
    fn remarks(&self, metric: &MetricVerdict) -> Vec<String> {
        let amount = |effect: &Effect| {
            let noise = if effect.beyond_noise {
                ""
            } else {
                ", within the noise"
            };
            format!(
                "{} ({}{noise})",
                signed(effect.value, metric),
                share(effect.value, metric)
            )
        };
        let mut remarks = Vec::new();
        if let Some(interaction) = &metric.interaction {
            remarks.push(format!(
                "Left to interaction of the named changes: {}.",
                amount(interaction)
            ));
        }
        let told = |pair: &&Pair| {
            let share = percent(pair.interaction.value, metric).abs();
            pair.interaction.beyond_noise && share >= PAIR_PERCENT_MIN
        };
        for pair in metric.pairs.iter().filter(told) {
            remarks.push(format!(
                "{} and {} together: {} besides what each does alone.",
                self.name(&pair.first),
                self.name(&pair.second),
                amount(&pair.interaction)
            ));
        }
        if let (Some(rest), true) = (&metric.rest, metric.together.is_some()) {
            remarks.push(format!("Left to all other changes: {}.", amount(rest)));
        }
        let unconfirmed = metric.attributions.iter().filter(|it| !it.named);
        let unconfirmed: Vec<String> = unconfirmed.map(|it| self.name(&it.changes)).collect();
        if !unconfirmed.is_empty() {
            remarks.push(format!(
                "? {}: shows in one place only, or in opposite directions: what it does depends on the other changes.",
                unconfirmed.join(", ")
            ));
        }
        let replaced = metric.named().filter(|it| {
            let left_out = it.left_out.as_ref();
            left_out.is_ok_and(|effect| effect.value == 0.0 && !effect.beyond_noise)
        });
        let replaced: Vec<String> = replaced.map(|it| self.name(&it.changes)).collect();
        if !replaced.is_empty() {
            remarks.push(format!(
                "Leaving out {} changes nothing at all: later changes stand in for it.",
                listed(&replaced)
            ));
        }
        for attribution in metric.named() {
            let reasons = [
                ("alone", &attribution.alone),
                ("left out", &attribution.left_out),
            ];
            for (place, refused) in reasons {
                if let Err(reason) = refused {
                    remarks.push(format!(
                        "{}, {place}: there is no such kernel: {reason}.",
                        self.name(&attribution.changes)
                    ));
                }
            }
        }
        remarks
    }

    fn legend(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let [from, to] = &self.ends;
        if self.metrics.iter().any(|it| !it.attributions.is_empty()) {
            lines.push(format!(
                "in order: what a change adds to those before it. alone: what it does to {from} alone. left out: what {to} \
                 loses without it. Percentages are parts of the difference."
            ));
            lines.push("~  within the noise: Welch's t test with Holm's correction.".to_owned());
        }
        let names = |names: &[String]| names.join(", ");
        if !self.others.is_empty() {
            lines.push(format!(
                "Differ as well, and are neither good nor bad (--metric NAME takes them apart): {}.",
                names(&self.others)
            ));
        }
        if !self.metrics.is_empty() && !self.alike.is_empty() {
            lines.push(format!(
                "No difference beyond noise: {}.",
                names(&self.alike)
            ));
        }
        for [name, other] in &self.same {
            lines.push(format!("{name} is {other} in every run."));
        }
        let [kernels, refused] = self.kernels;
        let each = if kernels - refused == 1 { "" } else { "each " };
        let kernels = plural(kernels - refused, "kernel");
        let repeats = plural(self.repeats, "boot");
        let refused = match refused {
            0 => String::new(),
            1 => " The search asked for one more kernel, which does not exist.".to_owned(),
            refused => format!(" The search asked for {refused} more kernels, which do not exist."),
        };
        lines.push(format!(
            "{kernels}, {each}on {repeats} of the machine.{refused}"
        ));
        lines
    }

    /// The name of a change, or of several that no kernel has apart.
    fn name(&self, range: &Range<usize>) -> String {
        let names = self.changes[range.clone()].iter();
        let names: Vec<&str> = names.map(|it| it.name.as_str()).collect();
        match names.as_slice() {
            [first, .., last] if names.len() > 3 => {
                format!("{first} … {last}, {} changes", names.len())
            }
            _ => names.join(" + "),
        }
    }
}

/// The sentence that a reader looks for first.
fn leading(sentence: String) -> Lines {
    Lines {
        head: String::new(),
        text: sentence,
        indent: 0,
        room: Room::Narrow,
        leads: true,
    }
}

fn heading(metric: &MetricVerdict) -> String {
    let unit = &metric.metric.unit;
    if unit.is_empty() {
        metric.metric.name.clone()
    } else {
        format!("{} ({unit})", metric.metric.name)
    }
}

fn field(effect: &Result<Effect, String>, metric: &MetricVerdict) -> Field {
    match effect {
        Err(_) => Field::with_role("-", Role::Unknown),
        Ok(effect) => {
            let percent = percent(effect.value, metric);
            let text = signed(effect.value, metric);
            if effect.beyond_noise {
                Field::with_percent(text, percent, Role::Plain)
            } else {
                Field::with_percent(text, percent, Role::Unknown).noted("~")
            }
        }
    }
}

fn signed(value: f64, metric: &MetricVerdict) -> String {
    let text = metric.metric.format.text(value);
    if value > 0.0 {
        format!("+{text}")
    } else {
        text
    }
}

/// The part of the difference that an effect is.
fn percent(value: f64, metric: &MetricVerdict) -> f64 {
    // No negative zero.
    100.0 * value / metric.difference() + 0.0
}

fn share(value: f64, metric: &MetricVerdict) -> String {
    format!("{:.0} %", percent(value, metric).round() + 0.0)
}

/// What part of the difference a cause is said to be: that in order, and before it the one alone where what it does in order
/// is not what makes it a cause.
fn said_share(cause: &Attribution, metric: &MetricVerdict) -> String {
    let in_order = share(cause.in_order.value, metric);
    match &cause.alone {
        Ok(alone) if !cause.is_cause_in_order() => {
            format!("{} alone, {in_order} in order", share(alone.value, metric))
        }
        _ => in_order,
    }
}

fn plural(count: usize, thing: &str) -> String {
    counted(count as u64, thing)
}

/// Small numbers in words.
fn number(count: usize) -> String {
    const WORDS: [&str; 13] = [
        "none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    WORDS
        .get(count)
        .map_or(count.to_string(), |word| (*word).to_owned())
}

fn listed(texts: &[String]) -> String {
    match texts {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => texts.join(""),
    }
}
