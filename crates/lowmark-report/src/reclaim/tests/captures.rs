//! Captures of real kernels. They are found by LOWMARK_CAPTURES, the kernel's script by
//! LOWMARK_VMSCAN_SCRIPT; without them these tests say so and judge nothing.

use super::*;
use crate::needed;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CAPTURES: &str = "LOWMARK_CAPTURES";
const SCRIPT: &str = "LOWMARK_VMSCAN_SCRIPT";
const TRACE: &str = ".trace.txt.xz";

/// Seeds of the script's hash that are tried: its order decides which stalls `--ignore-pid` loses.
const HASH_SEEDS: u32 = 16;

/// Seeds that are tried with each capture.
const SEEDS_OF_CAPTURES: u32 = 2;

/// Most processes whose every order is tried.
const KEYS_MAX: usize = 7;

struct Capture {
    name: String,
    base: PathBuf,
    text: Vec<u8>,
}

fn captures() -> Vec<Capture> {
    let Some(directory) = std::env::var_os(CAPTURES) else {
        needed::absent(format!("{CAPTURES} is not set"));
        return Vec::new();
    };
    let entries = std::fs::read_dir(&directory).expect("the directory of captures");
    let mut names: Vec<String> = entries
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(TRACE)?.to_owned()))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "{CAPTURES} has no captures");
    let captures = names.into_iter().map(|name| {
        let base = Path::new(&directory).join(&name);
        let packed = std::fs::read(Path::new(&directory).join(format!("{name}{TRACE}")));
        let packed = packed.expect("readable");
        let mut text = Vec::new();
        liblzma::read::XzDecoder::new(packed.as_slice())
            .read_to_end(&mut text)
            .expect("xz");
        Capture { name, base, text }
    });
    captures.collect()
}

impl Capture {
    fn file(&self, suffix: &str) -> Option<String> {
        let name = format!("{}{suffix}", self.name);
        std::fs::read_to_string(self.base.with_file_name(name)).ok()
    }

    fn figures(&self) -> ReclaimFigures {
        let options = ReclaimOptions {
            compare_script: true,
            release: None,
        };
        let mut report = ReclaimReport::new(options);
        let (tables, account) = read(&self.text, &mut report);
        assert_eq!(
            account.missed(),
            0,
            "{}: {:?}",
            self.name,
            account.not_understood
        );
        let vmstat = self.file(".vmstat.txt");
        let context = RunContext {
            vmstat: vmstat.map(|t| VmstatChange::from_table(&t).expect("a table")),
            ..RunContext::default()
        };
        report.finish(&tables, account, context)
    }

    fn is_mglru(&self) -> bool {
        self.name.contains("mglru")
    }
}

/// A number of the sums, 0 where it is absent.
fn sum(sums: &toml::Table, table: &str, key: &str) -> u64 {
    let of = |value: &toml::Value| value.as_integer().and_then(|v| u64::try_from(v).ok());
    let mut at = sums;
    for part in table.split('/') {
        match at.get(part).and_then(toml::Value::as_table) {
            Some(inner) => at = inner,
            None => return 0,
        }
    }
    at.get(key).and_then(of).unwrap_or(0)
}

