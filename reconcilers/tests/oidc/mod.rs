//! The driver of identity providers against one that says what it is told to: tokens that prove nothing, keys that change,
//! descriptions that cannot be.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods // Real time-outs take real time.
)]

pub mod odd;
pub mod provider;
mod short_keys;
pub mod tls;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reconcilers::drivers::oidc::{
    IdentityProvider, OidcProvider, ProviderError, ProviderSettings, Returned,
};
use schema::clock::{Clock, ManualClock, SystemClock};
use schema::live::{PendingSignIn, ProvidedIdentity};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio_util::task::TaskTracker;

use provider::{CLIENT, DISCOVERY, Key, Op, SECRET, base64, header, now, ok, unsigned};

pub fn driver() -> OidcProvider {
    OidcProvider::new(Arc::new(SystemClock), TaskTracker::new())
}

pub fn returned() -> Returned {
    Returned {
        code: "c0de".into(),
        issuer: None,
    }
}

/// A whole sign-in, in which the provider issues the token that `issue` makes of a new one's claims.
async fn sign_in(
    driver: &OidcProvider,
    op: &Op,
    settings: &ProviderSettings,
    issue: impl FnOnce(&Op, Value, &PendingSignIn) -> String,
) -> Result<ProvidedIdentity, ProviderError> {
    let (_, pending) = driver.begin(settings, false).await?;
    let token = issue(op, op.claims(&pending.nonce), &pending);
    op.issues(&token);
    driver.finish(settings, &pending, &returned()).await
}

fn good(op: &Op, claims: Value, _: &PendingSignIn) -> String {
    op.key.token(&header(), &claims)
}

fn names(names: &[&str]) -> Option<BTreeSet<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[tokio::test]
async fn l18_the_browser_is_sent_with_state_nonce_and_challenge_and_the_code_redeemed_with_the_verifier()
 {
    let (op, driver) = (Op::new().await, driver());
    let settings = op.settings();
    let (address, pending) = driver.begin(&settings, false).await.unwrap();
    let query: Vec<(String, String)> = address.query_pairs().into_owned().collect();
    let value = |name: &str| {
        let found: Vec<_> = query.iter().filter(|(key, _)| key == name).collect();
        assert_eq!(found.len(), 1, "{name} in {address}");
        found[0].1.clone()
    };
    assert_eq!(value("response_type"), "code");
    assert_eq!(value("client_id"), CLIENT);
    assert_eq!(value("redirect_uri"), settings.redirect_url);
    assert_eq!(value("scope"), "openid profile email");
    assert_eq!(value("state"), pending.state);
    assert_eq!(value("nonce"), pending.nonce);
    assert_eq!(value("code_challenge_method"), "S256");
    let challenge = {
        use sha2::Digest;
        base64(Sha256::digest(&pending.verifier))
    };
    assert_eq!(value("code_challenge"), challenge);
    assert!(!address.as_str().contains(&pending.verifier));

    op.issues(&good(&op, op.claims(&pending.nonce), &pending));
    let alice = driver.finish(&settings, &pending, &returned()).await;
    let expected = ProvidedIdentity {
        subject: format!("{} 17", op.issuer()),
        name: "alice".to_owned(),
        groups: names(&["dev", "ops"]),
        ..ProvidedIdentity::default()
    };
    assert_eq!(alice.unwrap(), expected);
    let asked = op.server.asked();
    let redeemed = asked.iter().find(|asked| asked.path == "/token").unwrap();
    for part in ["grant_type=authorization_code", "code=c0de"] {
        assert!(redeemed.body.contains(part), "{}", redeemed.body);
    }
    let verifier = format!("code_verifier={}", pending.verifier);
    assert!(redeemed.body.contains(&verifier));
    // Each part is encoded by itself (RFC 6749 §2.3.1).
    let basic = STANDARD.encode("yard:a+secret+%26+more");
    let sent = redeemed.header("authorization");
    assert_eq!(sent, Some(format!("Basic {basic}").as_str()));
    assert!(!redeemed.body.contains("secret"));
    // No two are alike.
    let (_, another) = driver.begin(&settings, false).await.unwrap();
    assert_ne!(another.state, pending.state);
    assert_ne!(another.nonce, pending.nonce);
    assert_ne!(another.verifier, pending.verifier);
    assert!(!format!("{pending:?}").contains(&pending.verifier));
}

