//! The configuration file that is read.

use super::{Folder, names};

#[test]
fn without_a_file_there_is_a_demo_and_nothing_is_made() {
    let folder = Folder::new("without_a_file");
    let ran = folder.run(&["check"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let expected = "ok: no configuration file, using defaults: 1 target, 1 job\n\
                    target\tlog\tlog\tprints the payload\n\
                    job\tdemo\tlog\tEvery minute\tUTC\t20";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    assert_eq!(names(&folder), [""; 0]);
}

#[test]
fn the_file_is_named_by_flag_then_variable_then_habit() {
    let folder = Folder::with("named", "");
    for name in ["a.toml", "b.toml"] {
        folder.write(name, "");
    }
    let read =
        |args: &[&str], variables: &[(&str, &str)]| folder.run_with(&[&["check"], args].concat(), variables).stdout;
    assert_eq!(read(&[], &[]), "ok: everbell.toml: 0 targets, 0 jobs\n");
    assert_eq!(read(&[], &[("EVERBELL_CONFIG", "b.toml")]), "ok: b.toml: 0 targets, 0 jobs\n");
    assert_eq!(read(&["--config", "a.toml"], &[("EVERBELL_CONFIG", "b.toml")]), "ok: a.toml: 0 targets, 0 jobs\n");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let folder = Folder::new("unreadable");
    let head = "error: the configuration is not valid\n";
    assert_eq!(
        folder.refusal(&["--config", "missing.toml"], &[]),
        format!("{head}missing.toml: the configuration file does not exist\n")
    );
    assert_eq!(
        folder.refusal(&[], &[("EVERBELL_CONFIG", "missing.toml")]),
        format!("{head}missing.toml: the configuration file does not exist\n")
    );
    assert_eq!(
        folder.refusal(&[], &[("EVERBELL_CONFIG", "")]),
        format!("{head}EVERBELL_CONFIG: is empty; give it a value or unset it\n")
    );
    std::fs::create_dir(folder.0.join("everbell.toml")).unwrap();
    let said = folder.refusal(&[], &[]);
    assert!(said.starts_with(&format!("{head}everbell.toml: the configuration file cannot be read: ")), "{said}");
    std::fs::write(folder.0.join("latin.toml"), b"# caf\xe9\n").unwrap();
    let said = folder.refusal(&["--config", "latin.toml"], &[]);
    assert_eq!(said, format!("{head}latin.toml: the configuration file is not valid UTF-8\n"));
}

#[test]
fn paths_begin_at_the_working_directory() {
    let folder = Folder::new("relative");
    std::fs::create_dir(folder.0.join("etc")).unwrap();
    folder.write("etc/everbell.toml", "[database]\nurl_file = \"url\"\n");
    folder.write("url", "sqlite:here.db\n");
    let ran = folder.run(&["show", "--config", "etc/everbell.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("\ndatabase.url_file\turl\tetc/everbell.toml:2\n"), "{}", ran.stdout);
}