#[test]
fn sums_of_the_line_counter() {
    for capture in captures() {
        let Some(sums) = capture.file(".sums.toml") else {
            println!("{}: no sums", capture.name);
            continue;
        };
        let sums: toml::Table = sums.parse().expect("toml");
        let figures = capture.figures();
        let name = &capture.name;
        for (event, count) in &figures.events {
            assert_eq!(*count, sum(&sums, "events", event), "{name} {event}");
        }
        let kswapd = figures.totals(Actor::Kswapd);
        let of = |key| sum(&sums, "actor/kswapd", key);
        assert_eq!(kswapd.scanned, of("inactive_nr_scanned"), "{name}");
        assert_eq!(kswapd.written, of("write_folio"), "{name}");
        let others = [Actor::Direct, Actor::Memcg, Actor::Other].map(|a| *figures.totals(a));
        let total = |field: fn(&Totals) -> u64| others.iter().map(field).sum::<u64>();
        let of = |key| sum(&sums, "actor/task", key) + sum(&sums, "actor/kdamond", key);
        assert_eq!(total(|t| t.scanned), of("inactive_nr_scanned"), "{name}");
        assert_eq!(total(|t| t.written), of("write_folio"), "{name}");
        assert_eq!(
            total(|t| t.named_scanned),
            of("reclaim_pages_nr_scanned"),
            "{name}"
        );
        assert_eq!(
            total(|t| t.named_reclaimed),
            of("reclaim_pages_nr_reclaimed"),
            "{name}"
        );
        let by_name = |t: &Totals| t.reclaimed.unwrap_or(0);
        assert_eq!(
            by_name(kswapd),
            sum(&sums, "actor/kswapd", "inactive_nr_reclaimed"),
            "{name}"
        );
        assert_eq!(
            others.iter().map(by_name).sum::<u64>(),
            of("inactive_nr_reclaimed"),
            "{name}"
        );
        for (span, key) in [
            (Span::Direct, "mm_vmscan_direct_reclaim"),
            (Span::Memcg, "mm_vmscan_memcg_reclaim"),
        ] {
            stalls_agree(&figures, span, key, &sums, name);
        }
        let times = sums.get("kswapd").and_then(toml::Value::as_table);
        let awake = times
            .and_then(|t| t.get("awake_s")?.as_float())
            .unwrap_or(0.0);
        let open = times.and_then(|t| t.get("still_awake_at_end")?.as_bool());
        let kswapd = &figures.kswapd;
        assert_eq!(
            kswapd.wakeups,
            sum(&sums, "kswapd", "wake_episodes"),
            "{name}"
        );
        assert!(
            (kswapd.awake_ns as f64 / 1e9 - awake).abs() < 1e-6,
            "{name}: {awake}"
        );
        assert_eq!(kswapd.awake_at_end > 0, open.unwrap_or(false), "{name}");
        for order in &figures.orders {
            let key = format!("order{}", order.order);
            assert_eq!(
                order.requests,
                sum(&sums, "wakeup_kswapd", &key),
                "{name} {key}"
            );
        }
        let in_slices: u64 = figures.slices.slices().iter().map(|s| s.events).sum();
        assert_eq!(in_slices, figures.account.understood, "{name}");
        println!("{name}: agrees with its sums");
    }
}

fn stalls_agree(figures: &ReclaimFigures, span: Span, key: &str, sums: &toml::Table, name: &str) {
    let table = format!("latency_us/{key}");
    let of = |key| sum(sums, &table, key);
    let q = figures.span(span).quantiles();
    assert_eq!((q.count, q.sum_us), (of("n"), of("sum")), "{name} {key}");
    assert_eq!(q.max_us.unwrap_or(0), of("max"), "{name} {key}");
    let freed = match span {
        Span::Direct => Actor::Direct,
        _ => Actor::Memcg,
    };
    let actor = &format!("{key}_nr_reclaimed");
    assert_eq!(
        figures.totals(freed).freed,
        sum(sums, "actor/task", actor),
        "{name}"
    );
    // The counter takes another neighbour where a quantile falls between two: of few stalls, far away.
    let quantiles = [(q.p50_us, of("p50")), (q.p99_us, of("p99"))];
    for (here, there) in quantiles {
        let (here, there) = (here.unwrap_or(0) as f64, there as f64);
        let near = (there / 1.05..=there * 1.05).contains(&here);
        assert!(q.count < 1000 || near, "{name} {key}: {here} for {there}");
    }
}

#[test]
fn counters_of_the_kernel() {
    for capture in captures() {
        let figures = capture.figures();
        let checks = figures.checks();
        let name = &capture.name;
        assert!(!figures.by_shrink_inactive || !checks.is_empty(), "{name}");
        for check in checks {
            let off = check.trace.abs_diff(check.vmstat);
            let scanned = check.name.contains("scanned");
            // Per-CPU counters are folded late; evict_folios reports a batch again.
            let allowed = match check.name {
                "Pages written" => 45,
                _ if scanned && capture.is_mglru() => check.trace * 29 / 100,
                _ => 0,
            };
            let more = check.trace >= check.vmstat || !scanned;
            if off > 0 {
                println!(
                    "{name}: {}: trace {}, vmstat {}",
                    check.name, check.trace, check.vmstat
                );
            }
            assert!(off <= allowed && more, "{name}: {check:?}");
        }
        // Why it has more is said where it stands.
        let column = ReportColumn {
            name: name.clone(),
            reports: vec![&figures],
        };
        let text = crate::reclaim::section(&[column]).text(&crate::table::PlainStyle, None);
        let explained = text.contains("Under the multi-generational LRU (lru_gen) a trace has");
        assert_eq!(explained, capture.is_mglru(), "{name}: {text}");
    }
}

/// The script's output. It must not find the formats of the running kernel, as it has none of its own for
/// those: it is asked only where they cannot be read.
fn ask_script(text: &[u8], ignore_pid: bool, seed: u32) -> Option<String> {
    let Some(script) = std::env::var_os(SCRIPT) else {
        needed::absent(format!("{SCRIPT} is not set"));
        return None;
    };
    if Path::new("/sys/kernel/debug/tracing/events").exists() {
        needed::absent("the kernel's script would read the formats of the running kernel");
        return None;
    }
    let mut child = Command::new("perl")
        .arg(script)
        .args(ignore_pid.then_some("--ignore-pid"))
        .env("PERL_HASH_SEED", seed.to_string())
        .env("PERL_PERTURB_KEYS", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("perl");
    let mut input = child.stdin.take().expect("piped");
    let text = text.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&text));
    let output = child.wait_with_output().expect("it ends");
    let _ = writer.join();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn summary_of(output: &str) -> &str {
    output.rfind("Summary\n").map_or("", |at| &output[at..])
}

