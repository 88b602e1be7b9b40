//! What two kernels differ in, change by change, and the kernels between them.
//!
//! 1. A kernel has rows of the history, variants that were set by hand, and settings. A part that one of two kernels has
//!    and the other lacks is an [`Alteration`]: taken together they make the second kernel of the first.
//! 2. They stand in an order in which kernels are taken from one to the other: variants that go, rows that go (the newest
//!    first), rows that come (the oldest first), variants that come, settings. Whatever comes first in this order, a later
//!    release with its earlier rows alone is what the history says.
//! 3. [`Difference::spec`] is the kernel that has some of them, by a name that `--kernel` takes: counted from the first
//!    kernel or from the second one, whichever says it in fewer words.
//! 4. Rows that change nothing but mechanisms that decide nothing in either kernel (`effect.rs`) are listed apart. The name
//!    of a kernel between the two does not say what decides nothing in it.

use super::versions::{self, Change, HISTORY};
use super::{DESCRIPTIONS, Kernel, KernelError, Mechanisms, Version};
use lowmark_spec::{KernelSpec, Toggle};
use std::collections::BTreeMap;

/// One thing that two kernels differ in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alteration {
    /// A row of the history that only one of them has.
    Row {
        /// Its name.
        name: &'static str,
        /// Whether the second kernel has it.
        comes: bool,
    },
    /// A variant of a mechanism that was set by hand: in the first kernel, in the second one; none where it follows from
    /// the version.
    Variant {
        /// The mechanism.
        mechanism: String,
        /// In the first kernel.
        before: Option<String>,
        /// In the second kernel.
        after: Option<String>,
    },
    /// A setting; none where it has the kernel's default.
    Setting {
        /// Its name.
        name: String,
        /// In the first kernel.
        before: Option<String>,
        /// In the second kernel.
        after: Option<String>,
    },
}

/// Two kernels and what they differ in.
#[derive(Debug, Clone)]
pub struct Difference {
    ends: [End; 2],
    alterations: Vec<Alteration>,
    left_out: Vec<&'static Change>,
}

/// One of the two kernels, taken apart.
#[derive(Debug, Clone)]
struct End {
    spec: KernelSpec,
    /// Rows of its version, without what was asked for.
    released: Vec<&'static str>,
    /// All its rows.
    rows: Vec<&'static str>,
    /// Variants set by hand, in the order written.
    variants: Vec<(String, String)>,
    /// Settings that its name says; others are the workload's.
    named: Vec<String>,
}

impl Kernel {
    /// Whether two kernels do the same in the model, whatever they are called: versions themselves decide nothing but
    /// the names of counters and events, nor do mechanisms that decide nothing in this kernel.
    pub fn works_like(&self, other: &Kernel) -> bool {
        self.coverage == other.coverage
            && self.sysctl == other.sysctl
            && self.decides_like(&other.mechanisms)
    }

    fn decides_like(&self, mechanisms: &Mechanisms) -> bool {
        let own = self.mechanisms.settings().into_iter();
        own.zip(mechanisms.settings())
            .all(|(own, other)| own == other || self.idle(own.0).is_some())
    }
}

impl Difference {
    /// What leads from one kernel to another.
    ///
    /// # Errors
    ///
    /// When the model cannot run one of them.
    pub fn between(from: &KernelSpec, to: &KernelSpec) -> Result<Difference, KernelError> {
        let kernels = [Kernel::resolve(from)?, Kernel::resolve(to)?];
        let ends = [End::new(from)?, End::new(to)?];
        let is_idle = |change: &Change| {
            let altered = versions::altered_by(change);
            kernels.iter().all(|kernel| kernel.is_idle(&altered))
        };
        let (mut alterations, mut left_out) = (gone_variants(&ends), Vec::new());
        let [going, coming] = [(0, 1), (1, 0)].map(|(own, other): (usize, usize)| {
            let is_only =
                |row: &str| ends[own].rows.contains(&row) && !ends[other].rows.contains(&row);
            let rows = HISTORY.iter().filter(move |it| is_only(it.name));
            rows.collect::<Vec<_>>()
        });
        let rows = going.into_iter().rev().map(|change| (change, false));
        let coming = coming.into_iter().map(|change| (change, true));
        for (change, comes) in rows.chain(coming) {
            let name = change.name;
            if is_idle(change) {
                left_out.push(change)
            } else {
                alterations.push(Alteration::Row { name, comes })
            }
        }
        alterations.extend(new_variants(&ends));
        alterations.extend(settings(&ends));
        Ok(Difference {
            ends,
            alterations,
            left_out,
        })
    }

    /// What they differ in, in the order in which it is taken over.
    pub fn alterations(&self) -> &[Alteration] {
        &self.alterations
    }

    /// Rows in which they differ and that do nothing in the model of either.
    pub fn left_out(&self) -> &[&'static Change] {
        &self.left_out
    }

