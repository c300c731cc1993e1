//! A browser in the words of who uses it. Everything waits until it can be done, up to a limit, and a test that waits in
//! vain is told what was on the page instead.
//!
//! ```text
//! let server = Server::start();
//! let browser = Browser::start();
//! browser.visit(&server.url("/jobs/new"));
//! browser.fill("Job key", "daily-report");
//! browser.click("Create");
//! browser.see("daily-report was created");
//! browser.flawless();
//! browser.finish();
//! ```

use std::cell::RefCell;
use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::appearance::Media;
use super::driver::{Driver, element, reference};
use super::keys::strokes;

/// How often something is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How things are called, and how to find them by that.
const FIND: &str = concat!(include_str!("words.js"), include_str!("find.js"));

/// A browser of its own for a test, which must end with [`Browser::finish`].
pub(crate) struct Browser {
    pub(super) driver: Driver,
    pub(super) media: RefCell<Media>,
    /// How long something may take to appear.
    pub(super) patience: Duration,
    said: RefCell<Vec<Said>>,
    finished: bool,
}

/// Something that the browser wrote into its console.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// `SEVERE`, `WARNING`, `INFO` or `DEBUG`.
    pub(crate) level: String,
    /// `console-api`, `javascript`, `network`, `security` or the like.
    pub(crate) source: String,
    pub(crate) text: String,
}

impl Said {
    /// An error or a warning.
    pub(super) fn is_fault(&self) -> bool {
        ["SEVERE", "WARNING"].contains(&self.level.as_str())
    }
}

impl Display for Said {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): {}", self.level, self.source, self.text)
    }
}

