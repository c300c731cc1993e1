//! The `http` target over TLS, with its own authority.
//!
//! The certificates are for `localhost` and last for a hundred years.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use everbell::{RunRecord, RunStatus};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::given::{Folder, failure, http, perform, result};

const AUTHORITY: &str = include_str!("data/ca.pem");

/// A server that answers one call.
fn server() -> (u16, JoinHandle<std::io::Result<()>>) {
    let certificate = CertificateDer::from(include_bytes!("data/server.der").to_vec());
    let key = PrivateKeyDer::try_from(include_bytes!("data/server.key.der").to_vec()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        let (stream, _) = listener.accept()?;
        let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        let mut head = [0; 64];
        stream.read_exact(&mut head)?;
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")?;
        stream.flush()
    });
    (port, answering)
}

async fn call(host: &str, trusting: bool) -> (RunRecord, std::io::Result<()>) {
    let folder = Folder::new();
    let authority = folder.file("ca.pem", AUTHORITY);
    let (port, answering) = server();
    let run =
        perform(http(format!("https://{host}:{port}/"), |http| http.ca_file = trusting.then_some(authority))).await;
    (run, answering.join().unwrap())
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted() {
    let (run, answered) = call("localhost", true).await;
    assert_eq!((run.status, result(&run)), (RunStatus::Succeeded, Some(r#"{"status":200}"#)), "{run:?} {answered:?}");
}

#[tokio::test]
async fn nobody_else_is_trusted() {
    for (host, trusting, reason) in [("localhost", false, "UnknownIssuer"), ("127.0.0.1", true, "not valid for name")] {
        let (run, answered) = call(host, trusting).await;
        let (code, message) = failure(&run);
        assert_eq!(code, "http_connect");
        assert!(message.contains(" cannot be trusted: TLS failed: ") && message.contains(reason), "{message}");
        assert!(answered.is_err());
    }
}
