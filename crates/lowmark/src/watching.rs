//! Watching on a terminal: keys, the clock, and a system that goes on.
//!
//! 1. The screen is drawn anew for each key, for each look at a system, and twenty times a second while a recording goes on.
//! 2. However it ends, the terminal is as it was: at the end, after an error, a panic, or a signal.

use crate::interrupt;
use crate::output;
use lowmark_real::record::Watcher;
use lowmark_watch::look::{Look, Task};
use lowmark_watch::player::Player;
use lowmark_watch::screen::{View, draw};
use lowmark_watch::timeline::Timeline;
use miette::IntoDiagnostic;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::{Duration, Instant};

/// Time between two pictures of a recording that goes on.
const PICTURE: Duration = Duration::from_millis(50);
/// Time between two looks at a system that is on a screen.
const LOOK: Duration = Duration::from_millis(250);
/// The part of what there is by which one key goes back or forward.
const STEP: f64 = 0.02;

/// A system that is looked at.
pub(crate) struct System {
    watcher: Watcher,
    began: Instant,
    /// How long it is looked at.
    length: Option<Duration>,
    /// When it was looked at last.
    looked: Option<Instant>,
}

impl System {
    /// One that is looked at from now on, for so long.
    pub(crate) fn new(watcher: Watcher, length: Option<Duration>) -> System {
        System {
            watcher,
            began: Instant::now(),
            length,
            looked: None,
        }
    }

    /// Time until the next look is due.
    fn until_due(&self, every: Duration) -> Duration {
        match self.looked {
            Some(looked) => every.saturating_sub(looked.elapsed()),
            None => Duration::ZERO,
        }
    }

    fn is_over(&self) -> bool {
        self.length
            .is_some_and(|length| self.began.elapsed() > length)
    }

    fn look(&mut self) -> Look {
        self.looked = Some(Instant::now());
        let time_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Look::new(time_ns, self.watcher.look(time_ns))
    }

    /// A look with the busiest tasks, which takes longer.
    fn look_at_tasks(&mut self) -> Look {
        let mut look = self.look();
        let tasks = self.watcher.tasks(look.time_ns);
        look.tasks = tasks
            .filter_map(|task| Task::new(task.pid, task.name, &task.fields))
            .collect();
        look
    }

    /// The next look when it is due; none when the time is over.
    pub(crate) fn wait_and_look(&mut self, every: Duration) -> Option<Look> {
        std::thread::sleep(self.until_due(every));
        (!self.is_over()).then(|| self.look())
    }
}

/// Shows a recording until the user ends it.
pub(crate) fn recording(title: &str, timeline: Timeline) -> miette::Result<()> {
    let mut controls = Controls::new(Player::of_recording(timeline.span().unwrap_or_default()));
    on_terminal(|terminal| {
        let mut before = Instant::now();
        loop {
            let passed = before.elapsed();
            before += passed;
            let passed_ns = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
            controls.player.pass(passed_ns);
            show(terminal, title, &timeline, &controls)?;
            let wait = if controls.player.is_playing() {
                PICTURE
            } else {
                Duration::MAX
            };
            if !key(wait, &mut controls)? {
                return Ok(());
            }
            if !controls.player.is_playing() {
                before = Instant::now();
            }
        }
    })
}

/// Shows a system until the user ends it, or the time is over.
pub(crate) fn system(title: &str, system: &mut System) -> miette::Result<()> {
    let mut controls = Controls::new(Player::live());
    let mut timeline = Timeline::default();
    on_terminal(|terminal| {
        loop {
            if system.until_due(LOOK).is_zero() {
                timeline.push(system.look_at_tasks());
                controls.player.grow(timeline.span().unwrap_or_default());
            }
            show(terminal, title, &timeline, &controls)?;
            if !key(system.until_due(LOOK), &mut controls)? || system.is_over() {
                return Ok(());
            }
        }
    })
}

fn show(
    terminal: &mut DefaultTerminal,
    title: &str,
    timeline: &Timeline,
    controls: &Controls,
) -> std::io::Result<()> {
    let view = View {
        title,
        timeline,
        player: &controls.player,
        tasks: controls.tasks,
        colour: output::color(true),
    };
    terminal.draw(|frame| draw(frame, &view))?;
    Ok(())
}

/// Gives the terminal to somebody, and takes it back.
fn on_terminal(
    work: impl FnOnce(&mut DefaultTerminal) -> std::io::Result<()>,
) -> miette::Result<()> {
    interrupt::before_end(ratatui::restore);
    let mut terminal = ratatui::try_init().into_diagnostic()?;
    let result = work(&mut terminal);
    ratatui::restore();
    interrupt::wait_if_ending();
    result.into_diagnostic()
}

/// Waits for a key, and does what it says. Whether to go on.
fn key(wait: Duration, controls: &mut Controls) -> std::io::Result<bool> {
    if !event::poll(wait)? {
        return Ok(true);
    }
    match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Ok(controls.press(key)),
        _ => Ok(true),
    }
}

/// What keys change.
struct Controls {
    player: Player,
    /// Tasks are shown in place of what is counted.
    tasks: bool,
}

impl Controls {
    fn new(player: Player) -> Controls {
        Controls {
            player,
            tasks: false,
        }
    }

    /// Does what a key says; whether to go on.
    fn press(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let player = &mut self.player;
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('c') if control => return false,
            KeyCode::Char('t') => self.tasks = !self.tasks,
            KeyCode::Char(' ') => player.toggle(),
            KeyCode::Left => player.seek(-STEP),
            KeyCode::Right => player.seek(STEP),
            KeyCode::Up => player.faster(),
            KeyCode::Down => player.slower(),
            KeyCode::Home => player.to_start(),
            KeyCode::End => player.to_end(),
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_through_a_recording() {
        let mut controls = Controls::new(Player::of_recording((0, 1_000)));
        let mut press = |code| controls.press(KeyEvent::new(code, KeyModifiers::NONE));
        assert!(press(KeyCode::Right) && press(KeyCode::Right) && press(KeyCode::Left));
        assert!(press(KeyCode::Up) && press(KeyCode::Char(' ')) && press(KeyCode::Char('t')));
        assert!(!press(KeyCode::Char('q')) && !press(KeyCode::Esc));
        let player = &controls.player;
        assert_eq!((player.at_ns(), player.speed()), (20, 0.01));
        assert!(!player.is_playing() && controls.tasks);
        let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(!controls.press(end));
    }
}
