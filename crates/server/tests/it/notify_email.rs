//! Mails as an SMTP server gets them: a real server of everbell, and one for mails in the test process.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::server::{Server, eventually};

const AUTHORITY: &str = include_str!("../../src/targets/tests/data/ca.pem");

/// A conversation as the mail server saw it.
#[derive(Clone, Debug, Default)]
struct Talk {
    commands: Vec<String>,
    encrypted: bool,
    mail: String,
    /// Its answer to the mail.
    answer: String,
}

/// A server for mails that writes down what it gets.
struct MailServer {
    port: u16,
    talks: Arc<Mutex<Vec<Talk>>>,
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl MailServer {
    /// `refusals` are its answers to the first mails. With `encrypts` it offers STARTTLS.
    fn start(refusals: &[&str], encrypts: bool) -> MailServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = MailServer { port: listener.local_addr().unwrap().port(), talks: Arc::default() };
        let talks = Arc::clone(&server.talks);
        let refusals: Mutex<VecDeque<String>> = Mutex::new(refusals.iter().map(|&text| text.to_owned()).collect());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut talk = Talk::default();
                // A client may hang up at any time.
                let _ = converse(stream, &refusals, encrypts, &mut talk);
                talks.lock().unwrap().push(talk);
            }
        });
        server
    }

    /// Waits for this many conversations with a mail.
    fn until(&self, count: usize) -> Vec<Talk> {
        let with_mail = || -> Vec<Talk> {
            self.talks.lock().unwrap().iter().filter(|talk| !talk.mail.is_empty()).cloned().collect()
        };
        let found = eventually(|| Some(with_mail()).filter(|talks| talks.len() >= count));
        found.unwrap_or_else(|| panic!("{count} mails never came, only {:?}", self.talks.lock().unwrap()))
    }
}

fn converse(
    stream: std::net::TcpStream,
    refusals: &Mutex<VecDeque<String>>,
    encrypts: bool,
    talk: &mut Talk,
) -> std::io::Result<()> {
    let mut stream: Box<dyn Stream> = Box::new(stream);
    let mut plain = None;
    stream.write_all(b"220 mail.test ESMTP\r\n")?;
    loop {
        let command = line(&mut *stream)?;
        talk.commands.push(command.clone());
        let word = command.split(' ').next().unwrap_or_default().to_uppercase();
        let answer = match word.as_str() {
            "EHLO" if encrypts && !talk.encrypted => "250-mail.test\r\n250 STARTTLS".to_owned(),
            "EHLO" => "250-mail.test\r\n250 AUTH PLAIN LOGIN".to_owned(),
            "AUTH" => "235 welcome".to_owned(),
            "STARTTLS" => {
                stream.write_all(b"220 go ahead\r\n")?;
                stream = Box::new(encrypted(stream)?);
                talk.encrypted = true;
                plain = Some(());
                continue;
            }
            "DATA" => {
                stream.write_all(b"354 end with a dot\r\n")?;
                loop {
                    let line = line(&mut *stream)?;
                    if line == "." {
                        break;
                    }
                    talk.mail += &line;
                    talk.mail += "\n";
                }
                talk.answer = refusals.lock().unwrap().pop_front().unwrap_or_else(|| "250 taken".to_owned());
                talk.answer.clone()
            }
            "QUIT" => {
                stream.write_all(b"221 bye\r\n")?;
                return Ok(());
            }
            _ => "250 fine".to_owned(),
        };
        stream.write_all(answer.as_bytes())?;
        stream.write_all(b"\r\n")?;
        if plain.is_some() {
            stream.flush()?;
        }
    }
}

fn encrypted(stream: Box<dyn Stream>) -> std::io::Result<StreamOwned<ServerConnection, Box<dyn Stream>>> {
    let certificate = CertificateDer::from(include_bytes!("../../src/targets/tests/data/server.der").to_vec());
    let key = include_bytes!("../../src/targets/tests/data/server.key.der").to_vec();
    let key = PrivateKeyDer::try_from(key).map_err(std::io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(std::io::Error::other)?.with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], key).map_err(std::io::Error::other)?;
    let connection = ServerConnection::new(Arc::new(config)).map_err(std::io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

/// Byte by byte: what follows a line may be encrypted.
fn line(stream: &mut dyn Stream) -> std::io::Result<String> {
    let (mut text, mut byte) = (Vec::new(), [0]);
    loop {
        stream.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' => return Ok(String::from_utf8_lossy(&text).trim_end_matches('\r').to_owned()),
            other => text.push(other),
        }
    }
}

