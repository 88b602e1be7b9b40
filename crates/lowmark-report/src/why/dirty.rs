//! What events say of dirty pages, and whose limit it was for which a writer paused.
//!
//! A writer pauses by the position of dirty pages between thresholds: those of all, those of its device, and, where its group
//! has writeback of its own, those of the group (`wb_position_ratio`, `balance_dirty_pages`). It was a *share*, and not the
//! limit for all,
//!
//! 1. where the device is above its setpoint and all together are below theirs;
//! 2. where the limit told is below half of the largest one: it is that of a group. Kernels tell it since 6.16 or so;
//! 3. where writeback is that of a group and its thresholds are below half of that limit. Events tell whichever domain holds
//!    the writer back, but always the limit of all: `setpoint` is halfway from (threshold + background) / 2 to that limit;
//! 4. where the writer was given less than half of the rate of its device although neither all together nor the device is above
//!    its setpoint: only a group's position does that, whose thresholds earlier kernels do not tell.

use crate::dirty::PAGES_MAX;
use lowmark_record::{Event, Field};

/// What is known of dirty pages.
#[derive(Debug, Clone, Default)]
pub(super) struct DirtyState {
    /// Dirty threshold and background threshold, pages, as told last.
    pub(super) thresh: u64,
    pub(super) background: u64,
    /// Largest limit that a writer was told, pages.
    limit_max: u64,
    /// Of the pauses, those in which the device or the cgroup had its share and all together did not, ns.
    pub(super) share_ns: u64,
    /// Bandwidth of the device as the kernel estimates it, KiB/s: sum and number of what was told.
    pub(super) bandwidth: (u128, u64),
    /// Begin of the first pause and end of the last, ns.
    pub(super) paused: Option<(u64, u64)>,
    /// Whether a count of dirty pages was below zero.
    pub(super) below_zero: bool,
}

impl DirtyState {
    /// `global_dirty_state`.
    pub(super) fn thresholds(&mut self, event: &Event) {
        let told = event.get(Field::Thresh).zip(event.get(Field::BgThresh));
        if let Some((thresh, background)) = told {
            (self.thresh, self.background) = (thresh, background);
        }
    }

    /// A writer looks at the limits.
    pub(super) fn look(&mut self, event: &Event) {
        let get = |field| event.get(field).unwrap_or(0);
        self.below_zero |= get(Field::Dirty) > PAGES_MAX;
        let limit = get(Field::Limit);
        if limit <= PAGES_MAX {
            self.limit_max = self.limit_max.max(limit);
        }
    }

    /// A writer pauses for that time.
    pub(super) fn pause(&mut self, event: &Event, time: std::ops::Range<u64>) {
        let (first, last) = self.paused.unwrap_or((time.start, time.end));
        self.paused = Some((first.min(time.start), last.max(time.end)));
        if self.is_share(event) {
            let length = time.end.saturating_sub(time.start);
            self.share_ns = self.share_ns.saturating_add(length);
        }
    }

    fn is_share(&self, event: &Event) -> bool {
        let get = |field| event.get(field).unwrap_or(0);
        let all_below = get(Field::Dirty) < get(Field::Setpoint);
        let device_above = get(Field::BdiDirty) > get(Field::BdiSetpoint);
        let limit = get(Field::Limit);
        let of_group = limit > 0 && limit < self.limit_max.max(self.thresh) / 2;
        // (threshold + background) / 2, below which no writer pauses (`dirty_freerun_ceiling`). The root has the number 1.
        let freerun = get(Field::Setpoint).saturating_mul(2).saturating_sub(limit);
        let told_of_group = get(Field::CgroupIno) > 1 && freerun < limit / 2;
        let rates = event
            .get(Field::TaskRatelimit)
            .zip(event.get(Field::DirtyRatelimit));
        let held = rates.is_some_and(|(task, device)| task < device / 2);
        of_group || told_of_group || all_below && (device_above || held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_record::Kind;

    /// A pause of 8 ms.
    fn share_ns(state: &mut DirtyState, fields: &[(Field, u64)]) -> u64 {
        let mut event = Event::new(Kind::BalanceDirtyPages, 0, 0, 0);
        for (field, value) in fields {
            event.set(*field, *value);
        }
        let before = state.share_ns;
        state.look(&event);
        state.pause(&event, 0..8);
        state.share_ns - before
    }

    #[test]
    fn positions_tell_whose_limit_it_is() {
        let mut state = DirtyState::default();
        let mut of = |limit, dirty, setpoint, bdi_dirty, bdi_setpoint, task, device| {
            let fields = [
                (Field::Limit, limit),
                (Field::Dirty, dirty),
                (Field::Setpoint, setpoint),
                (Field::BdiDirty, bdi_dirty),
                (Field::BdiSetpoint, bdi_setpoint),
                (Field::TaskRatelimit, task),
                (Field::DirtyRatelimit, device),
            ];
            share_ns(&mut state, &fields) > 0
        };
        // All together are above their setpoint.
        assert!(!of(9000, 8000, 7000, 8000, 6900, 400, 1000));
        // Nobody is: the writer has the rate of its device.
        assert!(!of(9000, 6000, 7000, 6000, 6900, 1000, 1000));
        // The device is, and all together are not.
        assert!(of(9000, 6000, 7000, 3000, 200, 400, 1000));
        // Nobody is, and the writer is held all the same.
        assert!(of(9000, 2400, 6000, 2400, 5900, 16, 1000));
        // The limit is that of a group.
        assert!(of(2400, 8000, 2100, 8000, 2000, 0, 1000));
        // Thresholds told are those of a group, with its own counts of dirty pages, which lag behind.
        let told = |cgroup| {
            let fields = [
                (Field::Limit, 9676),
                (Field::Dirty, 9826),
                (Field::Setpoint, 5727),
                (Field::BdiDirty, 1056),
                (Field::BdiSetpoint, 5724),
                (Field::CgroupIno, cgroup),
            ];
            share_ns(&mut DirtyState::default(), &fields) > 0
        };
        assert!(told(27) && !told(1));
    }
}
