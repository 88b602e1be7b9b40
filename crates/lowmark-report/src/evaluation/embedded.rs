//! The published evaluations, part of the program.

use super::{Evaluation, EvaluationError, IndexEntry, raw};

macro_rules! published {
    ($name:literal) => {
        include_str!(concat!(
            "../../../../evaluations/published/",
            $name,
            ".toml"
        ))
    };
}

/// The index over all files.
const INDEX: &str = published!("index");

macro_rules! files {
    ($($id:literal,)*) => {
        /// Text of every file by the name of its evaluation, in the order of names.
        const FILES: &[(&str, &str)] = &[$(($id, published!($id)),)*];
    };
}

files! {
    "ioless-dirty-2011",
    "kswapd-classzone-2017-4.10",
    "kswapd-classzone-2017-4.11",
    "lumpy-removal-2012-fs_mark",
    "lumpy-removal-2012-micro",
    "lumpy-removal-2012-postmark",
    "lumpy-removal-2012-stress-highalloc",
    "lumpy-removal-2012-text-size",
    "swap-readahead",
    "swap-readahead-shaohua-2014",
    "thp-defrag-2016-stutter",
    "thp-defrag-2016-thpscale",
    "thp-defrag-2016-usemem",
    "vmscan-2010-ppc64-micro-mapped-file-stream",
    "vmscan-2010-ppc64-stress-highalloc",
    "vmscan-2010-x86_64-micro-mapped-file-stream",
    "vmscan-2010-x86_64-stress-highalloc",
}

/// Name of the embedded index in errors.
const INDEX_FILE: &str = "evaluations/published/index.toml";

/// Names of all published evaluations, in alphabetical order.
pub fn ids() -> impl ExactSizeIterator<Item = &'static str> {
    FILES.iter().map(|(id, _)| *id)
}

/// The index: every evaluation with its title and its claims, in the index's order.
///
/// # Errors
///
/// None in practice: tests read the embedded index.
pub fn index() -> Result<Vec<IndexEntry>, EvaluationError> {
    raw::index(INDEX_FILE, INDEX)
}

/// A published evaluation with its claims.
///
/// # Errors
///
/// [`EvaluationError::Unknown`] if there is none of this name.
pub fn get(id: &str) -> Result<Evaluation, EvaluationError> {
    let Some((_, text)) = FILES.iter().find(|(known, _)| *known == id) else {
        let known = ids().map(str::to_owned).collect();
        return Err(EvaluationError::Unknown {
            id: id.to_owned(),
            known,
        });
    };
    let entry = index()?.into_iter().find(|e| e.id == id);
    let claims = entry.map(|e| e.claims).unwrap_or_default();
    Evaluation::parse(&format!("evaluations/published/{id}.toml"), text, claims)
}
