//! RSA keys that are too short to prove anything.

use openidconnect::core::{CoreJwsSigningAlgorithm, CoreRsaPrivateSigningKey};
use openidconnect::{JsonWebKeyId, PrivateSigningKey};
use reconcilers::drivers::oidc::IdentityProvider;
use serde_json::json;

use super::provider::{Op, base64, unsigned};
use super::{driver, sign_in};

/// 1,024 bits, made for this test.
const SHORT: &str = "\
-----BEGIN RSA PRIVATE KEY-----
MIICXAIBAAKBgQCpleOMmKHz7iDtci/CgUqZB76Vr9LRHmx3F9V88INnvpWjGG7+
O9JpdQHUTgrjMJZLiGwLR1S261D3EduqXSOQA0jto7/xQnqjRMhjvqqegWZ7INxJ
wCELTJF1PJAjdEU3sUvbZhn336rC7AJRMrHWwD5vHlYYgTiwgt7TkiWpJwIDAQAB
AoGAY/HSianqyLgu78G8JAXO0SGfUNiuhlBH3GhPibK1vw6zYcuknnDjMQOkcFsO
T5by/NEJ3BvN8X/9157OtzjtG50GQkoaIuF7/0lUY45Pwa1qJOhJHdR0jr0aEdep
N5TrcbOHGphREI5zZ7Of1YrNhDydKwSHkpkgSyHBw27seQECQQDZGfvF82gKyX5e
aTdP6PBTxK7nDYQos7alMFLWaSGhBxgGMTKh7g2C+MPF6bmTXGArOSowrGUwYDKQ
aP355hbTAkEAx/hwzbQPFEeD4jYnUw5aa0YNAUwUgeIsqadzg6qeJwAl03M4yIxc
QssW22NmxRERjqX8ze/2i67klomGX00X3QJBALUmNSrq+vllP4hPitOmrkF3b+lj
Ic9EhTY4qCY3+tN+M9GW44SyOZv7Ln/JkgsfnS7zt/x9HMHMwuQ0dxc5ofkCQDzV
PnPFgATaUKujb8kbh7Q0pkYrv91XUeD2mPSIFf6lU9yEo9SWpoaHQ9fP4Ha43492
vXZktqr9tHp7Mc6SJF0CQDOqvy5aRO197hnCBEVEifkaLKTyYZ2ruz1r6ii6XpTb
lbOgcGZ6VjdgyGFT/pD3jb+S2TW2hwJMFTR3WIiNiJo=
-----END RSA PRIVATE KEY-----
";

#[tokio::test]
async fn rsa_key_of_1024_bits_signs_nobody_in() {
    let op = Op::new().await;
    let id = JsonWebKeyId::new("short".to_owned());
    let key = CoreRsaPrivateSigningKey::from_pem(SHORT, Some(id)).unwrap();
    let public = serde_json::to_value(key.as_verification_key()).unwrap();
    op.tell(|says| says.keys = json!([public]));
    let (driver, settings) = (driver(), op.settings());
    let refused = sign_in(&driver, &op, &settings, |_, claims, _| {
        let text = unsigned(&json!({"alg": "RS256", "kid": "short"}), &claims);
        let algorithm = CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256;
        let signature = key.sign(&algorithm, text.as_bytes()).unwrap();
        format!("{text}.{}", base64(signature))
    });
    let said = refused.await.unwrap_err().to_string();
    let steps = driver.check(&settings).await;
    assert!(!steps[0].ok, "{steps:?}");
    for said in [&said, &steps[0].detail] {
        assert!(said.contains("has 1024 bits"), "{said}");
        assert!(said.contains("new key of 2048 bits or more"), "{said}");
    }
}
