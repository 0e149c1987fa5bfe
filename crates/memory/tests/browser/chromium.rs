//! A real browser, driven over its own protocol through a pipe: no packages, no ports.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// A headless Chromium with one page.
pub struct Chromium {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    profile: PathBuf,
    session: Option<String>,
    last_id: u64,
    loaded: bool,
    /// Errors and messages of the console, exceptions.
    pub problems: Vec<String>,
    /// What pages asked the network for.
    pub requests: Vec<String>,
    _alone: MutexGuard<'static, ()>,
}

/// The browser's command: `CHROMIUM`, or the first that is installed of those that go by this name.
pub fn installed() -> Option<PathBuf> {
    if let Some(set) = std::env::var_os("CHROMIUM") {
        return Some(set.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|file| file.is_file())
}

impl Chromium {
    pub fn start(program: &Path, name: &str, alone: MutexGuard<'static, ()>) -> Chromium {
        let profile = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("chromium-{name}-{}", std::process::id()));
        // The browser talks on descriptors 3 and 4; a shell makes them of the two that a child has here.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
            ])
            .args(["--lang=en", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut browser = Chromium {
            child,
            to,
            from: BufReader::new(from),
            profile,
            session: None,
            last_id: 0,
            loaded: false,
            problems: vec![],
            requests: vec![],
            _alone: alone,
        };
        let targets = browser.send("Target.getTargets", json!({}));
        let target = targets["targetInfos"]
            .as_array()
            .unwrap()
            .iter()
            .find(|t| t["type"] == "page")
            .unwrap()["targetId"]
            .clone();
        let attached = browser.send(
            "Target.attachToTarget",
            json!({"targetId": target, "flatten": true}),
        );
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.send(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Sends a command and returns its result; what else arrives meanwhile is noted.
    fn send(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        write!(self.to, "{message}\0").unwrap();
        self.to.flush().unwrap();
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
        }
    }

    fn receive(&mut self) -> Value {
        let mut bytes = vec![];
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has gone");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Page.loadEventFired") => self.loaded = true,
            Some("Runtime.exceptionThrown") => {
                let details = &params["exceptionDetails"];
                self.problems.push(format!(
                    "{} {}",
                    details["text"], details["exception"]["description"]
                ));
            }
            Some("Log.entryAdded") => self.problems.push(params["entry"]["text"].to_string()),
            Some("Runtime.consoleAPICalled") => self.problems.push(params["args"].to_string()),
            Some("Network.requestWillBeSent") => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                self.requests.push(url.chars().take(200).collect());
            }
            _ => {}
        }
        message
    }

    /// Opens a file in a window of this size; how long it took until it had drawn.
    pub fn open(&mut self, file: &Path, (width, height): (u32, u32), dark: bool) -> Duration {
        self.send(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
        let scheme = if dark { "dark" } else { "light" };
        self.send(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
        let start = Instant::now();
        self.loaded = false;
        self.send(
            "Page.navigate",
            json!({"url": format!("file://{}", file.display())}),
        );
        while !self.loaded {
            self.receive();
        }
        self.settle();
        start.elapsed()
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let result = self.send(
            "Runtime.evaluate",
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true}),
        );
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {}",
            result["exceptionDetails"]
        );
        result["result"]["value"].clone()
    }

    /// The text of the first element that fits.
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!(
            "document.querySelector({})?.innerText ?? null",
            json!(selector)
        ));
        text.as_str()
            .unwrap_or_else(|| panic!("no element {selector}"))
            .to_owned()
    }

    pub fn count(&mut self, selector: &str) -> u64 {
        self.eval(&format!(
            "document.querySelectorAll({}).length",
            json!(selector)
        ))
        .as_u64()
        .unwrap()
    }

    /// Waits until two frames have been drawn.
    pub fn settle(&mut self) {
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(0)))))");
    }

    pub fn press(&mut self, keys: &[&str]) {
        for &key in keys {
            let (key, shift) = key
                .strip_prefix("Shift+")
                .map_or((key, false), |key| (key, true));
            let code = match key {
                "ArrowLeft" => 37,
                "ArrowUp" => 38,
                "ArrowRight" => 39,
                "ArrowDown" => 40,
                "Enter" => 13,
                "Escape" => 27,
                "End" => 35,
                "Home" => 36,
                "PageUp" => 33,
                "PageDown" => 34,
                "Tab" => 9,
                _ => 0,
            };
            let mut event = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code, "modifiers": if shift { 8 } else { 0 }});
            if key == "Enter" {
                event["text"] = "\r".into();
            } else if key.chars().count() == 1 {
                event["text"] = key.into();
            }
            self.send("Input.dispatchKeyEvent", event);
            self.send(
                "Input.dispatchKeyEvent",
                json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}),
            );
        }
        self.settle();
    }

    /// Puts a text where the focus is.
    pub fn type_text(&mut self, text: &str) {
        self.send("Input.insertText", json!({"text": text}));
        self.settle();
    }

    /// Where in the window a part of an element is: from 0, 0 at its upper left to 1, 1.
    pub fn place(&mut self, selector: &str, (x, y): (f64, f64)) -> (f64, f64) {
        let at = self.eval(&format!(
            "(() => {{ const r = document.querySelector({}).getBoundingClientRect(); return [r.left + r.width * {x}, r.top + r.height * {y}]; }})()",
            json!(selector)
        ));
        (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64), modifiers: u32) {
        let buttons = u32::from(kind != "mouseReleased");
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        self.send("Input.dispatchMouseEvent", json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1, "modifiers": modifiers}));
    }

    pub fn point(&mut self, at: (f64, f64)) {
        self.send(
            "Input.dispatchMouseEvent",
            json!({"type": "mouseMoved", "x": at.0, "y": at.1}),
        );
        self.settle();
    }

    pub fn click(&mut self, at: (f64, f64)) {
        self.point(at);
        self.mouse("mousePressed", at, 0);
        self.mouse("mouseReleased", at, 0);
        self.settle();
    }

    pub fn click_on(&mut self, selector: &str) {
        let at = self.place(selector, (0.5, 0.5));
        self.click(at);
    }

    /// Drags from a place to another; with `shift`, that key is held.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64), shift: bool) {
        let modifiers = if shift { 8 } else { 0 };
        self.point(from);
        self.mouse("mousePressed", from, modifiers);
        for part in [0.3, 0.7, 1.0] {
            let at = (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            );
            self.mouse("mouseMoved", at, modifiers);
        }
        self.settle();
        self.mouse("mouseReleased", to, modifiers);
        self.settle();
    }

    pub fn wheel(&mut self, at: (f64, f64), (dx, dy): (f64, f64), ctrl: bool) {
        let modifiers = if ctrl { 2 } else { 0 };
        self.send("Input.dispatchMouseEvent", json!({"type": "mouseWheel", "x": at.0, "y": at.1, "deltaX": dx, "deltaY": dy, "modifiers": modifiers}));
        self.settle();
    }

    /// The window as PNG.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let shot = self.send("Page.captureScreenshot", json!({"format": "png"}));
        base64(shot["data"].as_str().unwrap())
    }

    /// Writes a screenshot into the folder `OSTEON_SHOTS`, where it is set.
    pub fn keep(&mut self, name: &str) {
        if let Some(dir) = std::env::var_os("OSTEON_SHOTS") {
            let png = self.screenshot();
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(Path::new(&dir).join(name).with_extension("png"), png).unwrap();
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = vec![];
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let word = chunk
            .iter()
            .fold(0u32, |word, &c| word << 6 | u32::from(digit(c)))
            << (6 * (4 - chunk.len()));
        bytes.extend(&word.to_be_bytes()[1..chunk.len()]);
    }
    bytes
}