#[tokio::test]
async fn a_provider_that_knows_the_secret_in_the_body_only_gets_it_there_and_a_public_client_has_none()
 {
    let (op, driver) = (Op::new().await, driver());
    op.tell(|says| {
        says.more = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]});
    });
    let mut settings = op.settings();
    sign_in(&driver, &op, &settings, good).await.unwrap();
    settings.client_secret = None;
    sign_in(&driver, &op, &settings, good).await.unwrap();
    let asked = op.server.asked();
    let mut redeemed = asked.iter().filter(|asked| asked.path == "/token");
    let (with, without) = (redeemed.next().unwrap(), redeemed.next().unwrap());
    assert!(
        with.body.contains("client_secret=a+secret+%26+more"),
        "{}",
        with.body
    );
    assert!(!without.body.contains("client_secret"));
    for one in [with, without] {
        assert_eq!(one.header("authorization"), None);
        assert!(one.body.contains("client_id=yard"));
    }
}

/// A token that proves nothing, made of a good one's claims.
type Bad = fn(&Op, Value, &PendingSignIn) -> String;

/// With a claim changed, or taken away.
fn with(op: &Op, mut claims: Value, name: &str, value: Value) -> String {
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    op.key.token(&header(), &claims)
}

/// With a header changed.
fn headed(op: &Op, claims: &Value, name: &str, value: Value) -> String {
    let mut header = header();
    header[name] = value;
    op.key.token(&header, claims)
}

fn by_hash(secret: &[u8], claims: &Value) -> String {
    let header = json!({"alg": "HS256", "kid": "one", "typ": "JWT"});
    let text = unsigned(&header, claims);
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(text.as_bytes());
    let signature = base64(mac.finalize().into_bytes());
    format!("{text}.{signature}")
}

/// The parts of a good token.
fn parts(op: &Op, claims: &Value) -> (String, String, String) {
    let token = op.key.token(&header(), claims);
    let mut parts = token.split('.').map(str::to_owned);
    let mut part = || parts.next().unwrap();
    (part(), part(), part())
}

