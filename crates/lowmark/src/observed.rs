//! Settings that the kernel that ran had, and that are not the model's defaults: distributions set some otherwise (Ubuntu's 5.4
//! has `watermark_boost_factor` 0), and a host's administrator may have set any.

use lowmark_model::kernel::{SETTINGS, Sysctl};
use lowmark_record::Recording;
use lowmark_report::identities::lru_gen;
use std::collections::BTreeMap;

/// The setting that has pages stand in generations.
const LRU_GEN: &str = "lru_gen.enabled";
/// The setting that is left out: the machine of the model has the watermarks themselves, as the kernel reported them.
const OF_MACHINE: &str = "min_free_kbytes";

/// Such settings before the load began, by the model's names for them.
pub(crate) fn settings(kernel: &Recording) -> BTreeMap<String, String> {
    let system = kernel.system.as_deref();
    let mut observed = system.map_or_else(BTreeMap::new, |system| of_vm(&system.before));
    // Whether pages stand in generations is the configuration's where nobody has set it.
    if let Some(enabled) = lru_gen(kernel) {
        observed.insert(LRU_GEN.to_owned(), enabled.to_string());
    }
    observed
}

/// Such settings under `/proc/sys/vm`, of files by their paths.
fn of_vm(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut observed = BTreeMap::new();
    for setting in SETTINGS.iter().filter(|it| it.name != OF_MACHINE) {
        let hyphened = setting.name.replace('_', "-");
        let paths = [setting.name, &hyphened].map(|name| format!("proc/sys/vm/{name}"));
        let Some(text) = paths.iter().find_map(|path| files.get(path)) else {
            continue;
        };
        let value = text.trim();
        // A ratio reads 0 while bytes count in its place; writing it would undo them.
        let bytes = setting.name.replace("_ratio", "_bytes");
        let bytes = files.get(&format!("proc/sys/vm/{bytes}"));
        if setting.name.ends_with("_ratio") && bytes.is_some_and(|bytes| bytes.trim() != "0") {
            continue;
        }
        let differs = value.parse().ok() != setting.default();
        if differs && Sysctl::default().set(setting.name, value).is_ok() {
            observed.insert(setting.name.to_owned(), value.to_owned());
        }
    }
    observed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
        pairs
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into()
    }

    #[test]
    fn what_differs_from_the_models_defaults_is_taken_over() {
        let files = texts([
            ("proc/sys/vm/watermark_boost_factor", "0\n"),
            ("proc/sys/vm/watermark_scale_factor", "10\n"),
            ("proc/sys/vm/page-cluster", "0\n"),
            ("proc/sys/vm/swappiness", "60\n"),
            ("proc/sys/vm/min_free_kbytes", "67584\n"),
            ("proc/sys/vm/dirty_ratio", "many\n"),
            ("proc/sys/vm/dirty_bytes", "0\n"),
            ("proc/sys/vm/dirty_background_ratio", "0\n"),
            ("proc/sys/vm/dirty_background_bytes", "65536\n"),
            ("proc/sys/vm/max_map_count", "65530\n"),
        ]);
        let expected = texts([
            ("dirty_background_bytes", "65536"),
            ("page_cluster", "0"),
            ("watermark_boost_factor", "0"),
        ]);
        assert_eq!(of_vm(&files), expected);
    }
}
