//! [`Choices`]: what somebody chose for their browser. Kept in a cookie, so it takes no JavaScript.

use everbell_core::Zone;
use jiff::Timestamp;

use super::session::{Cookie, Cookies};
use crate::form::pairs;
use crate::ui::markup::url_part;

/// What somebody chose.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(crate) theme: Theme,
    pub(crate) face: Face,
    /// Their own zone; UTC until they say otherwise, or their browser does.
    pub(crate) mine: Zone,
    /// Whether it was said.
    pub(crate) zone_known: bool,
    /// Pages follow what happens.
    pub(crate) live: bool,
}

/// How bright pages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// As the system is.
    #[default]
    Auto,
    Light,
    Dark,
}

impl Theme {
    pub(crate) const ALL: [Theme; 3] = [Theme::Auto, Theme::Light, Theme::Dark];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Theme::Auto => "auto",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Theme::Auto => "System",
            Theme::Light => "Light",
            Theme::Dark => "Dark",
        }
    }
}

/// In whose zone times are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Face {
    /// That of the job; of things without one, that of who looks.
    #[default]
    Schedule,
    Mine,
    Utc,
}

impl Face {
    pub(crate) const ALL: [Face; 3] = [Face::Schedule, Face::Mine, Face::Utc];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Face::Schedule => "schedule",
            Face::Mine => "mine",
            Face::Utc => "utc",
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Face::Schedule => "Schedule zone",
            Face::Mine => "My zone",
            Face::Utc => "UTC",
        }
    }
}

impl Default for Choices {
    fn default() -> Choices {
        Choices { theme: Theme::Auto, face: Face::Schedule, mine: Zone::utc(), zone_known: false, live: true }
    }
}

impl Choices {
    /// What the cookie says; what it says wrongly is as if it were not said.
    pub(crate) fn of(cookies: &Cookies) -> Choices {
        let text = cookies.get(Cookie::Choices).unwrap_or_default();
        pairs(&text)
            .unwrap_or_default()
            .iter()
            .fold(Choices::default(), |choices, (name, value)| choices.with(name, value))
    }

    /// With another choice; one that is none changes nothing.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Choices {
        match name {
            "theme" => self.theme = Theme::ALL.into_iter().find(|theme| theme.as_str() == value).unwrap_or(self.theme),
            "face" => self.face = Face::ALL.into_iter().find(|face| face.as_str() == value).unwrap_or(self.face),
            "mine" => {
                if let Ok(zone) = Zone::get(value) {
                    (self.mine, self.zone_known) = (zone, true);
                }
            }
            "live" => self.live = value != "off",
            _ => {}
        }
        self
    }

    /// What the cookie is to say.
    pub(crate) fn text(&self) -> String {
        let (theme, face, live) = (self.theme.as_str(), self.face.as_str(), if self.live { "on" } else { "off" });
        let mine = if self.zone_known { format!("&mine={}", url_part(self.mine.name())) } else { String::new() };
        format!("theme={theme}&face={face}&live={live}{mine}")
    }

    /// A clock for somebody with these choices.
    pub(crate) fn clock(&self, now: Timestamp) -> super::clock::Clock {
        super::clock::Clock { now, face: self.face, mine: self.mine.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_kept_as_text() {
        let chosen = Choices::default().with("theme", "dark").with("mine", "Europe/Paris").with("live", "off");
        let back =
            pairs(&chosen.text()).unwrap().iter().fold(Choices::default(), |all, (name, value)| all.with(name, value));
        assert_eq!((back.theme, back.mine.name(), back.live), (Theme::Dark, "Europe/Paris", false));
        let same = back.with("theme", "pink").with("face", "moon").with("mine", "Mars/Base").with("other", "1");
        assert_eq!((same.theme, same.face, same.mine.name()), (Theme::Dark, Face::Schedule, "Europe/Paris"));
    }
}