/// The script's block `Summary`; of `--ignore-pid` that of the order of its hash that gives `expected`, if
/// there is one.
pub(super) fn script_summary(text: &[u8], ignore_pid: bool, expected: &str) -> Option<String> {
    let mut last = None;
    for seed in 0..if ignore_pid { HASH_SEEDS } else { 1 } {
        let output = ask_script(text, ignore_pid, seed)?;
        let summary = summary_of(&output).to_owned();
        if summary == expected {
            return Some(summary);
        }
        last = Some(summary);
    }
    last
}

/// Every order of the keys; of more than [`KEYS_MAX`], of the first of them.
fn orders<'k>(keys: &[&'k str]) -> Vec<Vec<&'k str>> {
    let mut orders = vec![keys.get(KEYS_MAX..).unwrap_or(&[]).to_vec()];
    for key in keys.iter().take(KEYS_MAX) {
        let longer = orders.iter().flat_map(|order| {
            (0..=order.len()).map(|at| {
                let mut order = order.clone();
                order.insert(at, *key);
                order
            })
        });
        orders = longer.collect();
    }
    orders
}

/// Processes that have times.
fn script_keys(output: &str) -> Vec<&str> {
    let list = output
        .split("Reclaim latencies expressed as order-latency_in_ms\n")
        .nth(1);
    let lines = list.unwrap_or("").lines().take_while(|l| !l.is_empty());
    lines
        .filter_map(|line| line.split_ascii_whitespace().next())
        .collect()
}

/// Rows of the script's two tables by process: name, then all numbers that it prints, whatever their head.
fn script_rows(output: &str) -> Vec<Vec<String>> {
    let tables = output.find("Process ").map_or("", |at| &output[at..]);
    let tables = tables.split("Summary\n").next().unwrap_or("");
    let words = tables.lines().map(|line| line.split_ascii_whitespace());
    let rows = words.map(|words| {
        let numbers = words.take_while(|word| !word.contains('='));
        numbers.map(str::to_owned).collect::<Vec<String>>()
    });
    let known = |row: &Vec<String>| row.len() > 6 && row[1].parse::<u64>().is_ok();
    let mut rows: Vec<_> = rows.filter(known).collect();
    rows.sort();
    rows
}

/// The same rows as the script would print them.
fn our_rows(summary: &CompatSummary) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for process in &summary.processes {
        let pages = &process.pages;
        let counts = [
            pages.scanned,
            pages.file_scanned,
            pages.anon_scanned,
            pages.reclaimed,
        ];
        let mut row = |head: [u64; 2], last: Option<String>| {
            let numbers = head.iter().chain(&counts).map(u64::to_string);
            let all = std::iter::once(process.name.clone()).chain(numbers);
            rows.push(all.chain(last).collect());
        };
        if process.direct_reclaims > 0 {
            let last = format!("{:.3}", pages.file_reclaimed as f64);
            row([process.direct_reclaims, process.requests], Some(last));
        }
        if process.wakes > 0 {
            row([process.wakes, process.rewakes], None);
        }
    }
    rows.sort();
    rows
}

#[test]
fn the_script_itself() {
    if std::env::var_os(SCRIPT).is_none() {
        needed::absent(format!("{SCRIPT} is not set"));
        return;
    }
    for capture in captures() {
        let mut report = CompatReport::new(None);
        read(&capture.text, &mut report);
        let here = report.summary(false);
        let Some(output) = ask_script(&capture.text, false, 0) else {
            return;
        };
        assert_eq!(here.summary_text(), summary_of(&output), "{}", capture.name);
        assert_eq!(our_rows(&here), script_rows(&output), "{}", capture.name);
        let keys = script_keys(&output);
        let orders = orders(&keys);
        let ours: Vec<String> = orders
            .iter()
            .map(|order| report.summary_in_order(order).summary_text())
            .collect();
        for seed in 0..SEEDS_OF_CAPTURES {
            let output = ask_script(&capture.text, true, seed).unwrap_or_default();
            let script = summary_of(&output);
            assert!(
                ours.iter().any(|summary| summary == script),
                "{}: {script} in no order, such as {}",
                capture.name,
                ours[0]
            );
        }
        println!("{}: as the script", capture.name);
    }
}
