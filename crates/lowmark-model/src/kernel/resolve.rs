//! From what was asked for to a kernel of the model.
//!
//! 1. Settings are taken first, as some of them say which mechanisms decide anything.
//! 2. The version gives the changes of the history, with those that a stable kernel took over, without those that are
//!    taken out.
//! 3. Changes and variants that are asked for come on top, in the order written.
//! 4. Variants that no kernel combined are refused, and so are switches without effect in this kernel (`effect.rs`): a
//!    switch that is accepted does something.

use super::coverage::PREFIX;
use super::versions::{self, Change, HISTORY, STABLE};
use super::{Coverage, DESCRIPTIONS, Kernel, KernelError, Mechanisms, NEEDS, Sysctl, Version};
use lowmark_spec::{KernelPart, KernelSpec, Toggle};

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
        Kernel::resolve_parts(spec).map_err(|(_, error)| error)
    }

    /// Everything for which [`resolve`](Kernel::resolve) refuses a specification, and the parts that it is about.
    ///
    /// 1. The part that is refused is taken out, and the rest looked at again.
    /// 2. An error that two parts do not fit together is left out once one of the parts is refused for itself.
    pub fn refusals(spec: &KernelSpec) -> Vec<(KernelPart, KernelError)> {
        let mut rest = spec.clone();
        let mut numbers: Vec<usize> = (0..spec.toggles.len()).collect();
        let mut found = Vec::new();
        while let Err((part, error)) = Kernel::resolve_parts(&rest) {
            let follows = error.is_of_several() && numbers.len() < spec.toggles.len();
            let own = match &part {
                KernelPart::Toggle(at) => {
                    rest.toggles.remove(*at);
                    KernelPart::Toggle(numbers.remove(*at))
                }
                KernelPart::Setting(name) => {
                    rest.sysctl.remove(name);
                    part.clone()
                }
                KernelPart::Whole | KernelPart::Version => part.clone(),
            };
            if !follows {
                found.push((own, error));
            }
            match part {
                KernelPart::Toggle(_) | KernelPart::Setting(_) => {}
                KernelPart::Whole => break,
                KernelPart::Version => {
                    found.extend(refused_by_all(&rest));
                    break;
                }
            }
        }
        found
    }

    fn resolve_parts(spec: &KernelSpec) -> Result<Kernel, (KernelPart, KernelError)> {
        let at = |part: KernelPart| move |error: KernelError| (part, error);
        let setting = |name: &String| at(KernelPart::Setting(name.clone()));
        let parsed = Version::parse(&spec.version);
        let (version, stable) = parsed.map_err(at(KernelPart::Version))?;
        let mut kernel = Kernel::released(version);
        for (name, value) in &spec.sysctl {
            let taken = match name.strip_prefix(PREFIX) {
                Some(subject) => kernel.coverage.ask(subject, value, version),
                None => {
                    (kernel.sysctl.set(name, value)).and_then(|()| kernel.sysctl.check(version))
                }
            };
            taken.map_err(setting(name))?;
        }
        kernel.mechanisms = base(version, stable, &spec.toggles)?;
        for (number, toggle) in spec.toggles.iter().enumerate() {
            let carried_out = kernel.carry_out(toggle);
            carried_out.map_err(at(KernelPart::Toggle(number)))?;
        }
        kernel
            .check_needs()
            .map_err(|error| (with_needs(spec, &error), error))?;
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
            // The mechanisms are without it already.
            Toggle::Remove(name) => {
                return self.check_effect(toggle, &versions::altered_by(find(name)?));
            }
        }
        let after = self.mechanisms.settings();
        let differ = after.iter().zip(&before).filter(|(a, b)| a != b);
        let altered: Vec<&str> = differ.map(|((name, _), _)| *name).collect();
        self.check_effect(toggle, &altered)
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

/// The toggle that changes a mechanism of which another variant would be needed.
fn with_needs(spec: &KernelSpec, error: &KernelError) -> KernelPart {
    let KernelError::Needs { setting, other, .. } = error else {
        return KernelPart::Whole;
    };
    let needing = setting.split('=').next().unwrap_or_default();
    let changes = |toggle: &Toggle| match toggle {
        Toggle::Set { mechanism, .. } => mechanism == needing || mechanism == other,
        Toggle::Apply(_) | Toggle::Remove(_) => false,
    };
    let number = spec.toggles.iter().position(changes);
    number.map_or(KernelPart::Whole, KernelPart::Toggle)
}

/// Settings that no version would take, where the version is not known.
fn refused_by_all(spec: &KernelSpec) -> Vec<(KernelPart, KernelError)> {
    let settings = spec.sysctl.iter();
    let settings = settings.filter(|(name, _)| !name.starts_with(PREFIX));
    let refused = settings.filter_map(|(name, value)| {
        let error = Sysctl::default().set(name, value).err()?;
        Some((KernelPart::Setting(name.clone()), error))
    });
    refused.collect()
}

/// The mechanisms of a version without the changes that are taken out.
fn base(
    version: Version,
    stable: bool,
    toggles: &[Toggle],
) -> Result<Mechanisms, (KernelPart, KernelError)> {
    let at = |number: usize| move |error: KernelError| (KernelPart::Toggle(number), error);
    let taken_over =
        |change: &Change| stable && of_stable(version).any(|it| it.name == change.name);
    let has = |change: &&Change| change.version <= version || taken_over(change);
    let mut out: Vec<(usize, &'static Change)> = Vec::new();
    for (number, toggle) in toggles.iter().enumerate() {
        let Toggle::Remove(name) = toggle else {
            continue;
        };
        let change = find(name).map_err(at(number))?;
        if !has(&change) {
            return Err(at(number)(KernelError::HasNot {
                change: change.name,
                version,
                since: change.version,
            }));
        }
        out.push((number, change));
    }
    let is_out = |change: &Change| out.iter().any(|(_, it)| it.name == change.name);
    for &(number, change) in &out {
        let later = HISTORY.iter().skip_while(|it| it.name != change.name);
        let later: Vec<&Change> = later.skip(1).filter(|it| has(it) && !is_out(it)).collect();
        for mechanism in versions::altered_by(change) {
            let overrides = |it: &&&Change| versions::altered_by(it).contains(&mechanism);
            if let Some(later) = later.iter().find(overrides) {
                return Err(at(number)(KernelError::BuiltUpon {
                    change: change.name,
                    version,
                    mechanism,
                    later: later.name,
                    since: later.version,
                }));
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
