//! [`Choices`]: display preferences, stored in cookies so that they work without JavaScript.

use everbell_core::Zone;
use jiff::Timestamp;

use super::clock::{Clock, Face};
use super::session::{Cookie, Cookies};

/// Display preferences of a browser.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(crate) theme: Theme,
    pub(crate) face: Face,
    /// The time zone of the user; UTC until the user or the browser sets it.
    pub(crate) mine: Zone,
    /// Whether the time zone was set.
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

impl Default for Choices {
    fn default() -> Choices {
        Choices { theme: Theme::Auto, face: Face::Schedule, mine: Zone::utc(), zone_known: false, live: true }
    }
}

impl Choices {
    /// The form field and the cookie of each preference.
    pub(crate) const COOKIES: [(&str, Cookie); 4] =
        [("theme", Cookie::Theme), ("face", Cookie::Face), ("mine", Cookie::Mine), ("live", Cookie::Live)];

    /// Reads the preferences from cookies. Invalid values are ignored.
    pub(crate) fn from_cookies(cookies: &Cookies) -> Choices {
        let stored = Choices::COOKIES.into_iter().filter_map(|(name, cookie)| Some((name, cookies.get(cookie)?)));
        stored.fold(Choices::default(), |choices, (name, value)| choices.with(name, &value).unwrap_or(choices))
    }

    /// With another choice, if it is one.
    pub(crate) fn with(&self, name: &str, value: &str) -> Option<Choices> {
        let mut chosen = self.clone();
        match name {
            "theme" => chosen.theme = Theme::ALL.into_iter().find(|theme| theme.as_str() == value)?,
            "face" => chosen.face = Face::ALL.into_iter().find(|face| face.as_str() == value)?,
            "mine" => (chosen.mine, chosen.zone_known) = (Zone::get(value).ok()?, true),
            "live" => chosen.live = [("on", true), ("off", false)].into_iter().find(|(word, _)| *word == value)?.1,
            _ => return None,
        }
        Some(chosen)
    }

    /// Returns a clock with these preferences.
    pub(crate) fn clock(&self, now: Timestamp) -> Clock {
        Clock { now, face: self.face, mine: self.mine.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_choice_changes_nothing() {
        let chosen = Choices::default().with("theme", "dark").and_then(|all| all.with("mine", "Europe/Paris")).unwrap();
        let chosen = chosen.with("live", "off").unwrap();
        assert_eq!((chosen.theme, chosen.mine.name(), chosen.live), (Theme::Dark, "Europe/Paris", false));
        for (name, value) in
            [("theme", "pink"), ("face", "moon"), ("mine", "Mars/Base"), ("live", ""), ("other", "1"), ("theme", "")]
        {
            assert!(chosen.with(name, value).is_none(), "{name}={value}");
        }
    }
}
