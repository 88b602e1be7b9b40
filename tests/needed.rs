//! What tests compare with and a machine may lack: guests, captures, the kernel's script, readers of exports. The test
//! programs that need such things take this file in as a module.

/// Whether all of it must be there: `LOWMARK_CI` is 1.
pub(crate) fn required() -> bool {
    std::env::var_os("LOWMARK_CI").is_some_and(|value| value == "1")
}

/// Says that a test judges nothing because `what` is not there; where everything is required that is an error.
pub(crate) fn absent(what: impl std::fmt::Display) {
    let message = format!("judges nothing: {what}");
    assert!(!required(), "{message}");
    println!("{message}");
}
