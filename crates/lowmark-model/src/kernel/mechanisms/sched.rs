//! CPUs and timers: which task runs next and for how long, when timers go off.

macro_rules! sched {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// CPUs and timers: which task runs next and for how long, when timers go off.
            sched: Sched {
                /// When the timer of a throttled task's pause expires (`schedule_timeout`).
                timer_wheel: TimerWheel {
                    /// In time.
                    Cascading = "cascading",
                    /// With the jiffy after that, and of long pauses with a later one, as the levels of the wheel are
                    /// grained.
                    Rounded = "rounded",
                }
                /// Which task runs next on a CPU, and when it is preempted (`pick_next_entity`, `place_entity`, `check_preempt_tick`).
                fair_class: FairClass {
                    /// The task that has had the least CPU time; a woken task preempts one that has had much more.
                    Cfs = "cfs",
                    /// Of the tasks that have had no more CPU time than the average, the one with the earliest deadline. The lag
                    /// with which a task went to sleep is kept until it wakes.
                    Eevdf = "eevdf",
                    /// The same, but a task that goes to sleep with negative lag stays in the queue until the lag is gone.
                    EevdfDelayed = "eevdf-delayed",
                }
                /// When a task makes room for another one (`TIF_NEED_RESCHED`, `TIF_NEED_RESCHED_LAZY`).
                preemption: Preemption {
                    /// Where it has spent what it is spending.
                    Prompt = "prompt",
                    /// On its way back to user mode; elsewhere at the tick after the one, or the waking, that asks for it.
                    Lazy = "lazy",
                }
                /// How far a deadline is away (`base_slice_ns`, for one CPU).
                base_slice: BaseSlice {
                    /// 0.75 ms.
                    Long = "750us",
                    /// 0.7 ms.
                    Short = "700us" needs(sched.fair_class = FairClass::Eevdf | FairClass::EevdfDelayed),
                }
            }
        }
    };
}

pub(super) use sched;