impl Browser {
    /// A fresh profile, 1280 x 800, light, with JavaScript.
    #[track_caller]
    #[allow(
        clippy::disallowed_methods,
        clippy::print_stderr,
        reason = "who reads a failure may ask where the time went"
    )]
    pub(crate) fn start() -> Browser {
        let begun = Instant::now();
        let browser = Browser {
            driver: Driver::start(),
            media: RefCell::default(),
            patience: Duration::from_secs(10),
            said: RefCell::default(),
            finished: false,
        };
        browser.resize(1280, 800);
        browser.light();
        eprintln!("the browser started in {} ms", begun.elapsed().as_millis());
        browser
    }

    /// Goes to an address and waits until the page is loaded.
    #[track_caller]
    pub(crate) fn visit(&self, url: &str) {
        if let Err(reason) = self.driver.command("url", &json!({ "url": url })) {
            self.fail(&format!("cannot visit {url}: {reason}"));
        }
        // What the browser shows by itself when a server answers with nothing.
        if self.url().starts_with("chrome-error:") {
            self.fail(&format!("there is no page at {url}"));
        }
    }

    /// Where it is.
    #[track_caller]
    pub(crate) fn url(&self) -> String {
        self.text("return location.href", &json!([]))
    }

    /// Clicks on the one link, button, box or summary of that name: its whole name, else a CSS selector, else a part of
    /// its name.
    #[track_caller]
    pub(crate) fn click(&self, what: &str) {
        self.wait(&format!("click on `{what}`"), || {
            let target = self.find("clickable", &json!([what]))?;
            self.driver.command(&format!("element/{target}/click"), &json!({})).map(drop)
        });
    }

    /// Replaces what is in the field of that label.
    #[track_caller]
    pub(crate) fn fill(&self, label: &str, text: &str) {
        // What a person types into a date depends on the language of the system.
        const SET: &str = "const [field, text] = arguments; \
            if (!['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'].includes(field.type)) return false; \
            field.value = text; \
            ['input', 'change'].forEach(name => field.dispatchEvent(new Event(name, { bubbles: true }))); \
            return true";
        self.wait(&format!("fill `{label}`"), || {
            let field = self.find("field", &json!([label]))?;
            if self.driver.execute(SET, &json!([reference(&field), text]))? == true {
                return Ok(());
            }
            self.driver.command(&format!("element/{field}/clear"), &json!({}))?;
            self.driver.command(&format!("element/{field}/value"), &json!({ "text": text })).map(drop)
        });
    }

    /// Chooses from the list of that label, or among the round buttons of the group of that name.
    #[track_caller]
    pub(crate) fn choose(&self, label: &str, option: &str) {
        self.wait(&format!("choose `{option}` of `{label}`"), || {
            let option = self.find("option", &json!([label, option]))?;
            self.driver.command(&format!("element/{option}/click"), &json!({})).map(drop)
        });
    }

    /// Presses keys, one after the other: `g j`, `Escape`, `Shift+Tab`. They go to what has the focus.
    #[track_caller]
    pub(crate) fn press(&self, keys: &str) {
        if let Err(reason) = self.driver.command("actions", &strokes(keys)) {
            self.fail(&format!("cannot press `{keys}`: {reason}"));
        }
    }

    /// Waits until the text is visible; spaces and line ends are alike.
    #[track_caller]
    pub(crate) fn see(&self, text: &str) {
        self.wait(&format!("see `{text}`"), || self.visible(text, true));
    }

    /// Waits until the text is not visible, or no more.
    #[track_caller]
    pub(crate) fn not_see(&self, text: &str) {
        self.wait(&format!("no more see `{text}`"), || self.visible(text, false));
    }

    /// Waits until this many elements match.
    #[track_caller]
    pub(crate) fn see_count(&self, css: &str, count: usize) {
        self.wait(&format!("see {count} x `{css}`"), || match self.count(css) {
            found if found == count => Ok(()),
            found => Err(format!("there are {found}")),
        });
    }

    /// How many elements match now.
    #[track_caller]
    pub(crate) fn count(&self, css: &str) -> usize {
        let count = self.execute("return document.querySelectorAll(arguments[0]).length", &json!([css]));
        count.as_u64().unwrap() as usize
    }

    /// The visible text of the one element that matches.
    #[track_caller]
    pub(crate) fn text_of(&self, css: &str) -> String {
        self.of_one(css, "return plain(arguments[0].innerText)").as_str().unwrap().to_owned()
    }

    /// An attribute of the one element that matches, if it has it.
    #[track_caller]
    pub(crate) fn attribute(&self, css: &str, name: &str) -> Option<String> {
        let script = format!("return arguments[0].getAttribute({})", json!(name));
        self.of_one(css, &script).as_str().map(ToOwned::to_owned)
    }

    /// Returns the current value of the field with this label.
    #[track_caller]
    pub(crate) fn value_of(&self, label: &str) -> String {
        let value = self.wait(&format!("read `{label}`"), || {
            let field = self.find("field", &json!([label]))?;
            self.driver.execute("return arguments[0].value", &json!([reference(&field)]))
        });
        value.as_str().unwrap().to_owned()
    }

    /// Runs a script in the page, which may use `arguments` and must `return`.
    #[track_caller]
    pub(crate) fn execute(&self, script: &str, arguments: &Value) -> Value {
        self.driver.execute(script, arguments).unwrap_or_else(|reason| self.fail(&format!("`{script}`: {reason}")))
    }

    /// Waits until a script returns true.
    #[track_caller]
    pub(crate) fn until(&self, script: &str) {
        self.wait(&format!("get true from `{script}`"), || match self.driver.execute(script, &json!([]))? {
            Value::Bool(true) => Ok(()),
            other => Err(format!("it returned {other}")),
        });
    }

    /// Everything that the browser said so far, but for what was expected.
    #[track_caller]
    pub(crate) fn console(&self) -> Vec<Said> {
        let news = self.driver.command("se/log", &json!({ "type": "browser" })).unwrap();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let said = |entry: &Value| Said {
            level: text(entry, "level"),
            source: text(entry, "source"),
            text: text(entry, "message"),
        };
        self.said.borrow_mut().extend(news.as_array().into_iter().flatten().map(said));
        self.said.borrow().clone()
    }

    /// Waits until the browser says this, which is then no fault: the status 404 of a page, say.
    #[track_caller]
    pub(crate) fn expect_console(&self, text: &str) -> Said {
        self.wait(&format!("hear `{text}` from the browser"), || {
            let place = self.console().iter().position(|said| said.text.contains(text));
            place.map(|place| self.said.borrow_mut().remove(place)).ok_or_else(|| "it did not say that".to_owned())
        })
    }

    /// Passes over everything of this kind that was said so far, however often.
    #[track_caller]
    pub(crate) fn forgive(&self, text: &str) {
        self.console();
        self.said.borrow_mut().retain(|said| !said.text.contains(text));
    }

    /// The end. Fails if the browser said any error or warning: of a script, a request that failed, a policy that was
    /// violated.
    #[track_caller]
    pub(crate) fn finish(mut self) {
        let faults: Vec<_> =
            self.console().into_iter().filter(Said::is_fault).map(|said| format!("\n  {said}")).collect();
        self.finished = true;
        if !faults.is_empty() {
            self.fail(&format!("the browser complained:{}", faults.concat()));
        }
    }

    /// Fails unless the thing works before the time is over.
    #[track_caller]
    fn wait<T>(&self, action: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
        let mut last = String::new();
        for _ in 0..self.patience.as_millis() / POLL_INTERVAL.as_millis() {
            match attempt() {
                Ok(done) => return done,
                Err(reason) => last = reason,
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        self.fail(&format!("cannot {action}: {last}"))
    }

    /// Fails with what is on the page.
    #[track_caller]
    pub(super) fn fail(&self, what: &str) -> ! {
        let ask = |script: &str| self.driver.execute(script, &json!([])).unwrap_or_else(Value::String);
        let (url, text) = (ask("return location.href"), ask("return document.body?.innerText ?? ''"));
        let text: String = text.as_str().unwrap_or_default().chars().take(4_000).collect();
        let picture = self.picture(&PathBuf::from(format!("failed-{}.png", std::process::id())));
        let picture = picture.map_or_else(|reason| reason, |path| path.display().to_string());
        panic!("{what}\n  at {}\n  picture: {picture}\n  visible:\n{text}", url.as_str().unwrap_or_default())
    }

    /// The one element that a function of `find.js` answers with.
    fn find(&self, function: &str, arguments: &Value) -> Result<String, String> {
        let found = self.driver.execute(&format!("{FIND} return {function}(...arguments)"), arguments)?;
        match found.as_array().map(Vec::as_slice).unwrap_or_default() {
            [one] => element(one).map(ToOwned::to_owned).ok_or_else(|| format!("{one} is no element")),
            [] => Err("there is none".to_owned()),
            several => Err(format!("there are {}", several.len())),
        }
    }

    #[track_caller]
    fn of_one(&self, css: &str, script: &str) -> Value {
        self.wait(&format!("read `{css}`"), || {
            let found = self.find("matching", &json!([css]))?;
            self.driver.execute(&format!("{FIND} {script}"), &json!([reference(&found)]))
        })
    }

    fn visible(&self, text: &str, wanted: bool) -> Result<(), String> {
        let script = format!("{FIND} return plain(document.body.innerText).includes(plain(arguments[0]))");
        let found = self.driver.execute(&script, &json!([text]))? == wanted;
        if found { Ok(()) } else { Err(if wanted { "it is not there" } else { "it is there" }.to_owned()) }
    }

    #[track_caller]
    fn text(&self, script: &str, arguments: &Value) -> String {
        self.execute(script, arguments).as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let heard = self.finished || std::thread::panicking();
        assert!(heard, "a test must end with `browser.finish()`, or nobody hears what the browser said");
    }
}
