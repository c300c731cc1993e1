//! Keys as people name them: `g j`, `Escape`, `Shift+Tab`, `?`.

use serde_json::{Value, json};

/// The letters that `WebDriver` has for keys without one.
const NAMED_KEYS: [(&str, char); 17] = [
    ("Enter", '\u{e007}'),
    ("Escape", '\u{e00c}'),
    ("Tab", '\u{e004}'),
    ("Space", ' '),
    ("Backspace", '\u{e003}'),
    ("Delete", '\u{e017}'),
    ("Up", '\u{e013}'),
    ("Down", '\u{e015}'),
    ("Left", '\u{e012}'),
    ("Right", '\u{e014}'),
    ("Home", '\u{e011}'),
    ("End", '\u{e010}'),
    ("PageUp", '\u{e00e}'),
    ("PageDown", '\u{e00f}'),
    ("Shift", '\u{e008}'),
    ("Control", '\u{e009}'),
    ("Alt", '\u{e00a}'),
];

/// The keys one after the other; those joined by `+` together.
pub(super) fn strokes(keys: &str) -> Value {
    let mut actions = Vec::new();
    for together in keys.split_whitespace() {
        let held: Vec<String> = if together == "+" { vec![key("+")] } else { together.split('+').map(key).collect() };
        actions.extend(held.iter().map(|key| json!({ "type": "keyDown", "value": key })));
        actions.extend(held.iter().rev().map(|key| json!({ "type": "keyUp", "value": key })));
    }
    json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] })
}

fn key(name: &str) -> String {
    let named = NAMED_KEYS.iter().find(|(own, _)| *own == name).map(|(_, letter)| letter.to_string());
    named.unwrap_or_else(|| {
        assert_eq!(name.chars().count(), 1, "`{name}` is no key that a test can press");
        name.to_owned()
    })
}

#[test]
fn keys_go_down_together_and_up_in_reverse() {
    let shown = |keys: &str| {
        let strokes = strokes(keys);
        let actions = strokes["actions"][0]["actions"].as_array().unwrap().iter();
        let one = |action: &Value| {
            let way = action["type"].as_str().unwrap().trim_start_matches("key").to_owned();
            format!("{way}:{}", action["value"].as_str().unwrap())
        };
        actions.map(one).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown("g j"), "Down:g Up:g Down:j Up:j");
    assert_eq!(shown("Shift+Tab"), "Down:\u{e008} Down:\u{e004} Up:\u{e004} Up:\u{e008}");
    assert_eq!(shown("+ ?"), "Down:+ Up:+ Down:? Up:?");
}
