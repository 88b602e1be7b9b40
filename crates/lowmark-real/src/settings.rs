//! The settings of the kernel that a scenario asks for.

use crate::protocol::Setting;
use lowmark_spec::Scenario;

/// How the names of settings begin that say which parts of a kernel the model has (`model.slab_pages`): what the model is to have
/// of the kernel, the kernel has.
const PARTS_OF_THE_MODEL: &str = "model.";

/// What is written into `/proc/sys/vm` and the like, in this order: `thp.enabled` raises `min_free_kbytes`, and one that is set
/// is written after it.
pub(crate) fn of(scenario: &Scenario) -> Vec<Setting> {
    let of_thp = |name: &str| name.starts_with("thp.");
    let knobs = scenario.kernel.sysctl.iter();
    let knobs = knobs.filter(|(name, _)| !name.starts_with(PARTS_OF_THE_MODEL));
    let (first, then): (Vec<_>, Vec<_>) = knobs.partition(|(name, _)| of_thp(name));
    let settings = first.into_iter().chain(then);
    let settings = settings.map(|(name, value)| Setting {
        name: name.clone(),
        value: value.clone(),
        optional: false,
    });
    settings.collect()
}
