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
        let mut middles = Vec::new();
        let steps = self.steps(&mut middles);
        if let Some(missing) = self.missing(middles) {
            return Ok(missing);
        }
        let candidates = self.candidates(&steps, &metrics);
        let confirming = candidates.iter().flat_map(|range| self.confirming(range));
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

    /// Stretches of changes that cannot be made shorter and whose ends differ, in order; `wanted` gets the kernels that
    /// would make one shorter.
    pub(super) fn steps(&self, wanted: &mut Vec<Subset>) -> Vec<Range<usize>> {
        let mut steps = Vec::new();
        // Halves that come later wait on the stack.
        let mut open: Vec<Range<usize>> = Vec::new();
        if !self.changes.is_empty() {
            open.push(0..self.changes.len());
        }
        while let Some(range) = open.pop() {
            let ends = [range.start, range.end].map(|length| self.prefix(length));
            let [Some(first), Some(last)] = ends.each_ref().map(|end| self.repeats(end)) else {
                continue;
            };
            let is_long = range.len() * STRETCHES > self.changes.len();
            if first == last || !(is_long && range.len() > 1 || self.differ(first, last)) {
                continue;
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
