//! What a row of the history says: a change of the kernel, and the version that brought it.

use super::mechanisms::Mechanisms;
use lowmark_record::Release;
use std::fmt;

/// A kernel version, `vMAJOR.MINOR`, or `v2.6.PATCH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number, which tells versions apart in 2.6 only; 0 from 3.0 on.
    pub patch: u32,
}

impl Version {
    /// Whether it is older, for constants.
    pub(super) const fn is_before(self, other: Version) -> bool {
        let both = [
            (self.major, other.major),
            (self.minor, other.minor),
            (self.patch, other.patch),
        ];
        let mut at = 0;
        while at < both.len() - 1 && both[at].0 == both[at].1 {
            at += 1;
        }
        both[at].0 < both[at].1
    }

    /// The same as a release, by which events are written.
    pub(crate) fn release(self) -> Release {
        match self.major {
            2 => Release::v2_6(self.patch as u16),
            _ => Release::new(self.major as u16, self.minor as u16),
        }
    }
}

/// Version `major.minor`, 3.0 or later.
pub(crate) const fn v(major: u32, minor: u32) -> Version {
    Version {
        major,
        minor,
        patch: 0,
    }
}

/// Version `2.6.patch`.
pub(super) const fn v2_6(patch: u32) -> Version {
    Version {
        major: 2,
        minor: 6,
        patch,
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version {
            major,
            minor,
            patch,
        } = self;
        match major {
            2 => write!(f, "v{major}.{minor}.{patch}"),
            _ => write!(f, "v{major}.{minor}"),
        }
    }
}

/// One change of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// Name by which `--kernel VERSION+NAME` applies it alone.
    pub name: &'static str,
    /// First version that has it.
    pub version: Version,
    /// Mainline commit, at least twelve digits.
    pub commit: &'static str,
    /// What it changes, one line.
    pub summary: &'static str,
    pub(super) effect: fn(&mut Mechanisms),
}

impl Change {
    /// Applies the change alone.
    pub fn apply(&self, mechanisms: &mut Mechanisms) {
        (self.effect)(mechanisms);
    }
}
