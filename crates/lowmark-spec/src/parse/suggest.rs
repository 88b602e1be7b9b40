//! "Did you mean": the nearest known name by edit distance.

/// Longest name for which a suggestion is sought: the distance costs the product of the lengths.
const NAME_CHARS_MAX: usize = 40;

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`
/// (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// The known name nearest to `name`, if one is near enough to be meant. Of equals the first.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |s: &str| {
        s.to_lowercase()
            .replace('_', "-")
            .chars()
            .collect::<Vec<_>>()
    };
    let name = fold(name);
    if name.len() > NAME_CHARS_MAX {
        return None;
    }
    known
        .into_iter()
        .filter(|other| other.len() <= NAME_CHARS_MAX)
        .map(|other| (distance(&name, &fold(other)), other))
        .filter(|&(distance, other)| match name.len().min(other.len()) {
            // Very short names are all near each other: only their case can be a slip.
            0..3 => distance == 0,
            length => distance <= 1 + length / 4,
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, other)| other)
}

/// Help for an unknown name: the nearest known one, or all of them.
pub(crate) fn help<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(other) => format!("did you mean `{other}`?"),
        None if known.is_empty() => "none is defined".into(),
        None => format!("known: {}", list(&known)),
    }
}

/// Names separated by commas, the tail cut when there are very many.
pub(crate) fn list(names: &[&str]) -> String {
    const SHOWN_MAX: usize = 50;
    let shown = names
        .iter()
        .take(SHOWN_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().checked_sub(SHOWN_MAX) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_but_not_strangers() {
        let known = ["size", "offset", "drop_caches"];
        assert_eq!(nearest("sise", known), Some("size"));
        assert_eq!(nearest("isze", known), Some("size"));
        assert_eq!(nearest("drop-cache", known), Some("drop_caches"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("k", ["B", "K"]), Some("K"));
        assert_eq!(nearest("Q", ["B", "K"]), None);
        assert_eq!(nearest("", known), None);
    }
}
