//! Kernel releases.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A kernel release, `2.6.36` or `6.18`. Release candidates count as the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Release {
    major: u16,
    minor: u16,
    /// Third number, which tells releases apart in 2.6 only; 0 from 3.0 on.
    patch: u16,
}

/// A text that names no release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no kernel release; expected one like `2.6.36`, `4.11` or `v6.18`")]
pub struct NoRelease(String);

impl Release {
    /// The newest: what a text without an era is written for.
    pub const NEWEST: Release = Release::new(6, 18);
    /// The oldest release whose texts of tracepoints are known.
    pub const OLDEST_TEXT: Release = Release::v2_6(36);
    /// The newest release with a text of its own: what later ones print is not known.
    pub const NEWEST_TEXT: Release = Release::new(7, 2);

    /// Release `major.minor`, 3.0 or later.
    pub const fn new(major: u16, minor: u16) -> Release {
        Release {
            major,
            minor,
            patch: 0,
        }
    }

    /// Release `2.6.patch`.
    pub const fn v2_6(patch: u16) -> Release {
        Release {
            major: 2,
            minor: 6,
            patch,
        }
    }
}

impl FromStr for Release {
    type Err = NoRelease;

    /// Takes what `uname -r` says: `v` before it and anything after the numbers is ignored.
    fn from_str(text: &str) -> Result<Release, NoRelease> {
        let refuse = || NoRelease(text.to_owned());
        let bare = text.strip_prefix('v').unwrap_or(text);
        let end = bare
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(bare.len());
        let mut numbers = bare[..end].split('.').map(str::parse::<u16>);
        let mut next = || numbers.next().transpose().ok().flatten();
        let (Some(major), Some(minor)) = (next(), next()) else {
            return Err(refuse());
        };
        match (major, minor, next()) {
            (2, 6, Some(patch)) => Ok(Release::v2_6(patch)),
            (3.., minor, _) => Ok(Release::new(major, minor)),
            _ => Err(refuse()),
        }
    }
}

impl TryFrom<String> for Release {
    type Error = NoRelease;

    fn try_from(text: String) -> Result<Release, NoRelease> {
        text.parse()
    }
}

impl From<Release> for String {
    fn from(release: Release) -> String {
        release.to_string()
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.major == 2 {
            write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
        } else {
            write!(f, "{}.{}", self.major, self.minor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Release;

    #[test]
    fn every_text_is_of_a_known_release() {
        let texts = crate::Kind::ALL.iter().flat_map(|kind| kind.spec().texts);
        let read = |text: &str| text.parse::<Release>().expect("a release");
        let since: Vec<Release> = texts.map(|(since, _)| read(since)).collect();
        assert_eq!(since.iter().min(), Some(&Release::OLDEST_TEXT));
        assert_eq!(since.iter().max(), Some(&Release::NEWEST_TEXT));
    }

    #[test]
    fn reads_what_uname_says() {
        let read = |text: &str| text.parse::<Release>().expect("a release").to_string();
        assert_eq!(read("2.6.36-rc4"), "2.6.36");
        assert_eq!(read("v3.14"), "3.14");
        assert_eq!(read("6.18.15+deb13-cloud-amd64"), "6.18");
        assert_eq!(read("6.1.0-56-amd64"), "6.1");
        assert_eq!(read("v6.18"), "6.18");
        for wrong in ["", "v", "6", "2.4.20", "kernel", "2.6", "99999999.1"] {
            assert!(wrong.parse::<Release>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn orders_eras() {
        let releases = [
            "2.6.36", "2.6.39", "3.0", "3.19", "4.0", "4.20", "5.0", "6.18",
        ];
        let read: Vec<Release> = releases.iter().map(|r| r.parse().expect("valid")).collect();
        assert!(read.is_sorted());
    }
}
