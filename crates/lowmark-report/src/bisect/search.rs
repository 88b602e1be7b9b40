//! Which kernels are run, and when it is enough.
//!
//! What is wanted follows from what has been measured alone, so that the same figures give the same runs in any order.

use super::{Bisection, Metric, Subset, UnknownMetric};
use std::ops::Range;

/// Stretches that the search begins with, whether or not figures differ between their ends: changes that cancel each
/// other out are found where they are not in the same stretch.
const STRETCHES: usize = 8;
/// Named changes of a figure whose interaction is looked for in pairs, those with the largest effects.
const PAIRED_MAX: usize = 4;

/// Whether a stretch of changes is halved.
enum Opened {
    Yes,
    /// Nothing shows.
    Not,
    /// It depends on this kernel, which has not been run.
    Unknown(Subset),
}

impl Bisection {
    /// The kernels to be run next; none when it is enough for the [verdict](Bisection::verdict).
    ///
    /// # Errors
    ///
    /// When no figure has a name that was asked for.
    pub fn wanted(&self) -> Result<Vec<Subset>, UnknownMetric> {
        let ends = vec![self.prefix(0), self.prefix(self.changes.len())];
        if let Some(missing) = self.missing(ends.clone()) {
            return Ok(missing);
        }
        if ends.iter().any(|end| self.repeats(end).is_none()) {
            return Ok(Vec::new());
        }
        let metrics = self.metrics()?.differ;
        if metrics.is_empty() {
            return Ok(Vec::new());
        }
        let mut halves = Vec::new();
        let steps = self.steps(&mut halves);
        if let Some(missing) = self.missing(halves) {
            return Ok(missing);
        }
        // A cause shows in two of three places, so that it shows in one of any two.
        let alone = steps.iter().flat_map(|step| self.beside(step));
        if let Some(missing) = self.missing(alone.collect()) {
            return Ok(missing);
        }
        let candidates = self.candidates(&steps, &metrics);
        let confirming = candidates.iter().flat_map(|step| self.confirming(step));
        if let Some(missing) = self.missing(confirming.collect()) {
            return Ok(missing);
        }
        let together = metrics.iter().flat_map(|metric| self.together(metric));
        Ok(self.missing(together.collect()).unwrap_or_default())
    }

    /// Those that have not been run, each once; none if all have.
    fn missing(&self, subsets: Vec<Subset>) -> Option<Vec<Subset>> {
        let mut missing: Vec<Subset> = Vec::new();
        for subset in subsets {
            if !self.probes.contains_key(&subset) && !missing.contains(&subset) {
                missing.push(subset);
            }
        }
        (!missing.is_empty()).then_some(missing)
    }

    /// Stretches of changes that cannot be made shorter and that show something, in order; `wanted` gets the kernels that
    /// would tell more, or make one shorter.
    pub(super) fn steps(&self, wanted: &mut Vec<Subset>) -> Vec<Range<usize>> {
        let mut steps = Vec::new();
        // Halves that come later wait on the stack.
        let mut open: Vec<Range<usize>> = Vec::new();
        if !self.changes.is_empty() {
            open.push(0..self.changes.len());
        }
        while let Some(range) = open.pop() {
            match self.is_opened(&range) {
                Opened::Not => continue,
                Opened::Unknown(kernel) => {
                    wanted.push(kernel);
                    continue;
                }
                Opened::Yes => {}
            }
            // Where there is no kernel in the middle, one beside it will do.
            let middle = (range.start + range.end) / 2;
            let mut lengths: Vec<usize> = (range.start + 1..range.end).collect();
            lengths.sort_by_key(|length| (length.abs_diff(middle), *length));
            let usable = |length: &usize| self.refusal(&self.prefix(*length)).is_none();
            match lengths.into_iter().find(usable) {
                None => steps.push(range),
                Some(length) if self.probes.contains_key(&self.prefix(length)) => {
                    open.push(length..range.end);
                    open.push(range.start..length);
                }
                Some(length) => wanted.push(self.prefix(length)),
            }
        }
        steps
    }

    /// Whether a stretch of changes, whose ends have been run, is worth a closer look.
    fn is_opened(&self, range: &Range<usize>) -> Opened {
        let [in_order, alone, left_out] = self.places(range);
        let ends = in_order.each_ref().map(|end| self.repeats(end));
        let [Some(with), Some(without)] = ends else {
            return Opened::Not;
        };
        let is_long = range.len() > 1 && range.len() * STRETCHES > self.changes.len();
        if with != without && (is_long || self.differ(with, without)) {
            return Opened::Yes;
        }
        for [with, without] in [alone, left_out] {
            for end in [&with, &without] {
                if !self.probes.contains_key(end) {
                    return Opened::Unknown(end.clone());
                }
            }
            if let [Some(with), Some(without)] = [&with, &without].map(|end| self.repeats(end)) {
                return if with != without && self.differ(with, without) {
                    Opened::Yes
                } else {
                    Opened::Not
                };
            }
        }
        // There is neither kernel, but there may be one that has a part of the stretch.
        match range.len() {
            1 => Opened::Not,
            _ => Opened::Yes,
        }
    }

    /// What is compared to see what a stretch of changes does, in each of three places: a kernel with it, and one
    /// without it.
    pub(super) fn places(&self, range: &Range<usize>) -> [[Subset; 2]; 3] {
        let [alone, left_out] = self.confirming(range);
        let (none, all) = (self.prefix(0), self.prefix(self.changes.len()));
        [
            [self.prefix(range.end), self.prefix(range.start)],
            [alone, none],
            [all, left_out],
        ]
    }

    /// The kernel that shows a step in another place than in order: alone, or left out where there is none of it alone.
    fn beside(&self, range: &Range<usize>) -> Option<Subset> {
        let kernels = self.confirming(range).into_iter();
        let mut usable = kernels.filter(|kernel| self.refusal(kernel).is_none());
        usable.next()
    }

    /// The kernels that confirm a step: it alone, and all but it.
    pub(super) fn confirming(&self, range: &Range<usize>) -> [Subset; 2] {
        [self.only(&[range]), self.without(range)]
    }

    /// The kernels that tell effects of a figure apart: all its named changes together, and the largest in pairs.
    fn together(&self, metric: &Metric) -> Vec<Subset> {
        let named = self.named(metric);
        let mut subsets = vec![self.only(&named.iter().collect::<Vec<_>>())];
        subsets.extend(
            self.pairs(&named)
                .into_iter()
                .map(|(a, b)| self.only(&[a, b])),
        );
        subsets
    }

    /// Pairs of the largest of some changes, which are sorted by their effects.
    pub(super) fn pairs<'n>(
        &self,
        named: &'n [Range<usize>],
    ) -> Vec<(&'n Range<usize>, &'n Range<usize>)> {
        let largest = &named[..named.len().min(PAIRED_MAX)];
        let pairs = largest.iter().enumerate();
        pairs
            .flat_map(|(at, a)| largest[at + 1..].iter().map(move |b| (a, b)))
            .collect()
    }
}
