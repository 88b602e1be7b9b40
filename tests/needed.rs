//! What tests compare with and a machine may lack: guests, captures, the kernel's script, readers of exports. The test
//! programs that need such things take this file in as a module.

/// Says that a test judges nothing because `what` is not there; where `LOWMARK_CI` is 1 that is an error.
pub(crate) fn absent(what: impl std::fmt::Display) {
    let message = format!("judges nothing: {what}");
    assert!(
        std::env::var_os("LOWMARK_CI").is_none_or(|value| value != "1"),
        "{message}"
    );
    println!("{message}");
}
