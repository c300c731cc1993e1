//! Style sheets, scripts and pictures: inside of the binary, named after what they hold.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::request::{Content, UiRequest, UiResponse};
use everbell_http::problem::{Kind, Problem};

/// The whole style sheet: the frame first, then what each kind of page adds.
const STYLE: &str = concat!(
    include_str!("../assets/ui/base.css"),
    include_str!("../assets/ui/parts.css"),
    include_str!("../assets/ui/chart.css"),
    include_str!("../assets/ui/pages/jobs.css"),
    include_str!("../assets/ui/pages/job.css"),
    include_str!("../assets/ui/pages/action.css"),
    include_str!("../assets/ui/pages/job_form.css"),
    include_str!("../assets/ui/pages/runs.css"),
    include_str!("../assets/ui/pages/dashboard.css"),
    include_str!("../assets/ui/pages/admin.css"),
    include_str!("../assets/ui/pages/orgs.css"),
);

/// All scripts as one module: a browser fetches one file.
const CODE: &str = concat!(
    include_str!("../assets/ui/js/times.js"),
    include_str!("../assets/ui/js/live.js"),
    include_str!("../assets/ui/js/dialog.js"),
    include_str!("../assets/ui/js/forms.js"),
    include_str!("../assets/ui/js/keys.js"),
    include_str!("../assets/ui/js/palette.js"),
    include_str!("../assets/ui/js/hover.js"),
    include_str!("../assets/ui/js/main.js"),
);

const ICON: &str = include_str!("../assets/ui/icon.svg");

/// Every text: name, kind, content.
const FILES: &[(&str, &str, &str)] = &[
    ("style.css", "text/css; charset=utf-8", STYLE),
    ("icon.svg", "image/svg+xml", ICON),
    ("everbell.js", SCRIPT, CODE),
];

/// The Latin letters of Inter in all weights, so that pages look the same everywhere. Its license is beside it.
const FONT: &[u8] = include_bytes!("../assets/ui/font/inter-latin.woff2");
const FONT_NAME: &str = "inter-latin.woff2";
/// The end of the address of the font in the style sheet, which changes with the font.
const FONT_VERSION: &str = "?v=5.3.0";

const KEPT_FOR_GOOD: &str = "public, max-age=31536000, immutable";

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The address of a file: it changes with the file, so that browsers may keep it for good.
pub(crate) fn address(name: &str) -> String {
    format!("/ui/{name}?v={}", fingerprint())
}

/// A short word for everything that is in the files.
fn fingerprint() -> &'static str {
    static FINGERPRINT: OnceLock<String> = OnceLock::new();
    FINGERPRINT.get_or_init(|| {
        let mut hash = Sha256::new();
        for (name, _, content) in FILES {
            hash.update(name);
            hash.update(content);
        }
        URL_SAFE_NO_PAD.encode(&hash.finalize()[..9])
    })
}

pub(super) async fn serve(request: UiRequest) -> Result<UiResponse, Problem> {
    let name = request.part("file");
    if name == FONT_NAME {
        let kept = if request.here.ends_with(FONT_VERSION) { KEPT_FOR_GOOD } else { "no-cache" };
        return Ok(UiResponse::new(Content::Bytes("font/woff2", FONT)).header("cache-control", kept));
    }
    let file = FILES.iter().find(|(own, ..)| *own == name);
    let (_, kind, content) = file.ok_or_else(|| Problem::new(Kind::NotFound, "There is no such file."))?;
    let response = UiResponse::new(Content::Text(kind, (*content).to_owned()));
    // Without its print it may be an older page that asks, which must not be kept.
    let cache_control = if request.here.ends_with(fingerprint()) { KEPT_FOR_GOOD } else { "no-cache" };
    Ok(response.header("cache-control", cache_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_small() {
        let bytes: usize = FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT).map(|(.., content)| content.len()).sum();
        assert!(bytes <= 29_000, "{bytes} bytes of JavaScript");
    }

    #[test]
    fn the_font_is_small_and_is_asked_for_by_its_version() {
        assert!(FONT.len() <= 60_000, "{} bytes", FONT.len());
        assert!(STYLE.contains(&format!("url(\"{FONT_NAME}{FONT_VERSION}\")")));
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        for (name, _, content) in FILES {
            let foreign = content.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !foreign.contains("http://") && !foreign.contains("https://") && !foreign.contains("@import"),
                "{name}"
            );
        }
    }
}
