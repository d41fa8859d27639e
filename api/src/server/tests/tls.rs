//! Encrypted connections.

use super::*;

/// Writes a fresh certificate for `localhost` and returns it.
fn write_certificate(dir: &Path) -> rustls_pki_types::CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
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
    let request = Request::get("https://localhost/api/health").body(Full::<Bytes>::default());
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

    // A client that never begins its handshake does not stay.
    assert!(patience(running.connect().await, b"").await < Duration::from_secs(2));

    let second = write_certificate(dir.path());
    tls.reload().unwrap();
    assert!(tls_connect(address, &first, b"http/1.1").await.is_err());
    let stream = tls_connect(address, &second, b"http/1.1").await.unwrap();
    assert_eq!(send_over(stream, get("/api/health")).await.status(), 200);

    std::fs::write(dir.path().join("cert.pem"), "junk").unwrap();
    assert!(matches!(tls.reload(), Err(TlsError::NoCertificate(_))));
    assert!(
        tls_connect(address, &second, b"http/1.1").await.is_ok(),
        "the old one stays"
    );
    running.stop().await;
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_certificate(dir.path());
    let (certificate, key) = pem_paths(dir.path());
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&key, other.signing_key.serialize_pem()).unwrap();
    assert!(matches!(
        Tls::load(certificate, key),
        Err(TlsError::Unusable(_))
    ));
}
