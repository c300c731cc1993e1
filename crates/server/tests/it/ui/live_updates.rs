//! Pages that follow what happens, choices that stay, and hands that stay on the keyboard.

use serde_json::json;

use super::browser::Browser;
use super::visitor::Visitor;
use crate::server::Server;
use crate::talk::Talk;

#[test]
fn a_list_follows_what_happens_and_never_takes_what_somebody_is_typing() {
    let server = Server::start();
    server.job("often", &json!({"cronExpression": "* * * * * *"}));
    server.job("quiet", &json!({}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs"));
    browser.see("Live");
    browser.execute("window.same = true", &json!([]));
    browser.until("return /Succeeded/.test(document.querySelector('[data-row=often]').innerText)");
    // Somebody else pauses a job.
    server.patch("/jobs/key:quiet/pause", &json!({"reason": "seen by everybody"})).expect(200);
    browser.see("seen by everybody");
    assert_eq!(browser.execute("return window.same", &json!([])), json!(true), "the page was loaded again");
    // A selection stays.
    browser
        .execute("getSelection().selectAllChildren(document.querySelector('[data-row=often] .plan div'))", &json!([]));
    server.post("/jobs/key:quiet/resume", &json!({})).expect(200);
    browser.until("return document.querySelector('#nav') !== null");
    assert_eq!(browser.execute("return String(getSelection())", &json!([])), json!("Every second"));
    browser.execute("getSelection().removeAllRanges()", &json!([]));
    browser.not_see("seen by everybody");
    browser.finish();
}

#[test]
fn what_a_run_prints_is_seen_while_it_is_at_work() {
    let server = Server::with(&Talk::targets());
    let (talk, run) = Talk::begin(&server, "chatty");
    let browser = Browser::admin(&server);
    browser.visit(&server.url(&format!("/runs/{}", run["id"].as_str().unwrap())));
    browser.execute("window.same = true", &json!([]));
    browser.see("one 1");
    browser.see("so far");
    talk.go_on_after("one");
    browser.see("two 1");
    // A selection of text survives an update.
    browser.execute("getSelection().selectAllChildren(document.getElementById('output'))", &json!([]));
    talk.go_on_after("two");
    let path = format!("/runs/{}", run["id"].as_str().unwrap());
    server.until(&path, |run| run["status"] == "succeeded");
    assert_eq!(browser.execute("return String(getSelection()).trim()", &json!([])), json!("one 1\ntwo 1"));
    browser.execute("getSelection().removeAllRanges()", &json!([]));
    browser.see("three");
    browser.see("Succeeded");
    browser.not_see("so far");
    assert_eq!(browser.execute("return window.same", &json!([])), json!(true), "the page was loaded again");
    browser.finish();
}

#[test]
fn a_theme_and_a_zone_are_chosen_and_stay() {
    let server = Server::start();
    server.job("tokyo", &json!({"cronExpression": "0 9 * * *", "timezone": "Asia/Tokyo"}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/tokyo"));
    browser.see("JST");
    browser.click("UTC");
    browser.see("00:00 UTC");
    browser.not_see("JST");
    browser.press("t");
    browser.until("return document.documentElement.dataset.theme === 'dark'");
    // The script sends the choice in the background: leaving the page before it is stored would lose it.
    browser.until(
        "return fetch('/settings').then((page) => page.text()).then((text) => text.includes('data-theme=\"dark\"'))",
    );
    browser.visit(&server.url("/settings"));
    browser.until("return document.documentElement.dataset.theme === 'dark'");
    assert_eq!(browser.value_of("Show times in"), "utc");
    browser.choose("Theme", "Light");
    browser.choose("Show times in", "Schedule zone");
    browser.fill("My time zone", "Europe/Paris");
    browser.click("Save");
    browser.until("return document.documentElement.dataset.theme === 'light'");
    browser.visit(&server.url("/jobs/tokyo"));
    browser.see("JST");
    browser.finish();
}

#[test]
fn choices_that_are_made_at_once_do_not_undo_each_other() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    let page = admin.page("/settings");
    for (name, value) in [("theme", "dark"), ("face", "utc"), ("mine", "Asia/Tokyo"), ("live", "off")] {
        let reply = admin.submit("/choices", &page, &[(name, value), ("back", "/settings")]);
        // The answer says nothing of the others, which may be older than what another answer says.
        assert!(reply.headers["set-cookie"].starts_with(&format!("everbell-{name}-")), "{:?}", reply.headers);
    }
    let page = admin.page("/settings");
    for text in ["data-theme=\"dark\"", "data-live=\"off\"", "value=\"utc\" selected", "value=\"Asia/Tokyo\""] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
}

#[test]
fn hands_stay_on_the_keyboard() {
    let server = Server::start();
    for key in ["a-first", "b-second", "c-third"] {
        server.job(key, &json!({}));
    }
    let browser = Browser::admin(&server);
    browser.press("g j");
    browser.see("New job");
    browser.visit(&server.url("/jobs?sort=jobKey"));
    browser.press("j j");
    browser.until("return document.querySelector('[data-current]').dataset.row === 'b-second'");
    browser.press("k");
    browser.until("return document.querySelector('[data-current]').dataset.row === 'a-first'");
    browser.press("?");
    browser.see("Next or previous row");
    browser.press("Escape");
    browser.not_see("Next or previous row");
    browser.click("Shortcuts ?");
    browser.see("Next or previous row");
    browser.press("Escape");
    browser.press("/");
    browser.until("return document.activeElement.type === 'search'");
    // What is typed is no command.
    browser.press("g r");
    browser.until("return document.activeElement.value === 'gr'");
    browser.visit(&server.url("/jobs?sort=jobKey"));
    browser.press("j p");
    browser.see("Pause a-first");
    browser.press("Escape");
    browser.press("Enter");
    browser.until("return location.pathname === '/jobs/a-first'");
    browser.press("g t");
    browser.until("return location.pathname === '/timeline'");
    browser.finish();
}

#[test]
fn escape_closes_a_menu_and_gives_the_focus_back() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs"));
    browser.click("More actions for daily");
    browser.see("Retire…");
    browser.press("Tab Escape");
    browser.not_see("Retire…");
    browser.until("return document.activeElement.matches('summary[aria-label=\"More actions for daily\"]')");
    browser.finish();
}
