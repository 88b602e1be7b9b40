//! The names of `/proc/vmstat`.

/// Where it is, without the leading slash.
pub const FILE: &str = "proc/vmstat";

/// Whether a field only ever grows; the rest go up and down. `vmstat_text` in mm/vmstat.c mixes them.
pub fn is_counter(name: &str) -> bool {
    const COUNTERS: [&str; 7] = [
        "nr_vmscan_write",
        "nr_vmscan_immediate_reclaim",
        "nr_dirtied",
        "nr_written",
        "nr_throttled_written",
        "nr_foll_pin_acquired",
        "nr_foll_pin_released",
    ];
    match name {
        "workingset_nodes" => false,
        _ => !name.starts_with("nr_") || COUNTERS.contains(&name),
    }
}

#[cfg(test)]
mod tests {
    use super::is_counter;

    #[test]
    fn counters_and_gauges_are_told_apart() {
        for counter in [
            "pgfault",
            "nr_vmscan_write",
            "workingset_refault_anon",
            "oom_kill",
        ] {
            assert!(is_counter(counter), "{counter}");
        }
        for gauge in ["nr_free_pages", "nr_dirty", "workingset_nodes"] {
            assert!(!is_counter(gauge), "{gauge}");
        }
    }
}
