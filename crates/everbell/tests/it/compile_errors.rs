//! Mistakes that the compiler explains in the words of this library.
//!
//! Each case is compiled against the library that this test was built with, by the compiler alone: a few seconds for all.

use std::path::PathBuf;
use std::process::Command;

/// The folder of this test and of the libraries that it was linked with, and the newest build of this one: Cargo builds it
/// anew whenever its sources change.
fn library() -> (PathBuf, PathBuf) {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().unwrap().to_owned();
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libeverbell-") && path.extension().is_some_and(|end| end == "rlib")
    };
    let newest = files.filter(is_library).max_by_key(|path| path.metadata().and_then(|data| data.modified()).unwrap());
    (folder, newest.expect("the library was built before its tests"))
}

/// Compiles a function body, and returns what the compiler says: empty if it is content.
fn compile(name: &str, code: &str) -> String {
    let (folder, library) = library();
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("compile-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let file = scratch.join("case.rs");
    let source = format!(
        "#![allow(unused)]\nuse everbell::*;\nconst COUNT: TypedTarget<u64> = TypedTarget::new(\"count\");\n\
         fn case() {{\n{code}\n}}\n"
    );
    std::fs::write(&file, source).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut library_argument = std::ffi::OsString::from("everbell=");
    library_argument.push(&library);
    let mut folder_argument = std::ffi::OsString::from("dependency=");
    folder_argument.push(&folder);
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--extern"])
        .arg(library_argument)
        .arg("-L")
        .arg(folder_argument)
        .arg("--out-dir")
        .arg(&scratch)
        .arg(&file)
        .output()
        .expect("the compiler starts");
    std::fs::remove_dir_all(&scratch).unwrap();
    String::from_utf8(output.stderr).unwrap()
}

fn expect(name: &str, code: &str, wanted: &[&str]) {
    let said = compile(name, code);
    for text in wanted {
        assert!(said.contains(text), "`{text}` is missing:\n{said}");
    }
}

#[test]
fn a_handler_without_a_mistake_compiles() {
    let said = compile(
        "right",
        "async fn remind(Payload(n): Payload<u64>, run: Run, jobs: Jobs) -> Result<u64, RunError> { Ok(n) }
         Everbell::builder().target(COUNT, remind).target(\"remind\", remind).schedule(Schedule::cron(\"a\", \"@daily\").to(&COUNT, 7));",
    );
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn a_plain_argument_is_explained() {
    expect(
        "argument",
        "async fn remind(user: u64) {}\nEverbell::builder().target(\"remind\", remind);",
        &["`u64` is not an argument of a handler", "write `Payload<u64>`"],
    );
}

#[test]
fn a_wrong_return_type_is_explained() {
    expect(
        "return",
        "async fn remind() -> u64 { 7 }\nEverbell::builder().target(\"remind\", remind);",
        &["a handler cannot return `u64`", "return `Result<u64, everbell::RunError>`"],
    );
}

#[test]
fn a_future_that_is_not_send_is_explained() {
    expect(
        "send",
        "async fn remind() { let shared = std::rc::Rc::new(7); std::future::ready(()).await; drop(shared); }
         Everbell::builder().target(\"remind\", remind);",
        &["cannot be sent between threads safely", "Rc<i32>"],
    );
}

#[test]
fn a_function_that_is_not_async_is_explained() {
    expect(
        "async",
        "fn remind(run: Run) {}\nEverbell::builder().target(\"remind\", remind);",
        &["cannot be a handler", "a handler is an `async fn` with up to six arguments"],
    );
}

#[test]
fn a_handler_of_another_payload_than_its_target_is_explained() {
    expect(
        "typed",
        "async fn greet(Payload(name): Payload<String>) {}\nEverbell::builder().target(COUNT, greet);",
        &["takes the payload of that target or none, not", "Payload<String>"],
    );
    expect("to", "Schedule::cron(\"a\", \"@daily\").to(&COUNT, \"seven\");", &["expected `u64`, found `&str`"]);
}