    /// The first kernel with those alterations for which `with` has true; with all it is the second one.
    ///
    /// # Errors
    ///
    /// When no kernel combined them, or none of its names is accepted.
    pub fn spec(&self, with: &[bool]) -> Result<KernelSpec, KernelError> {
        let taken = |at: usize| with.get(at) == Some(&true);
        let count = (0..self.alterations.len()).filter(|&at| taken(at)).count();
        if count == 0 {
            return Ok(self.ends[0].spec.clone());
        }
        if count == self.alterations.len() {
            return Ok(self.ends[1].spec.clone());
        }
        let parts = self.parts(&taken);
        let mechanisms = parts.mechanisms()?;
        let (mut names, mut refused) = (Vec::new(), None);
        for end in &self.ends {
            match parts.named_from(end) {
                Ok(spec) => names.push(spec),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        names.sort_by_key(|spec| spec.toggles.len());
        for spec in names {
            match Kernel::resolve(&spec) {
                Ok(kernel) if kernel.decides_like(&mechanisms) => return Ok(spec),
                // Rows that were applied out of their order are not the same by every name.
                Ok(_) => {}
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| KernelError::UnknownChange {
            found: format!("{} in another order", parts.rows.join("+")),
        }))
    }

    /// What the kernel with some of the alterations is made of.
    fn parts(&self, taken: &dyn Fn(usize) -> bool) -> Parts {
        let [from, to] = &self.ends;
        let mut rows = from.rows.clone();
        let mut variants = from.variants.clone();
        let mut sysctl = from.spec.sysctl.clone();
        let mut named = from.named.clone();
        for (at, alteration) in self.alterations.iter().enumerate() {
            if !taken(at) {
                continue;
            }
            match alteration {
                Alteration::Row { name, comes: true } => rows.push(name),
                Alteration::Row { name, comes: false } => rows.retain(|row| row != name),
                Alteration::Variant {
                    mechanism, after, ..
                } => {
                    variants.retain(|(name, _)| name != mechanism);
                    variants.extend(after.iter().map(|after| (mechanism.clone(), after.clone())));
                }
                Alteration::Setting { name, after, .. } => {
                    sysctl.remove(name);
                    sysctl.extend(after.iter().map(|after| (name.clone(), after.clone())));
                    named.retain(|it| it != name);
                    named.extend(to.named.iter().filter(|it| *it == name).cloned());
                }
            }
        }
        let all = HISTORY.iter().map(|change| change.name);
        Parts {
            rows: all.filter(|name| rows.contains(name)).collect(),
            variants,
            sysctl,
            named,
        }
    }
}

/// A kernel in parts.
struct Parts {
    /// Rows, oldest first.
    rows: Vec<&'static str>,
    variants: Vec<(String, String)>,
    sysctl: BTreeMap<String, String>,
    named: Vec<String>,
}

impl Parts {
    fn mechanisms(&self) -> Result<Mechanisms, KernelError> {
        let rows = HISTORY.iter().filter(|it| self.rows.contains(&it.name));
        let mut mechanisms = versions::applied(rows);
        for (mechanism, variant) in &self.variants {
            mechanisms.set(mechanism, variant)?;
        }
        Ok(mechanisms)
    }

    /// Its name, counted from the version of one of the two kernels.
    ///
    /// # Errors
    ///
    /// When that version does not take the settings.
    fn named_from(&self, end: &End) -> Result<KernelSpec, KernelError> {
        let plain = Kernel::resolve(&KernelSpec {
            text: end.spec.version.clone(),
            version: end.spec.version.clone(),
            toggles: Vec::new(),
            sysctl: self.sysctl.clone(),
        })?;
        let is_idle = |row: &str| {
            versions::change(row).is_ok_and(|row| plain.is_idle(&versions::altered_by(row)))
        };
        let gone = (end.released.iter()).filter(|row| !self.rows.contains(row) && !is_idle(row));
        let mut toggles: Vec<Toggle> = gone.map(|row| Toggle::Remove((*row).to_owned())).collect();
        let come = (self.rows.iter()).filter(|row| !end.released.contains(row) && !is_idle(row));
        toggles.extend(come.map(|row| Toggle::Apply((*row).to_owned())));
        let set = (self.variants.iter()).filter(|(mechanism, _)| !plain.is_idle(&[mechanism]));
        toggles.extend(set.map(|(mechanism, variant)| {
            let (mechanism, variant) = (mechanism.clone(), variant.clone());
            Toggle::Set { mechanism, variant }
        }));
        let mut text = end.spec.version.clone();
        let removed = |toggle: &&Toggle| matches!(toggle, Toggle::Remove(_));
        // A dash begins a change only right after the version and right after a comma.
        let mut removals = toggles.iter().filter(removed);
        text += &removals.next().map_or(String::new(), Toggle::to_string);
        let added = toggles.iter().filter(|toggle| !removed(toggle));
        text.extend(added.map(Toggle::to_string));
        text.extend(removals.map(|removal| format!(",{removal}")));
        for (name, value) in &self.sysctl {
            if self.named.contains(name) {
                text += &format!(",{name}={value}");
            }
        }
        Ok(KernelSpec {
            text,
            version: end.spec.version.clone(),
            toggles,
            sysctl: self.sysctl.clone(),
        })
    }
}

impl End {
    fn new(spec: &KernelSpec) -> Result<End, KernelError> {
        let (version, _) = Version::parse(&spec.version)?;
        let taken_over = Kernel::taken_over(spec);
        let released: Vec<&'static str> = (HISTORY.iter())
            .filter(|it| {
                it.version <= version || taken_over.iter().any(|known| known.name == it.name)
            })
            .map(|it| it.name)
            .collect();
        let (mut rows, mut variants) = (released.clone(), Vec::new());
        for toggle in &spec.toggles {
            match toggle {
                Toggle::Set { mechanism, variant } => {
                    variants.push((mechanism.clone(), variant.clone()));
                }
                Toggle::Apply(name) => rows.push(versions::change(name)?.name),
                Toggle::Remove(name) => rows.retain(|row| row != name),
            }
        }
        let own = KernelSpec::parse(&spec.text).map(|own| own.sysctl);
        Ok(End {
            spec: spec.clone(),
            released,
            rows,
            variants,
            named: own.unwrap_or_default().into_keys().collect(),
        })
    }

    fn variant(&self, mechanism: &str) -> Option<&String> {
        let mut variants = self.variants.iter();
        variants.find_map(|(name, variant)| (name == mechanism).then_some(variant))
    }
}

/// Variants that the first kernel alone sets by hand.
fn gone_variants([from, to]: &[End; 2]) -> Vec<Alteration> {
    let gone = from
        .variants
        .iter()
        .filter(|(name, _)| to.variant(name).is_none());
    gone.map(|(mechanism, variant)| Alteration::Variant {
        mechanism: mechanism.clone(),
        before: Some(variant.clone()),
        after: None,
    })
    .collect()
}

/// Variants that the second kernel sets by hand, and the first one not or otherwise.
fn new_variants<'e>([from, to]: &'e [End; 2]) -> impl Iterator<Item = Alteration> + 'e {
    let own = to.variants.iter();
    own.filter(|(name, variant)| from.variant(name) != Some(variant))
        .map(|(mechanism, variant)| Alteration::Variant {
            mechanism: mechanism.clone(),
            before: from.variant(mechanism).cloned(),
            after: Some(variant.clone()),
        })
}

