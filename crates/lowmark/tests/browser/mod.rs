//! A headless Chromium, spoken to in its DevTools protocol over a pipe: JSON messages that end with a zero byte.

use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// How long an answer may take: a machine may have much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// Names under which it is installed.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// What keeps it from anything but the page.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
];

/// The browser of this machine: what `LOWMARK_BROWSER` names, or a Chromium in the PATH.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("LOWMARK_BROWSER") {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates = NAMES
        .iter()
        .flat_map(|name| places.iter().map(move |place| place.join(name)));
    candidates.into_iter().find(|file| file.is_file())
}

/// A browser that runs.
pub(crate) struct Browser {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// Events that came while an answer was waited for.
    events: Vec<Value>,
    session: Option<String>,
    count: u64,
    /// Its profile, which goes with it.
    _profile: TempDir,
}

impl Browser {
    /// Starts it with an empty page.
    pub(crate) fn start(program: PathBuf) -> Browser {
        let profile = TempDir::new().expect("a directory");
        let mut argument = OsString::from("--user-data-dir=");
        argument.push(profile.path());
        // It reads from file 3 and writes to file 4.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args(FLAGS)
            .arg(argument)
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let input = process.stdin.take().expect("piped");
        let output = process.stdout.take().expect("piped");
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0) {
                let Ok(message) = message else { return };
                let Ok(message) = serde_json::from_slice(&message) else {
                    return;
                };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            process,
            input,
            messages,
            events: Vec::new(),
            session: None,
            count: 0,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for part in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{part}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method; its result.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.count += 1;
        let mut message = json!({ "id": self.count, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).expect("JSON");
        bytes.push(0);
        self.input.write_all(&bytes).expect("the browser reads");
        loop {
            let message = self.next(method);
            if message["id"] == json!(self.count) {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn next(&mut self, waiting_for: &str) -> Value {
        let message = self.messages.recv_timeout(PATIENCE);
        message.unwrap_or_else(|error| panic!("the browser does not answer {waiting_for}: {error}"))
    }

    /// Opens a page and waits until it is loaded. The events of that are those that [`Browser::events`] has then.
    pub(crate) fn open(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({ "url": url }));
        let is_loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(is_loaded) {
            let event = self.next("Page.navigate");
            self.events.push(event);
        }
    }

    /// What happened since the page was opened, by method.
    pub(crate) fn events(&self, method: &str) -> Vec<Value> {
        let events = self.events.iter().filter(|it| it["method"] == method);
        events.map(|it| it["params"].clone()).collect()
    }

    /// Value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        let result = self.call("Runtime.evaluate", parameters);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It is ours, and has nothing to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