fn config(channel: &str) -> String {
    format!(
        r#"
[[target]]
label = "fragile"
type = "command"
argv = ["sh", "-c", "echo checking; exit 1"]
[[notify]]
name = "mail"
type = "email"
from = "everbell <cron@example.com>"
to = ["ops@example.com", "Ana <ana@example.com>"]
subject = "[prod]"
{channel}
[[rule]]
when = ["failed"]
jobs = {{ all = true }}
to = ["mail"]
"#
    )
}

#[test]
fn a_mail_that_is_refused_is_sent_again_with_the_same_id() {
    let mail = MailServer::start(&["451 try again later"], false);
    let channel = format!(
        "host = \"127.0.0.1\"\nport = {}\ntls = \"none\"\nuser = \"cron\"\npassword = {{ env = \"MAIL_PASSWORD\" }}",
        mail.port
    );
    let server = Server::launch(&config(&channel), None, &[("MAIL_PASSWORD", "hunter2")]).registered();
    server.job("nightly", &json!({ "target": "fragile" }));
    server.post("/jobs/key:nightly/run-now", &json!({})).expect(202);
    let talks = mail.until(2);
    assert_eq!((talks[0].answer.as_str(), talks[1].answer.as_str()), ("451 try again later", "250 taken"));
    let head = |talk: &Talk, name: &str| {
        let line = talk.mail.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no {name} in {}", talk.mail))
    };
    assert_eq!(head(&talks[0], "Message-ID: "), head(&talks[1], "Message-ID: "));
    assert_eq!(head(&talks[1], "Subject: "), "Subject: [prod] nightly is failing");
    assert!(talks[1].mail.contains("checking") && talks[1].mail.contains("everbell runs show "), "{}", talks[1].mail);
    let commands = talks[1].commands.join("\n");
    for expected in
        ["AUTH PLAIN ", "MAIL FROM:<cron@example.com>", "RCPT TO:<ops@example.com>", "RCPT TO:<ana@example.com>"]
    {
        assert!(commands.contains(expected), "{commands}");
    }
    let sent = server.until("/notify/deliveries", |list| list["items"][0]["status"] == "delivered");
    assert_eq!(sent["items"][0]["attempts"], 2);
    let channels = server.get("/notify/channels").expect(200);
    assert_eq!(channels["items"][0]["type"], "email");
    assert!(!channels.to_string().contains("hunter2") && !sent.to_string().contains("hunter2"), "{channels} {sent}");
}

#[test]
fn nothing_is_said_to_a_mail_server_before_the_connection_is_encrypted() {
    let (safe, plain) = (MailServer::start(&[], true), MailServer::start(&[], false));
    let channel = |port: u16| {
        format!("host = \"localhost\"\nport = {port}\nca_file = \"ca.pem\"\nuser = \"cron\"\npassword = \"hunter2\"")
    };
    let second =
        config(&channel(plain.port)).split("[[notify]]").nth(1).unwrap().split("[[rule]]").next().unwrap().to_owned();
    let text =
        format!("{}\n[[notify]]{}", config(&channel(safe.port)), second.replace("name = \"mail\"", "name = \"plain\""));
    let folder = crate::server::Folder::new();
    fs::write(folder.path().join("everbell.toml"), text).unwrap();
    fs::write(folder.path().join("ca.pem"), AUTHORITY).unwrap();
    let server = Server::in_folder(folder, &[], &[]).registered();
    let sent = |name: &str, status: &str| {
        let posted = server.post(&format!("/notify/channels/{name}/test"), &json!({})).expect(202);
        let path = format!("/notify/deliveries?id={}", posted["id"].as_str().unwrap());
        server.until(&path, |list| list["items"][0]["status"] == status)
    };
    sent("mail", "delivered");
    let talk = safe.until(1).remove(0);
    assert!(talk.encrypted && talk.commands.iter().any(|command| command.starts_with("AUTH")), "{talk:?}");
    let refused = sent("plain", "dead");
    assert!(refused["items"][0]["error"].as_str().unwrap().contains("STARTTLS"), "{refused}");
    let heard = plain.talks.lock().unwrap().clone();
    assert!(
        heard.iter().flat_map(|talk| &talk.commands).all(|command| command.starts_with("EHLO") || command == "QUIT"),
        "{heard:?}"
    );
}