const BAD: &[(&str, Bad)] = &[
    ("alg none", |_, claims, _| {
        unsigned(&json!({"alg": "none"}), &claims) + "."
    }),
    ("alg none with a kid", |_, claims, _| {
        unsigned(&json!({"alg": "none", "kid": "one"}), &claims) + "."
    }),
    ("alg nOnE", |_, claims, _| {
        unsigned(&json!({"alg": "nOnE"}), &claims) + "."
    }),
    ("alg none and the signature left", |op, claims, _| {
        headed(op, &claims, "alg", json!("none"))
    }),
    ("no alg", |op, claims, _| {
        op.key.token(&json!({"kid": "one"}), &claims)
    }),
    ("alg is a number", |op, claims, _| {
        headed(op, &claims, "alg", json!(256))
    }),
    ("alg of another key", |op, claims, _| {
        headed(op, &claims, "alg", json!("RS256"))
    }),
    ("alg of a longer hash", |op, claims, _| {
        headed(op, &claims, "alg", json!("ES384"))
    }),
    ("signed with the client's secret", |_, claims, _| {
        by_hash(SECRET.as_bytes(), &claims)
    }),
    ("signed with the public key as a secret", |op, claims, _| {
        let jwk = op.key.jwk("one").to_string();
        by_hash(jwk.as_bytes(), &claims)
    }),
    ("signed with nothing as a secret", |_, claims, _| {
        by_hash(b"", &claims)
    }),
    ("no signature", |op, claims, _| {
        let (header, claims, _) = parts(op, &claims);
        format!("{header}.{claims}.")
    }),
    ("a signature of zeroes", |op, claims, _| {
        let (header, claims, _) = parts(op, &claims);
        format!("{header}.{claims}.{}", base64([0_u8; 64]))
    }),
    ("half a signature", |op, claims, _| {
        let (header, claims, signature) = parts(op, &claims);
        format!("{header}.{claims}.{}", &signature[..42])
    }),
    ("a signature with one bit changed", |op, claims, _| {
        let text = unsigned(&header(), &claims);
        let mut signature = op.key.sign(&text);
        signature[40] ^= 1;
        format!("{text}.{}", base64(signature))
    }),
    ("claims changed afterwards", |op, claims, _| {
        let (header, _, signature) = parts(op, &claims);
        let mut other = claims;
        other["preferred_username"] = json!("root");
        format!("{header}.{}.{signature}", base64(other.to_string()))
    }),
    ("header changed afterwards", |op, claims, _| {
        let (_, claims, signature) = parts(op, &claims);
        let header = json!({"alg": "ES256", "kid": "one"}).to_string();
        format!("{}.{claims}.{signature}", base64(header))
    }),
    ("another key under the same name", |_, claims, _| {
        Key::ecdsa().token(&header(), &claims)
    }),
    ("another key under another name", |_, claims, _| {
        Key::ecdsa().token(&json!({"alg": "ES256", "kid": "two"}), &claims)
    }),
    ("another key without a name", |_, claims, _| {
        Key::ecdsa().token(&json!({"alg": "ES256"}), &claims)
    }),
    ("a key of its own in jwk", |_, claims, _| {
        let key = Key::ecdsa();
        let header = json!({"alg": "ES256", "kid": "one", "jwk": key.jwk("one")});
        key.token(&header, &claims)
    }),
    ("keys of its own at jku", |op, claims, _| {
        let url = format!("{}/keys?evil", op.issuer());
        let header = json!({"alg": "ES256", "kid": "evil", "jku": url});
        Key::ecdsa().token(&header, &claims)
    }),
    ("a certificate of its own at x5u", |op, claims, _| {
        let url = format!("{}/evil", op.issuer());
        let header = json!({"alg": "ES256", "kid": "evil", "x5u": url});
        Key::ecdsa().token(&header, &claims)
    }),
    ("a certificate of its own in x5c", |_, claims, _| {
        let header = json!({"alg": "ES256", "x5c": ["MIIB"]});
        Key::ecdsa().token(&header, &claims)
    }),
    ("kid is a file", |_, claims, _| {
        let header = json!({"alg": "HS256", "kid": "../../../dev/null"});
        let text = unsigned(&header, &claims);
        let mac = Hmac::<Sha256>::new_from_slice(b"").unwrap();
        let signature = mac.chain_update(&text).finalize().into_bytes();
        format!("{text}.{}", base64(signature))
    }),
    ("kid is a statement", |_, claims, _| {
        let header = json!({"alg": "ES256", "kid": "x' UNION SELECT 'k"});
        Key::ecdsa().token(&header, &claims)
    }),
    ("kid is a number", |op, claims, _| {
        headed(op, &claims, "kid", json!(1))
    }),
    ("crit", |op, claims, _| {
        headed(op, &claims, "crit", json!(["exp"]))
    }),
    ("an access token", |op, claims, _| {
        headed(op, &claims, "typ", json!("at+jwt"))
    }),
    ("a token in a token", |op, claims, _| {
        headed(op, &claims, "cty", json!("JWT"))
    }),
    ("encrypted", |_, _, _| {
        let header = json!({"alg": "RSA-OAEP", "enc": "A256GCM"}).to_string();
        format!("{}.a.b.c.d", base64(header))
    }),
    ("another issuer", |op, claims, _| {
        with(op, claims, "iss", json!("https://evil.example"))
    }),
    ("the issuer with a slash", |op, claims, _| {
        let issuer = format!("{}/", op.issuer());
        with(op, claims, "iss", json!(issuer))
    }),
    ("the issuer in capitals", |op, claims, _| {
        let issuer = op.issuer().to_uppercase();
        with(op, claims, "iss", json!(issuer))
    }),
    ("no issuer", |op, claims, _| {
        with(op, claims, "iss", Value::Null)
    }),
    ("another audience", |op, claims, _| {
        with(op, claims, "aud", json!("another"))
    }),
    ("the audience in capitals", |op, claims, _| {
        with(op, claims, "aud", json!("YARD"))
    }),
    ("no audience", |op, claims, _| {
        with(op, claims, "aud", Value::Null)
    }),
    ("nobody as audience", |op, claims, _| {
        with(op, claims, "aud", json!([]))
    }),
    ("others as audience, too", |op, claims, _| {
        with(op, claims, "aud", json!(["yard", "another"]))
    }),
    (
        "others as audience, and issued to one of them",
        |op, mut claims, _| {
            claims["azp"] = json!("another");
            with(op, claims, "aud", json!(["yard", "another"]))
        },
    ),
    ("issued to another", |op, claims, _| {
        with(op, claims, "azp", json!("another"))
    }),
    ("expired", |op, claims, _| {
        with(op, claims, "exp", json!(now() - 1))
    }),
    ("expired before there was time", |op, claims, _| {
        with(op, claims, "exp", json!(-1))
    }),
    ("never expires", |op, claims, _| {
        with(op, claims, "exp", Value::Null)
    }),
    ("expires on a day that is a text", |op, claims, _| {
        with(op, claims, "exp", json!("tomorrow"))
    }),
    ("expires after the end of time", |op, claims, _| {
        with(op, claims, "exp", json!(1e300))
    }),
    ("issued in the future", |op, claims, _| {
        with(op, claims, "iat", json!(now() + 120))
    }),
    ("issued at no time", |op, claims, _| {
        with(op, claims, "iat", Value::Null)
    }),
    ("not valid yet", |op, claims, _| {
        with(op, claims, "nbf", json!(now() + 120))
    }),
    ("another nonce", |op, claims, _| {
        with(op, claims, "nonce", json!("another"))
    }),
    ("no nonce", |op, claims, _| {
        with(op, claims, "nonce", Value::Null)
    }),
    ("an empty nonce", |op, claims, _| {
        with(op, claims, "nonce", json!(""))
    }),
    ("the state as nonce", |op, claims, pending| {
        with(op, claims, "nonce", json!(pending.state))
    }),
    ("a list of nonces", |op, claims, pending| {
        with(op, claims, "nonce", json!([pending.nonce]))
    }),
    ("no subject", |op, claims, _| {
        with(op, claims, "sub", Value::Null)
    }),
    ("an empty subject", |op, claims, _| {
        with(op, claims, "sub", json!(""))
    }),
    ("a fraction as subject", |op, claims, _| {
        with(op, claims, "sub", json!(17.5))
    }),
    ("a list as subject", |op, claims, _| {
        with(op, claims, "sub", json!(["17"]))
    }),
    ("a subject that is too long", |op, claims, _| {
        with(op, claims, "sub", json!("s".repeat(256)))
    }),
    ("a subject with a control character", |op, claims, _| {
        with(op, claims, "sub", json!("a\u{0}b"))
    }),
    ("a subject that is not ASCII", |op, claims, _| {
        with(op, claims, "sub", json!("älice"))
    }),
    ("of another access token", |op, claims, _| {
        with(op, claims, "at_hash", json!(base64([1_u8; 16])))
    }),
    ("claims twice", |op, claims, _| {
        let text = claims.to_string();
        let text = text.replacen('{', "{\"sub\":\"1\",", 1);
        let text = format!("{}.{}", base64(header().to_string()), base64(text));
        let signature = base64(op.key.sign(&text));
        format!("{text}.{signature}")
    }),
    ("claims that are a list", |op, _, _| {
        op.key.token(&header(), &json!(["sub"]))
    }),
    ("claims that are no JSON", |op, _, _| {
        let text = format!("{}.{}", base64(header().to_string()), base64("sub"));
        let signature = base64(op.key.sign(&text));
        format!("{text}.{signature}")
    }),
    ("no token", |_, _, _| String::new()),
    ("a word", |_, _, _| "token".to_owned()),
    ("two parts", |op, claims, _| {
        let (header, claims, _) = parts(op, &claims);
        format!("{header}.{claims}")
    }),
    ("four parts", |op, claims, _| {
        let (header, claims, signature) = parts(op, &claims);
        format!("{header}.{claims}.{signature}.{signature}")
    }),
    ("padded parts", |op, claims, _| {
        let (header, claims, signature) = parts(op, &claims);
        format!("{header}==.{claims}.{signature}")
    }),
];

