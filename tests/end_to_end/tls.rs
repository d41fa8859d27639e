//! The service speaks TLS itself.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair};

use crate::support::client::Target;
use crate::support::{Client, Service, Stage, seconds, until};

fn issue(name: &str) -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed([name.to_owned()]).unwrap()
}

/// Puts certificate and key in place of those that are there.
fn install(issued: &CertifiedKey<KeyPair>, certificate: &Path, key: &Path) {
    std::fs::write(certificate, issued.cert.pem()).unwrap();
    std::fs::write(key, issued.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A browser that trusts this certificate alone.
fn browser(service: &Service, trusted: &CertifiedKey<KeyPair>) -> Client {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::new(Target::Tls(service.address(), Arc::new(config)))
}

#[tokio::test]
async fn with_certificate_and_key_everything_goes_over_tls() {
    let stage = Stage::new();
    let certificate = stage.path().join("server.crt");
    let key = stage.path().join("server.key");
    let issued = issue("localhost");
    install(&issued, &certificate, &key);
    let service = stage.alone().tls(&certificate, &key).start().await;
    let mut browser_of_first = browser(&service, &issued);
    let browser = |trusted| browser(&service, trusted);
    browser_of_first.get("/api/health").await.expect(200);
    let answer = browser_of_first.sign_in("admin", stage.password()).await;
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
    browser_of_first.get("/api/user/info").await.expect(200);
    let plain = service.client().post("/api/login", &[]).await;
    plain.refused(400, "https_required");

    // A renewed certificate is for new connections; an open stream goes on.
    let mut stream = browser_of_first.stream("/api/admin/watch").await;
    stream.next().await.unwrap().unwrap();
    let renewed = issue("localhost");
    install(&renewed, &certificate, &key);
    service.hang_up();
    until("the new certificate is served", seconds(4), async || {
        browser(&renewed).try_get("/api/health").await.is_ok()
    })
    .await;
    assert!(browser(&issued).try_get("/api/health").await.is_err());
    stream.next().await.unwrap().unwrap();
}

#[tokio::test]
async fn certificate_and_key_that_do_not_belong_together_are_refused() {
    let stage = Stage::new();
    let paths = ["a.crt", "b.key"].map(|name| stage.path().join(name));
    install(&issue("a"), &paths[0], &paths[1]);
    let other = issue("b").signing_key;
    std::fs::write(&paths[1], other.serialize_pem()).unwrap();
    let refused = stage
        .alone()
        .tls(&paths[0], &paths[1])
        .run(&["serve"])
        .await;
    assert!(!refused.status.success());
    assert!(!refused.stdout.contains("address: "), "{}", refused.stdout);
    assert!(!refused.stderr.contains("panicked"), "{}", refused.stderr);
}
