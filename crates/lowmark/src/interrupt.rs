//! What SIGINT and SIGTERM do beside ending the program.
//!
//! 1. Input that may have no end ends at the first SIGINT, and what was read is told.
//! 2. Who hears signals for some time (a recorder) says of each whether it does something in place of the end.
//! 3. Otherwise what is half written is removed, and the program then ends by the signal as it would have.
//!
//! Where nobody asked for either, signals are left alone; one that the program was started to ignore stays ignored.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Something to be done when a signal comes.
type Action = Box<dyn FnMut() + Send>;

/// Something that says whether it dealt with a signal.
type Hearer = Box<dyn FnMut(i32) -> bool + Send>;

/// What is to be done.
struct Actions {
    /// At every signal, first of all.
    hear: Option<Hearer>,
    /// In place of the end, once.
    instead: Option<Action>,
    /// Before the end.
    before: Vec<Action>,
}

static ACTIONS: Mutex<Actions> = Mutex::new(Actions {
    hear: None,
    instead: None,
    before: Vec::new(),
});
/// What ends the program.
const ENDING_SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

static ENDING: AtomicBool = AtomicBool::new(false);
static START: Once = Once::new();

/// Hears SIGINT, SIGTERM, SIGHUP and SIGUSR1 from now on, before anything else is done at one: a signal of which it says
/// that it dealt with it does not end the program. To be called before the other functions here.
pub(crate) fn hear(hear: impl FnMut(i32) -> bool + Send + 'static) {
    actions().hear = Some(Box::new(hear));
    listen(&[SIGINT, SIGTERM, SIGHUP, SIGUSR1]);
}

/// Does this at the next SIGINT, which then does not end the program.
pub(crate) fn instead_of_end(action: impl FnMut() + Send + 'static) {
    actions().instead = Some(Box::new(action));
    listen(&ENDING_SIGNALS);
}

/// A SIGINT ends the program again.
pub(crate) fn nothing_instead() {
    actions().instead = None;
}

/// Does this before a SIGINT or SIGTERM ends the program.
pub(crate) fn before_end(action: impl FnMut() + Send + 'static) {
    actions().before.push(Box::new(action));
    listen(&ENDING_SIGNALS);
}

/// Does not return if the program is about to end: an error that comes of what was removed is not to be told.
pub(crate) fn wait_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

fn actions() -> std::sync::MutexGuard<'static, Actions> {
    ACTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(signals: &[i32]) {
    START.call_once(|| {
        let ignored = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let signals = signals
            .iter()
            .copied()
            .filter(|signal| !is_ignored(&ignored, *signal));
        // Without signals to hear all is as if nobody had asked.
        let Ok(mut signals) = Signals::new(signals) else {
            return;
        };
        std::thread::spawn(move || signals.forever().for_each(come));
    });
}

fn come(signal: i32) {
    let mut actions = actions();
    if actions.hear.as_mut().is_some_and(|hear| hear(signal)) {
        return;
    }
    if signal == SIGINT
        && let Some(mut action) = actions.instead.take()
    {
        action();
        return;
    }
    ENDING.store(true, Ordering::SeqCst);
    actions.before.iter_mut().for_each(|action| action());
    // It does not come back; if it did, there would be nobody to tell.
    let _ = emulate_default_handler(signal);
}

/// Whether a process with this `/proc/PID/status` ignores a signal: a shell starts what runs in the background so.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_seen() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001002\n";
        assert!(is_ignored(status, SIGINT));
        assert!(!is_ignored(status, SIGTERM));
        assert!(!is_ignored("", SIGINT));
    }
}