#[tokio::test]
async fn l18_tokens_that_prove_nothing_are_refused() {
    assert!(BAD.len() >= 40);
    let op = Op::new().await;
    let settings = op.settings();
    for (what, bad) in BAD {
        // Each has a driver of its own, which may ask for new keys.
        let driver = driver();
        sign_in(&driver, &op, &settings, good).await.unwrap();
        let refused = sign_in(&driver, &op, &settings, bad).await;
        match refused {
            Err(ProviderError::Token(_)) => {}
            // Not even a token.
            Err(ProviderError::Unreadable {
                what: "the token request",
                ..
            }) => {}
            other => panic!("{what}: {other:?}"),
        }
        let text = refused.unwrap_err().to_string();
        assert!(!text.contains("c0de") && !text.contains(SECRET), "{text}");
    }
    for path in ["/keys?evil", "/evil"] {
        assert_eq!(op.asked(path), 0, "a token leads nowhere");
    }
}

#[tokio::test]
async fn tokens_that_are_unusual_and_good_are_accepted() {
    let op = Op::new().await;
    let (driver, settings) = (driver(), op.settings());
    let unusual: &[(&str, Bad)] = &[
        ("no kid", |op, claims, _| {
            op.key.token(&json!({"alg": "ES256"}), &claims)
        }),
        ("further audiences, issued to us", |op, mut claims, _| {
            claims["azp"] = json!(CLIENT);
            with(op, claims, "aud", json!(["another", "yard"]))
        }),
        ("a list of one audience", |op, claims, _| {
            with(op, claims, "aud", json!(["yard"]))
        }),
        ("a clock that is ahead", |op, claims, _| {
            with(op, claims, "iat", json!(now() + 30))
        }),
        ("the hash of its access token", |op, claims, _| {
            use sha2::Digest;
            let hash = base64(&Sha256::digest("at")[..16]);
            with(op, claims, "at_hash", json!(hash))
        }),
        (
            "texts where others have flags and times",
            |op, mut claims, _| {
                claims["email_verified"] = json!("true");
                with(op, claims, "updated_at", json!("2026-01-02T03:04:05Z"))
            },
        ),
        ("the longest subject", |op, claims, _| {
            with(op, claims, "sub", json!("s".repeat(255)))
        }),
    ];
    for (what, token) in unusual {
        let accepted = sign_in(&driver, &op, &settings, token).await;
        assert_eq!(accepted.unwrap().name, "alice", "{what}");
    }
    let other = Key::ed25519();
    op.tell(|says| says.keys = json!([op.key.jwk("one"), other.jwk("ed")]));
    let driver = self::driver();
    let accepted = sign_in(&driver, &op, &settings, |_, claims, _| {
        other.token(&json!({"alg": "EdDSA", "kid": "ed"}), &claims)
    });
    assert_eq!(accepted.await.unwrap().name, "alice");
}

