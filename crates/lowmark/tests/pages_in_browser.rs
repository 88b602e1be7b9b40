//! Pages in a headless browser, at a phone's width and at a screen's, in the light and in the dark: nothing is wider than the
//! page, nothing is complained of, nothing is asked of a network, and keyboards reach what scrolls.
//!
//! Without a browser the tests are ignored, which the summary says and `LOWMARK_CI=1` makes an error. With
//! `LOWMARK_PAGES=DIR` screenshots go there, and the want of a browser is an error as well: `make pages`.

#[path = "browser/mod.rs"]
mod browser;
mod common;
#[path = "../../../tests/needed.rs"]
mod needed;

use browser::Browser;
use common::Place;
use common::pages::{self, Made};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::json;
use std::path::{Path, PathBuf};

/// A screen on which pages are read: its name, width and height in px.
const SCREENS: [(&str, u32, u32); 2] = [("phone", 390, 844), ("screen", 1440, 900)];
const SCHEMES: [&str; 2] = ["light", "dark"];

/// Most bytes of a screenshot, as they are kept with the project.
const SHOT_MAX: usize = 200_000;

/// The screenshots that are kept: page, screen and scheme. That of a twin is not among them, as its kernel is made up.
const SHOTS: [(&str, &str, &str); 9] = [
    ("why", "screen", "light"),
    ("why", "phone", "dark"),
    ("why-dirty", "screen", "dark"),
    ("report", "screen", "light"),
    ("compare", "screen", "light"),
    ("compare", "phone", "light"),
    ("sweep", "screen", "dark"),
    ("bisect", "screen", "light"),
    ("reproduce", "phone", "light"),
];

const NO_BROWSER: &str = "no Chromium in the PATH, and LOWMARK_BROWSER names none";

fn main() {
    let arguments = Arguments::from_args();
    let shots = std::env::var_os("LOWMARK_PAGES").map(PathBuf::from);
    let program = browser::find();
    let tests = match (program, &shots) {
        (None, None) => {
            eprintln!("{NO_BROWSER}: pages are not looked at");
            let nothing = Trial::test("pages_fit_and_are_quiet", || {
                needed::absent(NO_BROWSER);
                Ok(())
            });
            vec![nothing.with_ignored_flag(!needed::required())]
        }
        (None, Some(_)) => vec![Trial::test("there_is_a_browser", || {
            Err(Failed::from(NO_BROWSER))
        })],
        (Some(program), _) => vec![Trial::test("pages_fit_and_are_quiet", move || {
            look(program, shots.as_deref());
            Ok(())
        })],
    };
    libtest_mimic::run(&arguments, tests).exit();
}

fn look(program: PathBuf, shots: Option<&Path>) {
    let place = Place::new();
    let mut browser = Browser::start(program);
    let mut kept = 0;
    for made in pages::all() {
        let file = format!("{}.html", made.name);
        place.write(&file, &made.html);
        let url = format!("file://{}", place.path(&file).display());
        for (screen, width, height) in SCREENS {
            for scheme in SCHEMES {
                browser.call(
                    "Emulation.setDeviceMetricsOverride",
                    json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": screen == "phone" }),
                );
                let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
                browser.call(
                    "Emulation.setEmulatedMedia",
                    json!({ "media": "", "features": features }),
                );
                browser.open(&url);
                let about = format!("{} at {width} px, {scheme}", made.name);
                is_quiet(&browser, &url, &about);
                fits(&mut browser, &about);
                has_colours(&mut browser, scheme, &about);
                if let Some(dir) = shots
                    && SHOTS.contains(&(made.name, screen, scheme))
                {
                    let name = format!("{}-{screen}-{scheme}.png", made.name);
                    shoot(&mut browser, &dir.join(name));
                    kept += 1;
                }
            }
        }
        keyboard_reaches(&mut browser, &made);
        prints(&mut browser, &made);
    }
    assert!(shots.is_none() || kept == SHOTS.len(), "{kept} screenshots");
}