/// Settings that are not the same, by name.
fn settings([from, to]: &[End; 2]) -> Vec<Alteration> {
    let (before, after) = (&from.spec.sysctl, &to.spec.sysctl);
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let differ = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name));
    differ
        .map(|name| Alteration::Setting {
            name: name.clone(),
            before: before.get(name).cloned(),
            after: after.get(name).cloned(),
        })
        .collect()
}

impl Alteration {
    /// A name for it: that of the row, `MECHANISM=VARIANT` or `SETTING=VALUE`. What goes has a dash before it.
    pub fn name(&self) -> String {
        let pair = |name: &str, before: &Option<String>, after: &Option<String>| match after {
            Some(after) => format!("{name}={after}"),
            None => format!("-{name}={}", before.as_deref().unwrap_or_default()),
        };
        match self {
            Alteration::Row { name, comes: true } => (*name).to_owned(),
            Alteration::Row { name, comes: false } => format!("-{name}"),
            Alteration::Variant {
                mechanism: name,
                before,
                after,
            }
            | Alteration::Setting {
                name,
                before,
                after,
            } => pair(name, before, after),
        }
    }

    /// The row of the history; none of what is set by hand.
    pub fn row(&self) -> Option<&'static Change> {
        match self {
            Alteration::Row { name, .. } => versions::change(name).ok(),
            _ => None,
        }
    }

    /// What it does, one line.
    pub fn summary(&self) -> String {
        match self {
            Alteration::Row { comes: true, .. } => {
                self.row().map_or(String::new(), |row| row.summary.into())
            }
            Alteration::Row { .. } => self
                .row()
                .map_or(String::new(), |row| format!("no more: {}", row.summary)),
            Alteration::Variant {
                mechanism,
                before,
                after,
            } => match after {
                Some(after) => variant_text(mechanism, after),
                None => format!(
                    "no more: {}",
                    variant_text(mechanism, before.as_deref().unwrap_or_default())
                ),
            },
            Alteration::Setting { before, after, .. } => {
                let value = |value: &Option<String>| value.clone().unwrap_or("the default".into());
                format!("from {} to {}", value(before), value(after))
            }
        }
    }
}

/// The first sentence of a variant's text.
fn variant_text(mechanism: &str, variant: &str) -> String {
    let described = DESCRIPTIONS.iter().find(|it| it.name == mechanism);
    let variants = described.map_or(&[][..], |it| it.variants);
    let text = variants.iter().find(|(name, _)| *name == variant);
    let text = text.map_or("", |(_, text)| text.trim());
    text.split(". ")
        .next()
        .unwrap_or("")
        .trim_end_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests;
