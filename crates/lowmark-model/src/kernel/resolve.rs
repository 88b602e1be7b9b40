//! From what was asked for to a kernel of the model.
//!
//! 1. The version gives the changes of the history, with those that a stable kernel took over, without those that are
//!    taken out.
//! 2. Changes and variants that are asked for come on top, in the order written.
//! 3. What no kernel combined is refused, and so is what has no effect because the model leaves out what it belongs to.
//!    A switch that is accepted does something.

use super::coverage::PREFIX;
use super::versions::{self, Change, HISTORY, STABLE};
use super::{Coverage, DESCRIPTIONS, Kernel, KernelError, Mechanisms, NEEDS, Sysctl, Version};
use lowmark_spec::{KernelSpec, Toggle};

impl Kernel {
    /// A kernel as it was released, with the settings that it boots with.
    pub fn released(version: Version) -> Kernel {
        Kernel {
            version,
            mechanisms: versions::at(version),
            coverage: Coverage::of(version),
            sysctl: Sysctl::default(),
        }
    }

    /// The kernel that a specification names.
    ///
    /// # Errors
    ///
    /// When version, mechanism, variant, change or setting is not known, when what is asked for does not fit together, or
    /// when it has no effect in the model.
    pub fn resolve(spec: &KernelSpec) -> Result<Kernel, KernelError> {
        let (version, stable) = Version::parse(&spec.version)?;
        let mut kernel = Kernel::released(version);
        let mut settings = Vec::new();
        for (name, value) in &spec.sysctl {
            match name.strip_prefix(PREFIX) {
                Some(subject) => kernel.coverage.ask(subject, value, version)?,
                None => settings.push((name, value)),
            }
        }
        kernel.mechanisms = base(version, stable, &spec.toggles)?;
        for toggle in &spec.toggles {
            kernel.carry_out(toggle)?;
        }
        kernel.check_needs()?;
        for (name, value) in settings {
            kernel.sysctl.set(name, value)?;
        }
        kernel.sysctl.check(version)?;
        Ok(kernel)
    }

    /// What a stable kernel of the version named took over from later releases.
    pub fn taken_over(spec: &KernelSpec) -> Vec<&'static Change> {
        match Version::parse(&spec.version) {
            Ok((version, true)) => of_stable(version).collect(),
            _ => Vec::new(),
        }
    }

    /// A change or a variant on top of the version.
    fn carry_out(&mut self, toggle: &Toggle) -> Result<(), KernelError> {
        let before = self.mechanisms.settings();
        match toggle {
            Toggle::Set { mechanism, variant } => {
                self.mechanisms.set(mechanism, variant)?;
                return self.check_effect(toggle, &[mechanism.as_str()]);
            }
            Toggle::Apply(name) => {
                let change = find(name)?;
                if change.version <= self.version {
                    return Err(KernelError::HasAlready {
                        change: change.name,
                        version: self.version,
                        since: change.version,
                    });
                }
                change.apply(&mut self.mechanisms);
            }
            // Done already.
            Toggle::Remove(_) => return Ok(()),
        }
        let after = self.mechanisms.settings();
        let differ = after.iter().zip(&before).filter(|(a, b)| a != b);
        let altered: Vec<&str> = differ.map(|((name, _), _)| *name).collect();
        self.check_effect(toggle, &altered)
    }

    /// Something of what was altered is in the model of this kernel.
    fn check_effect(&self, asked: &Toggle, altered: &[&str]) -> Result<(), KernelError> {
        let mut subjects = altered.iter().map(|name| self.coverage.leaves_out(name));
        let Some(Some(subject)) = subjects.next() else {
            return Ok(());
        };
        if subjects.any(|subject| subject.is_none()) {
            return Ok(());
        }
        Err(KernelError::LeftOut {
            asked: asked.to_string(),
            version: self.version,
            subject: subject.name,
            modelled: match subject.modelled_since {
                Some(since) if self.version < since => format!("has from {since} on"),
                _ => format!("has with {PREFIX}{}=on", subject.name),
            },
        })
    }

    fn check_needs(&self) -> Result<(), KernelError> {
        let violated = NEEDS.iter().find(|need| need.is_violated(&self.mechanisms));
        let Some(need) = violated else {
            return Ok(());
        };
        let settings = self.mechanisms.settings();
        let found = settings.iter().find(|(name, _)| *name == need.other);
        Err(KernelError::Needs {
            setting: format!("{}={}", need.mechanism, need.variant),
            other: need.other,
            works_with: need.works_with().join(" or "),
            found: found.map_or("", |(_, variant)| variant),
        })
    }
}

/// The mechanisms of a version without the changes that are taken out.
fn base(version: Version, stable: bool, toggles: &[Toggle]) -> Result<Mechanisms, KernelError> {
    let taken_over =
        |change: &Change| stable && of_stable(version).any(|it| it.name == change.name);
    let has = |change: &&Change| change.version <= version || taken_over(change);
    let mut out: Vec<&'static Change> = Vec::new();
    for toggle in toggles {
        let Toggle::Remove(name) = toggle else {
            continue;
        };
        let change = find(name)?;
        if !has(&change) {
            return Err(KernelError::HasNot {
                change: change.name,
                version,
                since: change.version,
            });
        }
        out.push(change);
    }
    let is_out = |change: &Change| out.iter().any(|it| it.name == change.name);
    for change in &out {
        let later = HISTORY.iter().skip_while(|it| it.name != change.name);
        let later: Vec<&Change> = later.skip(1).filter(|it| has(it) && !is_out(it)).collect();
        for mechanism in versions::altered_by(change) {
            let overrides = |it: &&&Change| versions::altered_by(it).contains(&mechanism);
            if let Some(later) = later.iter().find(overrides) {
                return Err(KernelError::BuiltUpon {
                    change: change.name,
                    version,
                    mechanism,
                    later: later.name,
                    since: later.version,
                });
            }
        }
    }
    let kept = HISTORY
        .iter()
        .filter(|change| has(change) && !is_out(change));
    Ok(versions::applied(kept))
}

/// What stable kernels of a release took over.
fn of_stable(release: Version) -> impl Iterator<Item = &'static Change> {
    let names = STABLE.iter().filter(move |(_, taker)| *taker == release);
    names.filter_map(|(name, _)| HISTORY.iter().find(|change| change.name == *name))
}

/// A change by name.
fn find(name: &str) -> Result<&'static Change, KernelError> {
    let found = versions::change(name);
    let Some(mechanism) = DESCRIPTIONS.iter().find(|it| it.name == name) else {
        return found;
    };
    found.map_err(|_| {
        let names: Vec<&str> = mechanism.variants.iter().map(|(name, _)| *name).collect();
        KernelError::MissingVariant {
            mechanism: name.into(),
            known: names.join(", "),
        }
    })
}

#[cfg(test)]
mod tests;
