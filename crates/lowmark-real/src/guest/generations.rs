//! What debugfs says of generations of pages (`lru_gen`), by the name that the model has for it.
//!
//! ```text
//! memcg     1 /
//!  node     0
//!           4       6420      12057          0
//!           5       1130       1022          0
//! ```
//!
//! For each memory cgroup and node there is a line for each generation, the oldest first: its number, age in ms, anonymous pages
//! and pages of files.

use std::collections::BTreeMap;

/// The file, by path without the leading slash.
pub(crate) const FILE: &str = "sys/kernel/debug/lru_gen";

/// The counter made of it.
const COUNTER: &str = "lru_gen/max_seq";

/// Numbers of the youngest generations of the root's pages, of all nodes together; none if the text does not say.
fn youngest(text: &str) -> Option<u64> {
    let mut of_root = false;
    let (mut sum, mut last) = (0, None);
    let mut any = false;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("memcg") => of_root = words.nth(1) == Some("/"),
            Some("node") => sum += last.take().unwrap_or(0),
            Some(number) if of_root => {
                last = Some(number.parse::<u64>().ok()?);
                any = true;
            }
            _ => {}
        }
    }
    any.then(|| sum + last.unwrap_or(0))
}

/// `lru_gen/max_seq`: generations made between two snapshots; none where pages do not stand in such.
///
/// # Errors
///
/// When pages stand in generations, and debugfs does not say how many in the form above: a note for the recording.
pub(super) fn counter(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Result<Option<(String, u64)>, String> {
    let enabled = before.get("sys/kernel/mm/lru_gen/enabled");
    let bits = enabled.map_or("0", |text| text.trim().trim_start_matches("0x"));
    if bits.chars().all(|digit| digit == '0') {
        return Ok(None);
    }
    let of = |snapshot: &BTreeMap<String, String>| youngest(snapshot.get(FILE)?);
    match (of(before), of(after)) {
        (Some(before), Some(after)) => Ok(Some((COUNTER.into(), after.saturating_sub(before)))),
        _ => Err(format!(
            "pages stand in generations, but /{FILE} does not list those of the root's memory cgroup in the form that is \
             known: there is no counter {COUNTER}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_NODES: &str = "memcg     1 /\n node     0\n          4       6420      12057          0 \n          5       1130       1022          0 \n node     1\n          2          9          0          3 \nmemcg     2 /box\n node     0\n         77          1          2          3 \n";

    #[test]
    fn the_youngest_generations_of_the_root_are_added_up() {
        assert_eq!(youngest(TWO_NODES), Some(5 + 2));
        for other in [
            "",
            "memcg 2 /box\n node 0\n 7 1 2 3\n",
            "memcg 1 /\n node 0\n x\n",
        ] {
            assert_eq!(youngest(other), None, "{other}");
        }
    }

    #[test]
    fn generations_that_are_off_are_no_counter() {
        let snapshot = |enabled: &str, seq: u64| {
            let text = format!("memcg 1 /\n node 0\n {seq} 1 2 3\n");
            BTreeMap::from([
                (
                    "sys/kernel/mm/lru_gen/enabled".to_owned(),
                    enabled.to_owned(),
                ),
                (FILE.to_owned(), text),
            ])
        };
        let of = |enabled| counter(&snapshot(enabled, 3), &snapshot(enabled, 10));
        assert_eq!(of("0x0007\n"), Ok(Some((COUNTER.into(), 7))));
        assert_eq!(of("0x0000\n"), Ok(None));
        assert_eq!(counter(&BTreeMap::new(), &BTreeMap::new()), Ok(None));
        let mut unknown = snapshot("0x0007\n", 3);
        unknown.insert(FILE.into(), "memcg 1 / new words\n".into());
        let note = counter(&snapshot("0x0007\n", 3), &unknown).expect_err("it is not understood");
        assert!(note.contains(FILE) && note.contains(COUNTER), "{note}");
    }
}
