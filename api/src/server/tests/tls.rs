//! Encrypted connections.

use super::*;

/// Writes a fresh certificate for `localhost` and returns it.
fn write_certificate(dir: &Path) -> rustls_pki_types::CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    write_key(&dir.join("key.pem"), &made.signing_key);
    made.cert.der().clone()
}

fn write_key(path: &Path, key: &rcgen::KeyPair) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, key.serialize_pem()).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn pem_paths(dir: &Path) -> (PathBuf, PathBuf) {
    (dir.join("cert.pem"), dir.join("key.pem"))
}

async fn tls_connect(
    address: SocketAddr,
    trusted: &rustls_pki_types::CertificateDer<'static>,
    protocol: &[u8],
) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
}

#[tokio::test]
async fn tls_serves_http1_and_http2_and_takes_a_new_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let first = write_certificate(dir.path());
    let (certificate, key) = pem_paths(dir.path());
    let tls = Tls::load(certificate, key).unwrap();
    let listener = Listener::tcp(
        ([127, 0, 0, 1], 0).into(),
        Some(tls.clone()),
        Surface::Public,
    )
    .await;
    let running = serve_on(listener.unwrap(), hasty()).await;
    let address = running.address.unwrap();

    let stream = tls_connect(address, &first, b"http/1.1").await.unwrap();
    assert_eq!(send_over(stream, get("/api/health")).await.status(), 200);

    let stream = tls_connect(address, &first, b"h2").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let request = Request::get("https://a.example/api/health").body(Full::<Bytes>::default());
    let (response, _) = tokio::join!(
        async {
            let response = sender.send_request(request.unwrap()).await.unwrap();
            drop(sender);
            response
        },
        connection
    );
    assert_eq!(
        (response.status(), response.version()),
        (StatusCode::OK, Version::HTTP_2)
    );
    assert_eq!(response.headers()["x-frame-options"], "DENY");
    let hsts = &response.headers()["strict-transport-security"];
    assert_eq!(hsts, "max-age=31536000");

    // A client that never begins its handshake does not stay.
    assert!(patience(running.connect().await, b"").await < Duration::from_secs(2));

    let second = write_certificate(dir.path());
    assert!(tls.reload_if_changed().unwrap());
    assert!(!tls.reload_if_changed().unwrap());
    assert!(tls_connect(address, &first, b"http/1.1").await.is_err());
    let stream = tls_connect(address, &second, b"http/1.1").await.unwrap();
    assert_eq!(send_over(stream, get("/api/health")).await.status(), 200);

    std::fs::write(dir.path().join("cert.pem"), "junk").unwrap();
    let reloaded = tls.reload_if_changed();
    assert!(matches!(reloaded, Err(TlsError::NoCertificate(_))));
    assert!(!tls.reload_if_changed().unwrap(), "said once");
    assert!(
        tls_connect(address, &second, b"http/1.1").await.is_ok(),
        "the old one stays"
    );
    running.stop().await;
}

#[tokio::test]
async fn plain_http_on_the_tls_port_is_redirected_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_certificate(dir.path());
    let (certificate, key) = pem_paths(dir.path());
    let tls = Tls::load(certificate, key).unwrap();
    let at = ([127, 0, 0, 1], 0).into();
    let listener = Listener::tcp(at, Some(tls), Surface::Public).await;
    let running = serve_on(listener.unwrap(), hasty()).await;
    let ask = async |head: &str| {
        let mut stream = running.connect().await;
        let head = format!("{head}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let redirected = ask("GET /a?b=c HTTP/1.1\r\nhost: a.example:8443").await;
    assert!(redirected.starts_with("HTTP/1.1 308 "), "{redirected}");
    assert!(redirected.contains("\r\nlocation: https://a.example:8443/a?b=c\r\n"));
    for head in [
        "POST /api/login HTTP/1.1\r\nhost: a.example\r\ncontent-length: 0",
        "GET //evil.example/ HTTP/1.1\r\nhost: a b",
        "GET / HTTP/1.0",
    ] {
        let refused = ask(head).await;
        assert!(
            refused.starts_with("HTTP/1.1 400 ") || refused.starts_with("HTTP/1.0 400 "),
            "{refused}"
        );
        assert!(refused.contains("https_required"), "{refused}");
    }
    running.stop().await;
}

#[test]
fn key_that_every_user_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    write_certificate(dir.path());
    for (mode, fits) in [(0o600, true), (0o640, true), (0o644, false), (0o620, false)] {
        let (certificate, key) = pem_paths(dir.path());
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        match Tls::load(certificate, key) {
            Ok(_) => assert!(fits, "{mode:o}"),
            Err(error) => assert!(
                !fits && error.to_string().contains("make it 0600"),
                "{error}"
            ),
        }
    }
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_certificate(dir.path());
    let (certificate, key) = pem_paths(dir.path());
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    write_key(&key, &other.signing_key);
    assert!(matches!(
        Tls::load(certificate, key),
        Err(TlsError::Unusable(_))
    ));
}
