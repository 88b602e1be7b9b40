//! Weights of tasks (`struct load_weight`).

use super::Virtual;

/// How much of a CPU a task gets beside others (`sched_prio_to_weight`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::time) struct Weight(pub(super) i128);

impl Weight {
    /// Nice 0, which tasks have.
    pub(in crate::time) const NICE_0: Weight = Weight(1024);
    /// Nice -20, which the workers of queues of high priority have (`HIGHPRI_NICE_LEVEL`).
    pub(in crate::time) const HIGHPRI: Weight = Weight(88_761);

    /// Virtual time that passes in a time (`calc_delta_fair`).
    #[inline]
    pub(super) fn to_virtual(self, time: Virtual) -> Virtual {
        match self {
            Weight::NICE_0 => time,
            Weight(weight) => (i128::from(time) * Weight::NICE_0.0 / weight) as Virtual,
        }
    }

    /// Time in which a virtual time passes.
    #[inline]
    pub(super) fn to_real(self, virtual_time: Virtual) -> Virtual {
        match self {
            Weight::NICE_0 => virtual_time,
            Weight(weight) => {
                let time = i128::from(virtual_time) * weight / Weight::NICE_0.0;
                time.clamp(i128::from(Virtual::MIN), i128::from(Virtual::MAX)) as Virtual
            }
        }
    }

    /// A virtual time as often as the weight says.
    #[inline]
    pub(super) fn of(self, virtual_time: Virtual) -> i128 {
        self.0 * i128::from(virtual_time)
    }
}