/// The page asks for nothing but itself, and the console has nothing to say.
fn is_quiet(browser: &Browser, url: &str, about: &str) {
    let asked = browser.events("Network.requestWillBeSent");
    let others: Vec<_> = asked
        .iter()
        .filter(|it| it["request"]["url"] != url)
        .collect();
    assert!(others.is_empty(), "{about}: {others:?}");
    for trouble in [
        "Runtime.exceptionThrown",
        "Runtime.consoleAPICalled",
        "Log.entryAdded",
    ] {
        assert_eq!(
            browser.events(trouble),
            Vec::<serde_json::Value>::new(),
            "{about}"
        );
    }
}

/// Nothing is wider than the page, and of the two sizes of a plot one is shown.
fn fits(browser: &mut Browser, about: &str) {
    let over = browser
        .value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert_eq!(over, json!(0), "{about}: px that the page is too wide");
    let shown = browser.value(
        "[...document.querySelectorAll('figure')].every(figure => [...figure.querySelectorAll(':scope > svg')]
            .filter(svg => svg.getBoundingClientRect().height > 0).length === 1)",
    );
    assert_eq!(shown, json!(true), "{about}: each plot is shown once");
    let small = browser.value(
        "Math.min(99, ...[...document.querySelectorAll('figure > svg text')]
            .map(text => text.getBoundingClientRect().height).filter(height => height > 0))",
    );
    assert!(
        small.as_f64() >= Some(9.0),
        "{about}: letters of {small} px in plots"
    );
}

/// The scheme that a reader prefers is the one that is shown: the page is lighter than its text, or darker.
fn has_colours(browser: &mut Browser, scheme: &str, about: &str) {
    let light =
        "style => style.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)";
    let difference = browser.value(&format!(
        "(light => light(getComputedStyle(document.body).backgroundColor) - light(getComputedStyle(document.body).color))({light})"
    ));
    let difference = difference.as_f64().expect("a number");
    let is_light = difference > 300.0;
    assert!(
        difference.abs() > 300.0 && is_light == (scheme == "light"),
        "{about}: {difference}"
    );
}

/// Tab goes to every table.
fn keyboard_reaches(browser: &mut Browser, made: &Made) {
    let regions = browser.value("document.querySelectorAll('.scroll').length");
    let regions = regions.as_u64().expect("a number");
    let press =
        json!({ "type": "rawKeyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
    browser.value("document.activeElement.blur(); window.reached = new Set(); 0");
    let links = browser.value("document.querySelectorAll('a').length");
    for _ in 0..regions + links.as_u64().unwrap_or(0) {
        browser.call("Input.dispatchKeyEvent", press.clone());
        browser.value("window.reached.add(document.activeElement); 0");
    }
    let reached = browser.value("[...window.reached].filter(it => it.matches('.scroll')).length");
    assert_eq!(
        reached,
        json!(regions),
        "{}: tables that Tab goes to",
        made.name
    );
}

/// It becomes a PDF, as it would on paper.
fn prints(browser: &mut Browser, made: &Made) {
    let pdf = browser.call("Page.printToPDF", json!({ "printBackground": false }));
    let bytes = decoded(pdf["data"].as_str().expect("a PDF"));
    assert!(
        bytes.starts_with(b"%PDF-") && bytes.len() > 2000,
        "{}",
        made.name
    );
}

fn shoot(browser: &mut Browser, path: &Path) {
    let shot = browser.call("Page.captureScreenshot", json!({ "format": "png" }));
    let bytes = decoded(shot["data"].as_str().expect("a picture"));
    assert!(
        bytes.len() < SHOT_MAX,
        "{}: {} bytes",
        path.display(),
        bytes.len()
    );
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Base64, as RFC 4648 has it.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u32> = text.bytes().filter_map(digit).collect();
    let group = |group: &[u32]| {
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}
