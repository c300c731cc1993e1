//! A target that says something each time when it is told to go on.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Folder, Server, TARGETS};

const TALK: &str = r#"
[[target]]
label = "talk"
type = "command"
argv = ["sh", "-c", """
folder=$(sed 's/.*"folder":"\\([^"]*\\)".*/\\1/')
for word in one two; do
  echo "$word $EVERBELL_ATTEMPT"
  while [ ! -e "$folder/after-$word" ]; do sleep 0.05; done
done
echo three
[ ! -e "$folder/fail" ]
"""]
"#;

/// A job that talks, and how to make it go on.
pub(crate) struct Talk {
    folder: Folder,
}

impl Talk {
    pub(crate) fn targets() -> String {
        format!("{TARGETS}{TALK}")
    }

    /// A job of this key, whose run is at work: the run.
    pub(crate) fn begin(server: &Server, key: &str) -> (Talk, Value) {
        let folder = Folder::new();
        let payload = json!({ "folder": folder.path() });
        let retry = json!({ "maxAttempts": 2, "initial": "1h", "max": "1h" });
        server.job(key, &json!({ "target": "talk", "payload": payload, "policies": { "retry": retry } }));
        let path = server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).headers["location"].clone();
        let run = server.until(&path, |run| run["status"] == "running");
        (Talk { folder }, run)
    }

    pub(crate) fn go_on_after(&self, word: &str) {
        self.mark(&format!("after-{word}"));
    }

    pub(crate) fn shall_fail(&self) {
        self.mark("fail");
    }

    fn mark(&self, name: &str) {
        fs::write(self.folder.path().join(name), "").expect("the folder can be written");
    }
}
