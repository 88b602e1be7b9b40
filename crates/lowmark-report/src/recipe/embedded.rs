//! The recipes that come with lowmark, part of the program.

use super::{Recipe, RecipeError};

macro_rules! files {
    ($($id:literal,)*) => {
        /// Text of every recipe by the name of its evaluation, in the order of names.
        const FILES: &[(&str, &str)] = &[
            $(($id, include_str!(concat!("../../../../evaluations/", $id, ".toml"))),)*
        ];
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

/// Names of the evaluations that have a recipe, in alphabetical order.
pub fn ids() -> impl ExactSizeIterator<Item = &'static str> {
    FILES.iter().map(|(id, _)| *id)
}

/// The recipe of an evaluation.
///
/// # Errors
///
/// [`RecipeError::Unknown`] if there is none.
pub fn get(id: &str) -> Result<Recipe, RecipeError> {
    match FILES.iter().find(|(known, _)| *known == id) {
        Some((_, text)) => Recipe::parse(&format!("evaluations/{id}.toml"), text),
        None => {
            let known = ids().map(str::to_owned).collect();
            Err(RecipeError::Unknown {
                id: id.to_owned(),
                known,
            })
        }
    }
}
