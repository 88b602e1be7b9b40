//! What a terminal shows, of a small timeline: every figure of it can be checked by hand.

use lowmark_watch::look::{Fields, Look, Task};
use lowmark_watch::player::Player;
use lowmark_watch::screen::{View, draw};
use lowmark_watch::timeline::Timeline;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const S: u64 = 1_000_000_000;

fn fields(text: &str) -> Fields {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.chunks(2);
    pairs
        .map(|pair| (pair[0].to_owned(), pair[1].parse().expect("a number")))
        .collect()
}

/// A hundred seconds in each of which kswapd scans 7 pages; in the last ten tasks scan 3 as well, and memory is half used.
fn timeline() -> Timeline {
    let mut timeline = Timeline::default();
    for second in 0..=100_u64 {
        let vmstat = format!(
            "nr_dirty 2560 nr_writeback 1280 nr_dirty_background_threshold 5120 nr_dirty_threshold 10240 nr_free_pages 51200 nr_active_anon 25600 nr_inactive_file 12800 nr_slab_reclaimable 2560 \
             pgscan_kswapd {} pgsteal_kswapd {} pgscan_direct {} pgsteal_direct 0 allocstall 0 pswpin 0",
            7 * second,
            7 * second,
            3 * second.saturating_sub(90),
        );
        let zoneinfo = "0/DMA32/free 50000 0/DMA32/min 10000 0/DMA32/low 20000 0/DMA32/high 50000 0/DMA32/managed 102400";
        let meminfo = "MemTotal 409600 SwapTotal 409600 SwapFree 204800";
        let task = format!(
            "rss 512 majflt {} utime {} stime 0 state 68",
            40 * second,
            30 * second
        );
        let look = Look::new(
            second * S,
            [
                ("proc/vmstat", fields(&vmstat)),
                ("proc/zoneinfo", fields(zoneinfo)),
                ("proc/meminfo", fields(meminfo)),
                (
                    "sys/fs/cgroup/a",
                    fields("memory.current 52428800 memory.max 104857600"),
                ),
            ],
        );
        timeline.push(Look {
            tasks: Task::new(77, "stress", &fields(&task))
                .into_iter()
                .collect(),
            ..look
        });
    }
    timeline
}

fn lines(
    timeline: &Timeline,
    player: &Player,
    tasks: bool,
    (width, height): (u16, u16),
) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let view = View {
        title: "a load",
        timeline,
        player,
        tasks,
        colour: true,
    };
    terminal.draw(|frame| draw(frame, &view)).expect("drawn");
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(width));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>())
        .map(|row| row.trim_end().to_owned())
        .collect()
}

#[test]
fn a_recording_on_a_screen() {
    let timeline = timeline();
    let mut player = Player::of_recording(timeline.span().expect("looks"));
    player.seek(0.95);
    let lines = lines(&timeline, &player, false, (120, 24));
    assert!(lines[0].starts_with("a load   95.000 s of 100.000 s, speed 2"));
    let line = |begin: &str| {
        let found = lines.iter().find(|line| line.starts_with(begin));
        found
            .unwrap_or_else(|| panic!("{begin}: {lines:#?}"))
            .clone()
    };
    assert!(
        line("memory, 400 MiB").contains("free 200  █ anon 100  ▓ file 50  ▒ slab 10  ░ other 40")
    );
    assert!(line("swap, 400 MiB").contains("used 200"));
    assert!(line("dirty limit, 40 MiB").contains("█ dirty 10  ▒ writeback 5"));
    assert!(line("cgroup a").contains("50 of 100 MiB"));
    assert!(line("zone 0/DMA32").contains("50000 free; min 10000, low 20000, high 50000"));
    let figures = |begin: &str| -> Vec<String> {
        let rest = line(begin).split_off(28);
        rest.split_whitespace().take(2).map(str::to_owned).collect()
    };
    assert_eq!(figures("pages scanned by kswapd"), ["7", "7"]);
    assert_eq!(figures("pages scanned by tasks"), ["3", "3"]);
    // Nothing says how many major faults there were.
    assert!(!lines.iter().any(|line| line.starts_with("major faults")));
    assert!(line("Tasks reclaim memory themselves beside kswapd.").len() < 60);
    assert!(line("space stops").contains("q quits"));
}

#[test]
fn tasks_on_a_screen() {
    let timeline = timeline();
    let mut player = Player::of_recording(timeline.span().expect("looks"));
    player.seek(0.5);
    let lines = lines(&timeline, &player, true, (120, 24));
    let line = lines.iter().find(|line| line.starts_with("stress"));
    let words: Vec<&str> = line.expect("a task").split_whitespace().collect();
    assert_eq!(words, ["stress", "77", "D", "40", "30", "2"]);
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    let timeline = timeline();
    let mut player = Player::live();
    player.grow(timeline.span().expect("looks"));
    for width in 1..60 {
        for height in 1..30 {
            for tasks in [false, true] {
                lines(&timeline, &player, tasks, (width, height));
            }
        }
    }
    let nothing = lines(&Timeline::default(), &Player::live(), false, (60, 5));
    assert_eq!(nothing[0], "Nothing has been looked at yet.");
}
