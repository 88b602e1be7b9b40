//! How fast memory is for those who use it at once.

use super::Sched;
use crate::time::Nanos;

impl Sched {
    /// On a machine whose memory serves so many CPUs at full speed.
    pub(crate) fn with_memory_streams(self, memory_streams: u32) -> Sched {
        Sched {
            memory_streams,
            ..self
        }
    }

    /// What takes `ns` of a CPU that has memory for itself: more busy CPUs than memory serves at full speed share it. Those
    /// whose task burns time use none; with more tasks than CPUs one that waits for a CPU in such a loop counts as well.
    #[inline]
    pub(crate) fn memory_time(&self, ns: Nanos) -> Nanos {
        match self.fair.busy().saturating_sub(self.burning) {
            busy if busy <= self.memory_streams => ns,
            busy => ns * Nanos::from(busy) / Nanos::from(self.memory_streams),
        }
    }

    /// The current task begins or ends a loop that uses no memory.
    pub(crate) fn set_burning(&mut self, burning: bool) {
        let task = &mut self.tasks[self.current.index()];
        if task.burning != burning {
            task.burning = burning;
            self.burning = if burning {
                self.burning + 1
            } else {
                self.burning - 1
            };
        }
    }
}
