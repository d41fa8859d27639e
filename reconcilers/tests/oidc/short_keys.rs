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
MIICXAIBAAKBgQDI0/M3y/+PsXZ/SmneK9z/CcVR6yimRQ09AZYWjEbpNfP/7GU5
vYWuaB7KDLaFdZbrmq9xOMvUQ81pJ9aobnzTE/EPkWqy1Rj8YBsz6tg8oJ+99By1
WuqgaktxAy53OS9cZl4iv5PzGuxzVB2Q5hBVUJ4UbFu6XmPw6JnRmqi8wQIDAQAB
AoGAZNHq51cVbIj16T9tWKkCoFLCaba5yIcf90GFnLo9mzSH0zJVOyCHLSB+XIb3
VpbK9mrIqvmNcnm7dJAYdqRJKza+40whjVWF1WuGSijjyCntqWdf+meFpjJSJ8ns
R/X3waNu3ryNX33A4k+TfUmpwPA9qDIz1rzF1t0K2d1kgqUCQQDnzt2fdEBTBiU0
rxrdyFbnpf0fRSfCRvwq+Y/46DnOtWzRNJSeSHPwx0ZKpY2dUTQvLvSb8bsXbVha
Z44rp217AkEA3clmH7U3W2K0TO/ax2hjqrDx0d3hdn8C3w8yG+HOAb1UWBYAHATC
k9iYeuiKoc6B8thXnLekt9Yo/Fxd3wwj8wJAah9PYLeE1z2B/PuJLi2Qc56PIiiz
ygJbYYU8/zO5e0OdnK0YuNnskjd4m6XtDi9l15AElfv1rgT2JPUxphSRTwJBAM8w
3p6whE5zH0zgpdmzw6gqNT6BsacpcF1BrOYvRGyLmsfPhbqnF79WkNwBccFHUk6z
nOVjChZTk2ZuQ6Oji9ECQElJPCgcC4d32YOyzgpJvcS6pGHKd2B/zZwD2YMkRURb
AJFGw+1UA4Jp9MmXnA/JCPiaD/Gcpbrbp0Rqr16tss0=
-----END RSA PRIVATE KEY-----
";

#[tokio::test]
async fn rsa_key_of_1024_bits_is_refused() {
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
