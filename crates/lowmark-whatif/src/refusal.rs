//! What is not answered, and why.

use std::fmt;

/// Why there is no answer, with the recording or the question that would have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is in the way, one sentence without a full stop.
    pub because: String,
    /// What would have let it be answered, one sentence without a full stop.
    pub instead: String,
}

impl Refusal {
    pub(crate) fn new(because: impl Into<String>, instead: impl Into<String>) -> Refusal {
        Refusal {
            because: because.into(),
            instead: instead.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.because, self.instead)
    }
}

/// Why a question has no answer.
#[derive(Debug)]
pub enum Error<E> {
    /// It is refused.
    Refused(Box<Refusal>),
    /// The model could not run.
    Run(E),
}

impl<E> From<Refusal> for Error<E> {
    fn from(refusal: Refusal) -> Error<E> {
        Error::Refused(Box::new(refusal))
    }
}