#[tokio::test]
async fn a_key_that_is_not_for_signing_signs_nothing() {
    let op = Op::new().await;
    let mut key = op.key.jwk("one");
    key["use"] = json!("enc");
    op.tell(|says| says.keys = json!([key]));
    let refused = sign_in(&driver(), &op, &op.settings(), good).await;
    assert!(
        matches!(refused, Err(ProviderError::Token(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn new_keys_are_asked_for_when_a_token_has_one_and_not_for_every_token_that_says_so() {
    let op = Op::new().await;
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let driver = OidcProvider::new(clock.clone(), TaskTracker::new());
    let settings = op.settings();
    sign_in(&driver, &op, &settings, good).await.unwrap();
    sign_in(&driver, &op, &settings, good).await.unwrap();
    assert_eq!((op.asked(DISCOVERY), op.asked("/keys")), (1, 1));

    // A new key under a new name, and one under the old name.
    for (n, id) in ["two", "two"].into_iter().enumerate() {
        let key = Key::ecdsa();
        op.tell(|says| says.keys = json!([key.jwk(id)]));
        let token = |_: &Op, claims: Value, _: &PendingSignIn| {
            key.token(&json!({"alg": "ES256", "kid": id}), &claims)
        };
        let accepted = sign_in(&driver, &op, &settings, token).await;
        assert_eq!(accepted.unwrap().name, "alice");
        assert_eq!(op.asked("/keys"), 2 + n);
        clock.advance(Duration::from_secs(10));
    }
    let known = op.asked(DISCOVERY);
    for _ in 0..20 {
        let forged = |_: &Op, claims: Value, _: &PendingSignIn| {
            Key::ecdsa().token(&json!({"alg": "ES256", "kid": "forged"}), &claims)
        };
        let refused = sign_in(&driver, &op, &settings, forged).await;
        assert!(
            matches!(refused, Err(ProviderError::Token(_))),
            "{refused:?}"
        );
    }
    assert_eq!(op.asked(DISCOVERY), known + 1, "once in ten seconds");

    // New keys that cannot be had leave those that are known.
    clock.advance(Duration::from_secs(10));
    op.tell(|says| says.discovery = Some(Some((503, vec![], vec![]))));
    let forged = |_: &Op, claims: Value, _: &PendingSignIn| {
        Key::ecdsa().token(&json!({"alg": "ES256", "kid": "forged"}), &claims)
    };
    let refused = sign_in(&driver, &op, &settings, forged).await;
    assert!(
        matches!(refused, Err(ProviderError::Token(_))),
        "{refused:?}"
    );
    assert!(driver.begin(&settings, false).await.is_ok());
    // An hour later they are good no longer.
    clock.advance(Duration::from_secs(60 * 60));
    assert!(driver.begin(&settings, false).await.is_err());
    assert!(driver.failing_since().is_some());
    op.tell(|says| says.discovery = None);
    clock.advance(Duration::from_secs(2));
    assert!(driver.begin(&settings, false).await.is_ok());
    assert_eq!(driver.failing_since(), None);
}

#[tokio::test]
async fn a_description_goes_on_when_nobody_waits_for_it() {
    let (op, driver) = (Op::new().await, driver());
    let settings = op.settings();
    op.tell(|says| says.discovery = Some(None));
    // Many come and go while the provider is frozen.
    for _ in 0..500 {
        let begin = driver.begin(&settings, false);
        assert!(
            tokio::time::timeout(Duration::from_millis(1), begin)
                .await
                .is_err()
        );
    }
    assert_eq!(op.asked(DISCOVERY), 1);
}

#[tokio::test]
async fn whoever_tries_again_is_asked_who_one_is() {
    let (op, driver) = (Op::new().await, driver());
    let (first, _) = driver.begin(&op.settings(), false).await.unwrap();
    let (again, _) = driver.begin(&op.settings(), true).await.unwrap();
    assert!(!first.as_str().contains("prompt"), "{first}");
    assert!(again.as_str().contains("prompt=login"), "{again}");
}

#[tokio::test]
async fn l66_groups_that_are_slow_to_come_hold_nobody_up() {
    let (op, driver) = (Op::new().await, driver());
    op.tell(|says| says.user_info = None);
    let groupless =
        |op: &Op, claims: Value, _: &PendingSignIn| with(op, claims, "groups", Value::Null);
    let begun = Instant::now();
    let alice = sign_in(&driver, &op, &op.settings(), groupless)
        .await
        .unwrap();
    assert_eq!(alice.groups, None);
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn l18_however_many_sign_in_the_description_is_asked_for_once() {
    let (op, driver) = (Op::new().await, driver());
    let settings = op.settings();
    let begun = futures::future::join_all((0..50).map(|_| driver.begin(&settings, false))).await;
    assert!(begun.iter().all(Result::is_ok));
    assert_eq!((op.asked(DISCOVERY), op.asked("/keys")), (1, 1));
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_not_redeemed() {
    let op = Op::new().await;
    let settings = op.settings();
    let finish = async |driver: &OidcProvider, issuer: Option<&str>| {
        let (_, pending) = driver.begin(&settings, false).await.unwrap();
        op.issues(&good(&op, op.claims(&pending.nonce), &pending));
        let returned = Returned {
            issuer: issuer.map(str::to_owned),
            ..returned()
        };
        driver.finish(&settings, &pending, &returned).await
    };
    let first = driver();
    assert!(finish(&first, None).await.is_ok());
    assert!(finish(&first, Some(&op.issuer())).await.is_ok());
    let redeemed = op.asked("/token");
    for wrong in ["https://evil.example", ""] {
        let refused = finish(&first, Some(wrong)).await;
        assert!(
            matches!(refused, Err(ProviderError::Token(_))),
            "{refused:?}"
        );
    }
    // A provider that always says so has said nothing here.
    op.tell(|says| says.more = json!({"authorization_response_iss_parameter_supported": true}));
    let second = driver();
    let refused = finish(&second, None).await;
    assert!(
        matches!(refused, Err(ProviderError::Token(_))),
        "{refused:?}"
    );
    assert_eq!(op.asked("/token"), redeemed, "the code was not given away");
    assert!(finish(&second, Some(&op.issuer())).await.is_ok());
}

#[tokio::test]
async fn what_the_token_leaves_out_is_asked_for_at_user_info() {
    let (op, driver) = (Op::new().await, driver());
    let settings = op.settings();
    let bare = |op: &Op, mut claims: Value, _: &PendingSignIn| {
        claims.as_object_mut().unwrap().remove("groups");
        with(op, claims, "preferred_username", Value::Null)
    };
    let nobody = sign_in(&driver, &op, &settings, bare).await;
    assert!(
        matches!(nobody, Err(ProviderError::Status { status: 404, .. })),
        "{nobody:?}"
    );
    let info = json!({"sub": "17", "preferred_username": "alice", "groups": ["dev"]});
    op.tell(|says| says.user_info = ok(&info));
    let alice = sign_in(&driver, &op, &settings, bare).await.unwrap();
    assert_eq!((&*alice.name, alice.groups), ("alice", names(&["dev"])));
    // What the token says counts.
    let info = json!({"sub": "17", "preferred_username": "root", "groups": ["dev"]});
    op.tell(|says| says.user_info = ok(&info));
    let groupless =
        |op: &Op, claims: Value, _: &PendingSignIn| with(op, claims, "groups", Value::Null);
    let alice = sign_in(&driver, &op, &settings, groupless).await.unwrap();
    assert_eq!((&*alice.name, alice.groups), ("alice", names(&["dev"])));
    // Somebody else's is nobody's.
    let info = json!({"sub": "18", "preferred_username": "root", "groups": ["admins"]});
    op.tell(|says| says.user_info = ok(&info));
    let other = sign_in(&driver, &op, &settings, bare).await;
    assert!(matches!(other, Err(ProviderError::Token(_))), "{other:?}");
    let alice = sign_in(&driver, &op, &settings, groupless).await.unwrap();
    assert_eq!(alice.groups, None, "L16: not known is not none");
    let said = &alice.left_out[0];
    assert!(said.contains("the subject of user info"), "{said}");
    // It names nobody.
    op.tell(|says| says.user_info = ok(&json!({"sub": "17"})));
    let nameless = sign_in(&driver, &op, &settings, bare).await;
    assert_eq!(
        nameless,
        Err(ProviderError::NoName("preferred_username".to_owned()))
    );
    // An access token that no header can hold.
    let (_, pending) = driver.begin(&settings, false).await.unwrap();
    let token = bare(&op, op.claims(&pending.nonce), &pending);
    let tokens = json!({"access_token": "a\nb", "token_type": "Bearer", "id_token": token});
    op.tell(|says| says.token = ok(&tokens));
    let odd = driver.finish(&settings, &pending, &returned()).await;
    assert!(
        matches!(odd, Err(ProviderError::Unreadable { .. })),
        "{odd:?}"
    );
}

#[tokio::test]
async fn an_address_that_is_not_verified_names_nobody() {
    let (op, driver) = (Op::new().await, driver());
    let settings = ProviderSettings {
        username_claim: "email".to_owned(),
        ..op.settings()
    };
    let verified = |is: Value| {
        move |op: &Op, mut claims: Value, _: &PendingSignIn| {
            claims["email"] = json!("alice@example.org");
            with(op, claims, "email_verified", is)
        }
    };
    // Nor does the word of another answer, which may speak of another address.
    let info = json!({"sub": "17", "email": "root@example.org", "email_verified": true});
    op.tell(|says| says.user_info = ok(&info));
    for (is, name) in [
        (json!(true), Some("alice@example.org")),
        (json!("true"), Some("alice@example.org")),
        (json!("True"), Some("alice@example.org")),
        (json!(1), Some("alice@example.org")),
        (Value::Null, None),
        (json!(false), None),
        (json!("False"), None),
        (json!(0), None),
        (json!("yes"), None),
        (json!([true]), None),
    ] {
        let groupless = |op: &Op, mut claims: Value, pending: &PendingSignIn| {
            claims.as_object_mut().unwrap().remove("groups");
            verified(is.clone())(op, claims, pending)
        };
        let signed_in = sign_in(&driver, &op, &settings, groupless).await;
        if let Err(error) = &signed_in {
            let said = match is {
                Value::Null => "does not send the claim email_verified, which".to_owned(),
                _ => format!("email needs to be a user name, but as {is};"),
            };
            assert!(error.to_string().contains(&said), "{error}");
        }
        let found = signed_in.ok().map(|identity| identity.name);
        assert_eq!(found.as_deref(), name, "{is}");
    }
    let nameless =
        |op: &Op, claims: Value, _: &PendingSignIn| with(op, claims, "email_verified", json!(true));
    let root = sign_in(&driver, &op, &settings, nameless).await.unwrap();
    assert_eq!(root.name, "root@example.org");
    op.tell(|says| says.user_info = ok(&json!({"sub": "17", "email": "root@example.org"})));
    let root = sign_in(&driver, &op, &settings, nameless).await;
    assert!(matches!(root, Err(ProviderError::NoName(_))), "{root:?}");
}

#[tokio::test]
async fn what_the_token_endpoint_refuses_says_whose_fault_it_is() {
    let (op, driver) = (Op::new().await, driver());
    let settings = op.settings();
    let finish = async |status: u16, body: &str| {
        let kind = ("content-type", "application/json".to_owned());
        let answer = Some((status, vec![kind], body.as_bytes().to_vec()));
        op.tell(|says| says.token = answer);
        let (_, pending) = driver.begin(&settings, false).await.unwrap();
        let failed = driver.finish(&settings, &pending, &returned()).await;
        let failed = failed.unwrap_err();
        assert!(!failed.to_string().contains("hunter2"), "{failed}");
        failed
    };
    let used = finish(
        400,
        r#"{"error":"invalid_grant","error_description":"used\nup"}"#,
    )
    .await;
    assert_eq!(
        used,
        ProviderError::Code("invalid_grant: usedup".to_owned())
    );
    let client = finish(401, r#"{"error":"invalid_client"}"#).await;
    assert!(
        client
            .to_string()
            .contains("check oidc.client_id and oidc.client_secret")
    );
    let empty = finish(401, "").await;
    assert!(matches!(empty, ProviderError::Client(..)), "{empty:?}");
    let spent = finish(200, r#"{"error":"invalid_grant"}"#).await;
    assert!(matches!(spent, ProviderError::Code(_)), "{spent:?}");
    let asked = op.asked("/token");
    let spent = finish(401, r#"{"error":"invalid_grant"}"#).await;
    assert!(matches!(spent, ProviderError::Code(_)), "{spent:?}");
    assert_eq!(op.asked("/token"), asked + 1);
    let garbled = finish(400, r#"{"error":"invalid_request"}"#).await;
    assert!(matches!(garbled, ProviderError::Code(_)), "{garbled:?}");
    let odd = finish(400, r#"{"error":"invalid_scope"}"#).await;
    assert!(matches!(odd, ProviderError::Client(..)), "{odd:?}");
    for (status, body) in [
        (200, ""),
        (200, "hunter2"),
        (200, r#"{"token":"hunter2"}"#),
        (200, "[]"),
        (500, "<html>hunter2"),
        (400, r#"{"error":{"is":"hunter2"}}"#),
    ] {
        let unreadable = finish(status, body).await;
        let of_token = matches!(
            unreadable,
            ProviderError::Unreadable {
                what: "the token request",
                ..
            }
        );
        assert!(of_token, "{status} {body}: {unreadable:?}");
    }
    // No ID token at all.
    let plain = finish(200, r#"{"access_token":"hunter2","token_type":"Bearer"}"#).await;
    assert!(matches!(plain, ProviderError::Token(_)), "{plain:?}");
    let large = format!("{{\"access_token\":\"{}\"}}", "a".repeat(1024 * 1024));
    let large = finish(200, &large).await;
    assert!(matches!(large, ProviderError::TooLarge(_)), "{large:?}");
}

#[tokio::test]
async fn a_description_that_cannot_be_says_what_to_set() {
    let op = Op::new().await;
    let kind = |kind: &str| vec![("content-type", kind.to_owned())];
    let metadata = |issuer: &str| {
        json!({
            "issuer": issuer, "authorization_endpoint": "http://x/a", "jwks_uri": "http://x/k",
            "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        })
    };
    let slash = format!("{}/", op.issuer());
    let moved = vec![("location", "http://127.0.0.1:1/elsewhere".to_owned())];
    let large = vec![b' '; 2 * 1024 * 1024];
    for (answer, said) in [
        (ok(&metadata(&slash)), "calls itself something else"),
        (
            ok(&metadata("https://evil.example")),
            "calls itself something else",
        ),
        (
            Some((404, vec![], vec![])),
            "answers 404 to the discovery request",
        ),
        (
            Some((500, vec![], vec![])),
            "answers 500 to the discovery request",
        ),
        (
            Some((302, moved, vec![])),
            "redirects /.well-known/openid-configuration",
        ),
        (
            Some((200, kind("text/html"), b"<html>".to_vec())),
            "can't be read",
        ),
        (
            Some((200, kind("application/json"), b"{".to_vec())),
            "can't be read",
        ),
        (ok(&json!({})), "can't be read"),
        (ok(&json!([])), "can't be read"),
        (
            Some((200, kind("application/json"), large)),
            "more than 1048576 bytes",
        ),
        (None, "has not answered within 4 s"),
    ] {
        op.tell(|says| says.discovery = Some(answer));
        let begun = Instant::now();
        let failed = driver().begin(&op.settings(), false).await.unwrap_err();
        assert!(failed.to_string().contains(said), "{failed} is not {said}");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    let nobody = ProviderSettings {
        issuer: "http://127.0.0.1:9".to_owned(),
        ..op.settings()
    };
    let failed = driver().begin(&nobody, false).await.unwrap_err();
    assert!(
        matches!(failed, ProviderError::Unreachable(_)),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_provider_that_is_away_is_asked_again_soon_and_not_by_everybody() {
    let (op, driver) = (Op::new().await, driver());
    let settings = op.settings();
    op.tell(|says| says.discovery = Some(Some((503, vec![], vec![]))));
    for _ in 0..20 {
        assert!(driver.begin(&settings, false).await.is_err());
    }
    assert_eq!(op.asked(DISCOVERY), 1);
    op.tell(|says| says.discovery = None);
    let begun = Instant::now();
    while driver.begin(&settings, false).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(op.asked(DISCOVERY), 2);
}

#[tokio::test]
async fn a_check_says_which_setting_is_wrong() {
    let op = Op::new().await;
    let check = async |settings: &ProviderSettings| {
        let steps = driver().check(settings).await;
        let steps = steps
            .into_iter()
            .map(|step| (step.name, step.ok, step.detail));
        steps.collect::<Vec<_>>()
    };
    let refuses = |code: &str, status: u16| {
        let kind = ("content-type", "application/json".to_owned());
        let body = json!({ "error": code }).to_string();
        op.tell(|says| says.token = Some((status, vec![kind], body.into_bytes())));
    };
    refuses("invalid_grant", 400);
    let good = check(&op.settings()).await;
    let named: Vec<_> = good.iter().map(|(name, ok, _)| (*name, *ok)).collect();
    assert_eq!(
        named,
        [("discovery", true), ("redirect", true), ("client", true)]
    );
    refuses("invalid_client", 401);
    let secret = check(&op.settings()).await;
    assert!(
        !secret[2].1 && secret[2].2.contains("oidc.client_secret"),
        "{secret:?}"
    );
    op.tell(|says| says.authorize = Some((400, vec![], vec![])));
    let redirect = check(&op.settings()).await;
    assert!(
        !redirect[1].1 && redirect[1].2.contains("oidc.redirect_url"),
        "{redirect:?}"
    );
    op.tell(|says| says.keys = json!([]));
    let keyless = check(&op.settings()).await;
    assert_eq!(keyless.len(), 1);
    assert!(
        !keyless[0].1 && keyless[0].2.contains("no key"),
        "{keyless:?}"
    );
    let slash = ProviderSettings {
        issuer: format!("{}/", op.issuer()),
        ..op.settings()
    };
    let other = check(&slash).await;
    assert!(
        other[0].2.contains("calls itself something else"),
        "{other:?}"
    );
}
