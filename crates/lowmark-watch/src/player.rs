//! Where in a recording we are, and how fast we go through it.

/// How many times as fast as it was, by step.
const SPEEDS: [f64; 13] = [
    0.001, 0.01, 0.03, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 300.0,
];
/// The step that is as fast as it was.
const AS_IT_WAS: usize = 6;

/// Goes through a stretch of time, or follows one that grows.
#[derive(Debug, Clone, PartialEq)]
pub struct Player {
    /// Where it is, ns.
    at_ns: u64,
    /// First and last time that there is, ns.
    span_ns: (u64, u64),
    speed: usize,
    playing: bool,
    /// Whether the last time that there is is now.
    live: bool,
}

impl Player {
    /// One at the beginning of a recording, going. As far as speeds allow, a recording takes some seconds at least and a minute
    /// at most.
    pub fn of_recording(span_ns: (u64, u64)) -> Player {
        const SHORTEST_S: f64 = 8.0;
        const LONGEST_S: f64 = 60.0;
        let length_s = (span_ns.1 - span_ns.0) as f64 / 1e9;
        let takes_s = |step: usize| length_s / SPEEDS[step];
        let speed = if length_s < SHORTEST_S {
            let slow_enough = |step: &usize| takes_s(*step) >= SHORTEST_S;
            Some((0..AS_IT_WAS).rev().find(slow_enough).unwrap_or(0))
        } else {
            (AS_IT_WAS..SPEEDS.len()).find(|&step| takes_s(step) <= LONGEST_S)
        };
        Player {
            at_ns: span_ns.0,
            span_ns,
            speed: speed.unwrap_or(SPEEDS.len() - 1),
            playing: true,
            live: false,
        }
    }

    /// One that follows a system.
    pub fn live() -> Player {
        Player {
            at_ns: 0,
            span_ns: (0, 0),
            speed: AS_IT_WAS,
            playing: true,
            live: true,
        }
    }

    /// Where it is, ns.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// How far it is, from 0 to 1.
    pub fn progress(&self) -> f64 {
        let (first, last) = self.span_ns;
        match last - first {
            0 => 1.0,
            length => (self.at_ns - first) as f64 / length as f64,
        }
    }

    /// Times as fast as it was.
    pub fn speed(&self) -> f64 {
        SPEEDS[self.speed]
    }

    /// Whether it goes on.
    pub fn is_playing(&self) -> bool {
        self.playing
    }

    /// Whether it follows a system.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// So much time has passed for the user.
    pub fn pass(&mut self, real_ns: u64) {
        if self.playing && !self.live {
            let passed = real_ns as f64 * self.speed();
            self.at_ns = self.at_ns.saturating_add(passed as u64).min(self.span_ns.1);
            self.playing = self.at_ns < self.span_ns.1;
        }
    }

    /// There is more of it.
    pub fn grow(&mut self, span_ns: (u64, u64)) {
        self.span_ns = span_ns;
        if self.live && self.playing {
            self.at_ns = span_ns.1;
        }
        self.at_ns = self.at_ns.clamp(span_ns.0, span_ns.1);
    }

    /// Stops, or goes on: of a recording that is over, from its beginning; of a system, with what is now.
    pub fn toggle(&mut self) {
        self.playing = !self.playing;
        if self.playing && self.live {
            self.at_ns = self.span_ns.1;
        } else if self.playing && self.at_ns == self.span_ns.1 {
            self.at_ns = self.span_ns.0;
        }
    }

    /// Goes by a part of what there is, forward or back; a system is followed no longer.
    pub fn seek(&mut self, part: f64) {
        let (first, last) = self.span_ns;
        let by = ((last - first) as f64 * part.abs()) as u64;
        self.at_ns = if part < 0.0 {
            self.at_ns.saturating_sub(by).max(first)
        } else {
            self.at_ns.saturating_add(by).min(last)
        };
        self.playing &= !self.live;
    }

    /// To the beginning.
    pub fn to_start(&mut self) {
        self.seek(-1.0);
    }

    /// To the end; of a system, to now.
    pub fn to_end(&mut self) {
        self.at_ns = self.span_ns.1;
        self.playing = self.live;
    }

    /// Goes faster.
    pub fn faster(&mut self) {
        self.speed = (self.speed + 1).min(SPEEDS.len() - 1);
    }

    /// Goes slower.
    pub fn slower(&mut self) {
        self.speed = self.speed.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_recording_is_gone_through_and_begun_again() {
        let mut player = Player::of_recording((S, 5 * S));
        assert_eq!((player.speed(), player.at_ns()), (0.5, S));
        player.faster();
        player.pass(S);
        assert_eq!((player.at_ns(), player.progress()), (2 * S, 0.25));
        player.faster();
        player.pass(S);
        assert_eq!(player.at_ns(), 4 * S);
        player.toggle();
        player.pass(S);
        assert_eq!(player.at_ns(), 4 * S);
        player.toggle();
        player.pass(9 * S);
        assert!(player.at_ns() == 5 * S && !player.is_playing());
        player.toggle();
        assert!(player.at_ns() == S && player.is_playing());
        player.seek(0.5);
        assert_eq!(player.at_ns(), 3 * S);
        player.to_start();
        assert_eq!(player.at_ns(), S);
    }

    #[test]
    fn a_recording_takes_seconds_and_no_more_than_a_minute() {
        for (length_ms, speed) in [
            (0, 0.001),
            (500, 0.03),
            (7_999, 0.5),
            (8_000, 1.0),
            (60_000, 1.0),
            (61_000, 2.0),
            (960_000, 16.0),
            (7 * 86_400_000, 300.0),
        ] {
            let player = Player::of_recording((0, length_ms * S / 1_000));
            assert_eq!(player.speed(), speed, "{length_ms}");
        }
    }

    #[test]
    fn a_system_is_followed_until_one_looks_back() {
        let mut player = Player::live();
        player.grow((0, 4 * S));
        player.pass(S);
        assert_eq!(player.at_ns(), 4 * S);
        player.seek(-0.5);
        player.grow((0, 6 * S));
        assert_eq!(player.at_ns(), 2 * S);
        // What was looked at can be forgotten meanwhile.
        player.grow((3 * S, 9 * S));
        assert_eq!(player.at_ns(), 3 * S);
        player.toggle();
        assert_eq!(player.at_ns(), 9 * S);
        player.seek(-0.1);
        player.to_end();
        player.grow((3 * S, 10 * S));
        assert_eq!(player.at_ns(), 10 * S);
    }
}
