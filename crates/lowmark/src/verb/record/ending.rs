//! What ends a recording: its command, or a signal.
//!
//! Without a command, the first SIGINT, SIGTERM or SIGHUP ends it; one that comes while it is written ends the program.
//! With a command, the command decides: a terminal's SIGINT reaches it as well, a SIGTERM or SIGHUP is passed on, and the
//! recording ends when it does. If it does not, the next signal ends the recording without it.

use lowmark_real::record::Order;
use miette::{IntoDiagnostic, WrapErr, miette};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGUSR1};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// How a process that was killed ends, for shells: so much and the signal.
const KILLED: i32 = 128;

/// Who tells the recorder, and what was told.
#[derive(Clone)]
pub(super) struct Ending {
    state: Arc<Mutex<State>>,
}

struct State {
    orders: Sender<Order>,
    /// Whether SIGUSR1 means something.
    has_ring: bool,
    /// The command, while it runs.
    child: Option<Pid>,
    /// Whether the command was left to end at a signal.
    waiting: bool,
    stopped: bool,
}

impl Ending {
    pub(super) fn new(orders: Sender<Order>, has_ring: bool) -> Ending {
        let state = State {
            orders,
            has_ring,
            child: None,
            waiting: false,
            stopped: false,
        };
        Ending {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears a signal; whether that was all that it means.
    pub(super) fn hear(&self, signal: i32) -> bool {
        let mut state = self.state();
        if signal == SIGUSR1 {
            // Who has ended needs no orders. Without a ring, a stray one is no reason to lose the recording.
            let _ = state.has_ring && state.orders.send(Order::Capture).is_ok();
            return true;
        }
        if state.stopped {
            return false;
        }
        if let Some(child) = state.child
            && !std::mem::replace(&mut state.waiting, true)
        {
            let passed = match signal {
                SIGTERM => Some(Signal::TERM),
                SIGHUP => Some(Signal::HUP),
                _ => None,
            };
            if let Some(signal) = passed {
                // It may have ended just now.
                let _ = kill_process(child, signal);
            }
            return true;
        }
        state.stop();
        true
    }
}

impl State {
    fn stop(&mut self) {
        self.stopped = true;
        // Who has ended needs no orders.
        let _ = self.orders.send(Order::Stop);
    }
}

/// The command, and the thread that waits for it.
pub(super) struct Program {
    ending: Ending,
    waiter: JoinHandle<Option<ExitStatus>>,
}

impl Program {
    /// Starts it.
    pub(super) fn start(
        name: &OsStr,
        arguments: &[OsString],
        ending: &Ending,
    ) -> miette::Result<Program> {
        // A signal that comes now waits until it is known whom it is for.
        let mut state = ending.state();
        if state.stopped {
            return Err(miette!("a signal came before the command was started"));
        }
        let mut child = Command::new(name)
            .args(arguments)
            .spawn()
            .into_diagnostic()
            .wrap_err_with(|| format!("{}: cannot be started", name.to_string_lossy()))?;
        state.child = Some(Pid::from_child(&child));
        drop(state);
        let own = ending.clone();
        let waiter = std::thread::spawn(move || {
            let status = child.wait().ok();
            let mut state = own.state();
            state.child = None;
            state.stop();
            status
        });
        Ok(Program {
            ending: ending.clone(),
            waiter,
        })
    }

    /// Exit status of the command as a shell has it. One that still runs, since the recording ended without it, is not
    /// waited for.
    pub(super) fn status(self) -> u8 {
        if self.ending.state().child.is_some() {
            return 0;
        }
        let status = self.waiter.join().ok().flatten();
        let code = status.and_then(|status| {
            let killed = status.signal().map(|signal| KILLED + signal);
            status.code().or(killed)
        });
        code.map_or(crate::error::EXIT_STATUS, |code| {
            u8::try_from(code).unwrap_or(u8::MAX)
        })
    }
}
