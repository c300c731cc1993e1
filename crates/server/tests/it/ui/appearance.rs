//! How a page looks: sizes, colours, and pictures of it.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::browser::Browser;

/// The widths at which every page must be good: a desk and a phone.
const WIDTHS: [u32; 2] = [1280, 390];

/// The widths of pictures: also a large desk.
const PICTURE_WIDTHS: [u32; 3] = [1280, 1600, 390];

/// The greatest height of a screenshot.
const MAX_PAGE_HEIGHT: f64 = 16_000.0;

/// Media features of the browser.
#[derive(Default)]
pub(super) struct Media {
    dark: bool,
    reduced_motion: bool,
}

impl Browser {
    /// Makes the inside of the window exactly so large.
    #[track_caller]
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.tools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// The user prefers dark colours.
    #[track_caller]
    pub(crate) fn dark(&self) {
        self.media.borrow_mut().dark = true;
        self.tell_media();
    }

    /// The user prefers light colours, as at the start.
    #[track_caller]
    pub(crate) fn light(&self) {
        self.media.borrow_mut().dark = false;
        self.tell_media();
    }

    /// The user wants nothing to move.
    #[track_caller]
    pub(crate) fn reduced_motion(&self) {
        self.media.borrow_mut().reduced_motion = true;
        self.tell_media();
    }

    /// No page may run a script from now on; those of a test still do.
    #[track_caller]
    pub(crate) fn without_javascript(&self) {
        self.tools("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    }

    /// Saves a screenshot of the whole page below the target folder and returns its path.
    #[track_caller]
    pub(crate) fn screenshot(&self, name: &str) -> PathBuf {
        self.picture(Path::new(&format!("{name}.png"))).unwrap()
    }

    /// Takes the pictures of [`Browser::pictures_into`] into the folder that `EVERBELL_PICTURES` names, if it is set.
    #[track_caller]
    pub(crate) fn pictures(&self, name: &str) {
        if let Some(folder) = std::env::var_os("EVERBELL_PICTURES") {
            self.pictures_into(Path::new(&folder), name);
        }
    }

    /// Saves the whole page in every look: `NAME-1280-light.png`, `NAME-1280-dark.png`, and the same for 1600 and 390.
    #[track_caller]
    pub(super) fn pictures_into(&self, folder: &Path, name: &str) {
        self.each_look(&PICTURE_WIDTHS, |look| {
            self.picture(&folder.join(format!("{name}-{look}.png"))).unwrap();
        });
    }

    /// Fails if the page has a fault on a desk or a phone, in light or in dark colours; see [`Browser::lint`].
    #[track_caller]
    pub(crate) fn flawless(&self) {
        let mut faults = Vec::new();
        self.each_look(&WIDTHS, |look| {
            faults.extend(self.lint().into_iter().map(|fault| format!("\n  {look}: {fault}")));
        });
        if !faults.is_empty() {
            self.fail(&format!("the page has faults:{}", faults.concat()));
        }
    }

    /// Shows the page in every look of these widths, and leaves it as it is at the start.
    #[track_caller]
    fn each_look(&self, widths: &[u32], mut seen: impl FnMut(&str)) {
        for width in widths {
            self.resize(*width, 800);
            self.light();
            seen(&format!("{width}-light"));
            self.dark();
            seen(&format!("{width}-dark"));
        }
        self.resize(WIDTHS[0], 800);
        self.light();
    }

    /// Saves what the window shows as one picture of a film, if `EVERBELL_PICTURES` names a folder.
    #[track_caller]
    pub(super) fn frame(&self, name: &str) {
        let Some(folder) = std::env::var_os("EVERBELL_PICTURES") else { return };
        let taken = self.capture(&json!({ "format": "png" }), &Path::new(&folder).join(format!("frame-{name}.png")));
        taken.unwrap_or_else(|reason| self.fail(&reason));
    }

    /// A picture of the whole page; names without a folder are beside what cargo builds.
    pub(super) fn picture(&self, path: &Path) -> Result<PathBuf, String> {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(path);
        let size = "const page = document.scrollingElement; return [page.scrollWidth, page.scrollHeight]";
        let size = self.driver.execute(size, &json!([]))?;
        let (width, height) = (&size[0], size[1].as_f64().unwrap_or_default().clamp(1.0, MAX_PAGE_HEIGHT));
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        self.capture(&json!({ "format": "png", "captureBeyondViewport": true, "clip": clip }), &path)?;
        Ok(path)
    }

    fn capture(&self, what: &Value, path: &Path) -> Result<(), String> {
        let taken = self.driver.tools("Page.captureScreenshot", what)?;
        let bytes = STANDARD.decode(taken["data"].as_str().unwrap_or_default()).map_err(|error| error.to_string())?;
        fs::create_dir_all(path.parent().unwrap()).and_then(|()| fs::write(path, bytes)).map_err(|e| e.to_string())
    }

    #[track_caller]
    fn tell_media(&self) {
        let media = self.media.borrow();
        let scheme = if media.dark { "dark" } else { "light" };
        let motion = if media.reduced_motion { "reduce" } else { "no-preference" };
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": motion },
        ]);
        self.tools("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    #[track_caller]
    fn tools(&self, command: &str, parameters: &Value) {
        self.driver.tools(command, parameters).unwrap_or_else(|reason| self.fail(&format!("{command}: {reason}")));
    }
}
