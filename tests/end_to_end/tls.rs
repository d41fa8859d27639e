//! The service speaks TLS itself.

use std::sync::Arc;

use crate::support::client::Target;
use crate::support::{Client, Stage};

#[tokio::test]
async fn with_certificate_and_key_everything_goes_over_tls() {
    let stage = Stage::new();
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = stage.path().join("server.crt");
    let key = stage.path().join("server.key");
    std::fs::write(&certificate, issued.cert.pem()).unwrap();
    std::fs::write(&key, issued.signing_key.serialize_pem()).unwrap();
    let service = stage.alone().tls(&certificate, &key).start().await;

    let mut roots = rustls::RootCertStore::empty();
    roots.add(issued.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut browser = Client::new(Target::Tls(service.address(), Arc::new(config)));
    browser.get("/api/health").await.expect(200);
    let answer = browser.sign_in("admin", stage.password()).await;
    answer.expect(200);
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    let attributes: Vec<&str> = cookie.split(';').skip(1).map(str::trim).collect();
    for attribute in [
        "Secure",
        "HttpOnly",
        "SameSite=Lax",
        "Path=/",
        "Max-Age=86400",
    ] {
        assert!(attributes.contains(&attribute), "{attribute}: {cookie}");
    }
    browser.get("/api/user/info").await.expect(200);

    // Somebody who speaks plainly gets no answer, and harms nobody.
    assert!(service.client().try_get("/api/health").await.is_err());
    browser.get("/api/health").await.expect(200);
}

#[tokio::test]
async fn certificate_and_key_that_do_not_belong_together_are_refused() {
    let stage = Stage::new();
    let paths = ["a.crt", "b.key"].map(|name| stage.path().join(name));
    let [first, second] =
        ["a", "b"].map(|name| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap());
    std::fs::write(&paths[0], first.cert.pem()).unwrap();
    std::fs::write(&paths[1], second.signing_key.serialize_pem()).unwrap();
    let refused = stage
        .alone()
        .tls(&paths[0], &paths[1])
        .run(&["serve"])
        .await;
    assert!(!refused.status.success());
    assert!(!refused.stdout.contains("address: "), "{}", refused.stdout);
    assert!(!refused.stderr.contains("panicked"), "{}", refused.stderr);
}
