//! Answers of real providers: numbers as texts, lists, descriptions without members, paths among the groups. The shapes are
//! those of `tests/cases/oidc`.

use kit::http::{Answer, Asked, Scripted};
use reconcilers::drivers::oidc::{IdentityProvider, OidcProvider, ProviderError, ProviderSettings};
use schema::live::ProvidedIdentity;
use serde_json::{Value, json};

use super::provider::{CLIENT, Op, header, now, ok};
use super::{driver, names, returned, sign_in};

fn case(name: &str) -> String {
    let path = format!("{}/tests/cases/oidc/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// Signs in with these claims besides those that all ID tokens have, and none of the provider's own.
pub async fn with_claims(
    driver: &OidcProvider,
    op: &Op,
    settings: &ProviderSettings,
    claims: &Value,
) -> Result<ProvidedIdentity, ProviderError> {
    sign_in(driver, op, settings, |op, all, _| {
        let mut all = all;
        for name in ["preferred_username", "groups"] {
            all.as_object_mut().unwrap().remove(name);
        }
        for (name, value) in claims.as_object().unwrap() {
            // The provider fills these in.
            if !["iss", "aud", "exp", "iat", "nbf", "nonce"].contains(&name.as_str()) {
                all[name] = value.clone();
            }
        }
        op.key.token(&header(), &all)
    })
    .await
}

#[tokio::test]
async fn recorded_shapes_of_providers_are_taken() {
    let op = Op::new().await;
    let (driver, settings) = (driver(), op.settings());
    let mut seen = Vec::new();
    for line in case("shapes.jsonl").lines() {
        let shape: Value = serde_json::from_str(line).unwrap();
        let what = shape["provider"].as_str().unwrap().to_owned();
        if let Some(body) = shape["body"].as_object() {
            let (_, pending) = driver.begin(&settings, false).await.unwrap();
            let mut body = body.clone();
            let token = op.key.token(&header(), &op.claims(&pending.nonce));
            body.insert("id_token".to_owned(), json!(token));
            op.tell(|says| says.token = ok(&Value::Object(body)));
            let alice = driver.finish(&settings, &pending, &returned()).await;
            assert_eq!(alice.unwrap().name, "alice", "{what}");
        } else {
            let found = with_claims(&driver, &op, &settings, &shape["claims"]).await;
            let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
            match what.as_str() {
                "Microsoft Entra ID v2, work account" => {
                    assert_eq!((&*found.name, found.groups), ("ann@example.org", None));
                }
                // The rule for names refuses this one when the account is made, by name.
                "Microsoft Entra ID v2, guest" => {
                    assert_eq!(found.name, "ann_gmail.com#EXT#@example.onmicrosoft.com");
                }
                "Microsoft Entra ID, more than 200 groups" => {
                    assert_eq!(found.groups, None);
                    let said = &found.left_out[0];
                    for part in [
                        "too many groups",
                        "stay as they are",
                        "oidc.groups_claim=roles",
                    ] {
                        assert!(said.contains(part), "{said}");
                    }
                }
                "Keycloak, mapper with full path" => {
                    let expected = [
                        "engineering",
                        "engineering:platform",
                        "harbor.admin",
                        "test:lead",
                    ];
                    assert_eq!(found.groups, names(&expected));
                    assert_eq!(found.left_out, Vec::<String>::new());
                    assert_eq!(found.renamed.len(), 2, "{:?}", found.renamed);
                    // The roles of the same token, by their paths.
                    for (path, expected) in [
                        ("realm_access.roles", vec!["dev", "offline_access"]),
                        ("resource_access.agentyard.roles", vec!["user"]),
                    ] {
                        let settings = ProviderSettings {
                            groups_claim: path.to_owned(),
                            ..settings.clone()
                        };
                        let found = with_claims(&driver, &op, &settings, &shape["claims"]).await;
                        assert_eq!(found.unwrap().groups, names(&expected), "{path}");
                    }
                }
                other => panic!("{other}"),
            }
        }
        seen.push(what);
    }
    assert_eq!(seen.len(), 6);
}

#[tokio::test]
async fn unused_claims_may_have_any_form() {
    let op = Op::new().await;
    let (driver, settings) = (driver(), op.settings());
    let odd = [
        "name",
        "given_name",
        "family_name",
        "nickname",
        "profile",
        "picture",
        "website",
        "email",
        "gender",
        "birthdate",
        "zoneinfo",
        "locale",
        "phone_number",
        "phone_number_verified",
        "address",
        "updated_at",
        "auth_time",
        "acr",
        "amr",
        "c_hash",
        "email_verified",
        "at_all",
    ];
    for value in [
        json!(1),
        json!("text"),
        json!(["list"]),
        json!({"an": "object"}),
        json!(true),
        Value::Null,
    ] {
        let mut claims = json!({"preferred_username": "ann"});
        for name in odd {
            claims[name] = value.clone();
        }
        let ann = with_claims(&driver, &op, &settings, &claims).await;
        assert_eq!(
            ann.unwrap_or_else(|error| panic!("{value}: {error}")).name,
            "ann"
        );
        // So may those of user info, which may write the subject as a number.
        claims["sub"] = json!(17);
        op.tell(|says| says.user_info = ok(&claims));
        let ann = with_claims(&driver, &op, &settings, &json!({})).await;
        assert_eq!(
            ann.unwrap_or_else(|error| panic!("{value}: {error}")).name,
            "ann"
        );
    }
    // Times as texts, a name that is a number, and one in a list.
    let ann = sign_in(&driver, &op, &settings, |op, mut claims, _| {
        for (name, time) in [("exp", now() + 300), ("iat", now()), ("nbf", now())] {
            claims[name] = json!(time.to_string());
        }
        claims["preferred_username"] = json!([4711]);
        op.key.token(&header(), &claims)
    });
    assert_eq!(ann.await.unwrap().name, "4711");
}

#[tokio::test]
async fn claims_split_between_token_and_user_info_are_united() {
    let op = Op::new().await;
    let driver = driver();
    let settings = ProviderSettings {
        groups_claim: "resource_access.agentyard.roles".to_owned(),
        ..op.settings()
    };
    let ann = |mut claims: Value| {
        claims["sub"] = json!("17");
        claims["preferred_username"] = json!("ann");
        claims
    };
    let dev = json!({"resource_access": {"agentyard": {"roles": ["dev"]}}});
    let null = json!({"resource_access": {"agentyard": {"roles": null}}});
    let account = json!({"resource_access": {"account": {"roles": ["view"]}}});
    for (what, token, info, expected) in [
        (
            "another client's",
            ann(account),
            ann(dev.clone()),
            Some("dev"),
        ),
        (
            "roles that are null",
            ann(null.clone()),
            ann(dev.clone()),
            Some("dev"),
        ),
        (
            "null in place of all",
            ann(json!({"resource_access": null})),
            ann(dev.clone()),
            Some("dev"),
        ),
        ("null in both", ann(null.clone()), ann(null), None),
        (
            "a text in place of all",
            ann(json!({"resource_access": "x"})),
            ann(dev.clone()),
            None,
        ),
        // The token counts where both have the claim; user info is asked for the name.
        (
            "both",
            dev,
            ann(json!({"resource_access": {"agentyard": {"roles": ["ops"]}}})),
            Some("dev"),
        ),
    ] {
        op.tell(|says| says.user_info = ok(&info));
        let found = with_claims(&driver, &op, &settings, &token).await;
        let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(
            found.groups,
            expected.and_then(|name| names(&[name])),
            "{what}"
        );
    }
}

#[tokio::test]
async fn subjects_read_alike_in_token_and_user_info() {
    let op = Op::new().await;
    let (driver, settings) = (driver(), op.settings());
    for (token, info, subject) in [
        (json!("17"), json!("17"), Some("17")),
        (json!(17), json!("17"), Some("17")),
        (json!("17"), json!(17), Some("17")),
        (json!(17), json!(17), Some("17")),
        (json!(" 17 "), json!(" 17 "), Some(" 17 ")),
        (json!("17"), json!(" 17 "), None),
        (json!(" 17 "), json!("17"), None),
        (json!("17"), json!(["17"]), None),
        (json!(17), json!(17.5), None),
    ] {
        op.tell(|says| says.user_info = ok(&json!({"sub": info, "preferred_username": "ann"})));
        let found = with_claims(&driver, &op, &settings, &json!({"sub": token})).await;
        match subject {
            Some(subject) => {
                let expected = format!("{} {subject}", op.issuer());
                assert_eq!(found.unwrap().subject, expected, "{token} {info}");
            }
            None => assert!(
                matches!(found, Err(ProviderError::Token(_))),
                "{token} {info}: {found:?}"
            ),
        }
    }
}

#[tokio::test]
async fn token_answers_of_any_form_are_taken() {
    let op = Op::new().await;
    let (driver, settings) = (driver(), op.settings());
    let json = || vec![("content-type", "application/json".to_owned())];
    let kind = |kind: &str| vec![("content-type", kind.to_owned())];
    for (what, status, headers, change) in [
        (
            "a life time as text",
            200,
            json(),
            json!({"expires_in": "3599"}),
        ),
        (
            "a fraction of it",
            200,
            json(),
            json!({"expires_in": 3599.5}),
        ),
        ("none of it", 200, json(), json!({"expires_in": null})),
        (
            "a list of scopes",
            200,
            json(),
            json!({"scope": ["openid"]}),
        ),
        ("no scopes", 200, json(), json!({"scope": null})),
        ("no kind of token", 200, json(), json!({"token_type": null})),
        ("an unknown kind", 200, json(), json!({"token_type": 7})),
        (
            "no access token",
            200,
            json(),
            json!({"access_token": null}),
        ),
        (
            "an odd refresh token",
            200,
            json(),
            json!({"refresh_token": false}),
        ),
        ("status 201", 201, json(), json!({})),
        (
            "plain text",
            200,
            kind("text/plain; charset=utf-8"),
            json!({}),
        ),
        ("no content type", 200, vec![], json!({})),
        ("a byte order mark", 200, json(), json!({"bom": true})),
    ] {
        let (_, pending) = driver.begin(&settings, false).await.unwrap();
        let token = op.key.token(&header(), &op.claims(&pending.nonce));
        let mut body = json!({
            "access_token": "at", "token_type": "Bearer", "id_token": token, "expires_in": 300, "scope": "openid",
        });
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        let mark: &[u8] = if body["bom"].is_null() {
            b""
        } else {
            b"\xef\xbb\xbf"
        };
        let body = [mark, body.to_string().as_bytes()].concat();
        op.tell(|says| says.token = Some((status, headers, body)));
        let alice = driver.finish(&settings, &pending, &returned()).await;
        assert_eq!(
            alice.unwrap_or_else(|error| panic!("{what}: {error}")).name,
            "alice"
        );
    }
}

#[tokio::test]
async fn descriptions_need_only_what_a_sign_in_uses() {
    let op = Op::new().await;
    let settings = op.settings();
    let recorded = |name: &str| {
        let text = case(name);
        let document: Value = serde_json::from_str(&text).unwrap();
        let issuer = document["issuer"].as_str().unwrap();
        text.replace(issuer, &op.issuer())
    };
    let kind = |kind: &str| vec![("content-type", kind.to_owned())];
    let least = json!({
        "issuer": op.issuer(), "authorization_endpoint": format!("{}/authorize", op.issuer()),
        "token_endpoint": format!("{}/token", op.issuer()), "jwks_uri": format!("{}/keys", op.issuer()),
    });
    let mut odd = least.clone();
    for name in [
        "response_types_supported",
        "subject_types_supported",
        "id_token_signing_alg_values_supported",
        "token_endpoint_auth_methods_supported",
        "scopes_supported",
        "claims_supported",
        "userinfo_endpoint",
        "op_tos_uri",
        "registration_endpoint",
        "authorization_response_iss_parameter_supported",
    ] {
        odd[name] = json!(7);
    }
    let least_text = least.to_string();
    let taken: [(&str, &str, Vec<u8>); 6] = [
        ("the least", "application/json", least_text.clone().into()),
        ("plain text", "text/plain", least_text.clone().into()),
        (
            "a download",
            "application/octet-stream",
            least_text.clone().into(),
        ),
        (
            "a byte order mark",
            "application/json",
            format!("\u{feff}{least_text}").into(),
        ),
        (
            "members of other forms",
            "application/json",
            odd.to_string().into(),
        ),
        (
            "no subject types",
            "application/json",
            recorded("discovery-without-subject-types.json")
                .replace("/jwks", "/keys")
                .into(),
        ),
    ];
    for (what, content, body) in taken {
        op.tell(|says| says.discovery = Some(Some((200, kind(content), body))));
        let driver = driver();
        let alice = sign_in(&driver, &op, &settings, super::good).await;
        assert_eq!(
            alice.unwrap_or_else(|error| panic!("{what}: {error}")).name,
            "alice"
        );
        let steps = driver.check(&settings).await;
        assert!(steps[0].ok, "{what}: {steps:?}");
    }
    // Keys with plain base64, and others of no known kind beside them.
    op.tell(|says| says.discovery = None);
    let mut plain = op.key.jwk("one");
    for name in ["x", "y"] {
        let digits = plain[name].as_str().unwrap();
        plain[name] = json!(digits.replace('-', "+").replace('_', "/") + "=");
    }
    op.tell(|says| says.keys = json!([7, {"kty": "?"}, plain]));
    let alice = sign_in(&driver(), &op, &settings, super::good).await;
    assert_eq!(alice.unwrap().name, "alice");
    // A missing member that a sign-in needs is named, by the sign-in and by the test alike.
    let mut no_token = least.clone();
    no_token["token_endpoint"] = json!("/token");
    no_token.as_object_mut().unwrap().remove("jwks_uri");
    let lacking: [(String, &[&str]); 4] = [
        (
            recorded("discovery-cilogon-2017.json"),
            &["jwks_uri is missing"],
        ),
        (
            recorded("discovery-naver-no-jwks.json"),
            &["jwks_uri is missing"],
        ),
        (
            no_token.to_string(),
            &[
                "token_endpoint is \"/token\" and no address",
                "jwks_uri is missing",
            ],
        ),
        (
            json!({"issuer": op.issuer()}).to_string(),
            &["authorization_endpoint", "token_endpoint", "jwks_uri"],
        ),
    ];
    for (body, parts) in lacking {
        op.tell(|says| {
            says.discovery = Some(Some((200, kind("application/json"), body.into_bytes())))
        });
        let driver = driver();
        let failed = driver.begin(&settings, false).await.unwrap_err();
        assert!(matches!(failed, ProviderError::Lacks(_)), "{failed:?}");
        let said = failed.to_string();
        for part in parts.iter().chain(&["have it added at the provider"]) {
            assert!(said.contains(part), "{said}");
        }
        let steps = driver.check(&settings).await;
        assert_eq!(
            (steps.len(), steps[0].ok, &steps[0].detail),
            (1, false, &said)
        );
    }
    // One for all tenants says what to put in.
    let issuer = "https://login.example/{tenantid}/v2.0";
    op.tell(|says| says.discovery = Some(ok(&json!({"issuer": issuer}))));
    let said = driver()
        .begin(&settings, false)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("your own id in place of {tenantid}"),
        "{said}"
    );
}

/// Status and error of an answer.
type Refusal = (u16, &'static str);

const UNKNOWN: Refusal = (400, "invalid_client");

/// A provider that knows one way to send a secret, compares bytes, and refuses the other ways.
async fn picky(
    methods: &'static [&'static str],
    knows: fn(&Asked) -> bool,
    refusal: Refusal,
) -> Scripted {
    Scripted::new(move |host, asked| {
        let (status, error) = match knows(asked) {
            true => (400, "invalid_grant"),
            false => refusal,
        };
        answer_picky(methods, status, error, host, asked)
    })
    .await
}

fn answer_picky(methods: &[&str], status: u16, error: &str, host: &str, asked: &Asked) -> Answer {
    let at = |path: &str| format!("http://{host}/{path}");
    let kind = || vec![("content-type", "application/json".to_owned())];
    match asked.path.as_str() {
        super::DISCOVERY => {
            let mut metadata = json!({
                "issuer": format!("http://{host}"), "authorization_endpoint": at("authorize"),
                "token_endpoint": at("token"), "jwks_uri": at("keys"),
            });
            if !methods.is_empty() {
                metadata["token_endpoint_auth_methods_supported"] = json!(methods);
            }
            ok(&metadata)
        }
        "/keys" => {
            // A modulus of 2,048 bits.
            let modulus = "_".repeat(341) + "w";
            ok(&json!({"keys": [{"kty": "RSA", "n": modulus, "e": "AQAB", "use": "sig"}]}))
        }
        "/token" => {
            let body = json!({ "error": error }).to_string();
            Some((status, kind(), body.into_bytes()))
        }
        _ => Some((200, kind(), Vec::new())),
    }
}

const ODD_SECRET: &str = "a+b%c/d:e=f";

fn basic(asked: &Asked, credentials: &str) -> bool {
    use base64::Engine;
    let expected = base64::engine::general_purpose::STANDARD.encode(credentials);
    asked.header("authorization") == Some(&format!("Basic {expected}"))
}

#[tokio::test]
async fn secrets_reach_providers_that_compare_bytes() {
    let raw: fn(&Asked) -> bool = |asked| basic(asked, &format!("{CLIENT}:{ODD_SECRET}"));
    let encoded: fn(&Asked) -> bool =
        |asked| basic(asked, &format!("{CLIENT}:a%2Bb%25c%2Fd%3Ae%3Df"));
    let post: fn(&Asked) -> bool = |asked| {
        asked.header("authorization").is_none()
            && asked.body.contains("client_id=yard")
            && asked.body.contains("client_secret=a%2Bb%25c%2Fd%3Ae%3Df")
    };
    let both: &[&str] = &["client_secret_basic", "client_secret_post"];
    for (what, methods, knows, refusal, requests) in [
        ("encoded", both, encoded, UNKNOWN, 1),
        ("in the form", both, post, UNKNOWN, 2),
        ("in the form, unsaid", &[], post, UNKNOWN, 2),
        ("in the form, denied", &[], post, (401, "access_denied"), 2),
        (
            "in the form, unauthorized",
            both,
            post,
            (401, "unauthorized"),
            2,
        ),
        (
            "in the form, secret missing",
            &[],
            post,
            (400, "invalid_request"),
            2,
        ),
        (
            "in the form, secret missing with 200",
            &[],
            post,
            (200, "invalid_request"),
            2,
        ),
        ("as it is", both, raw, UNKNOWN, 3),
        ("as it is, denied", both, raw, (401, "access_denied"), 3),
        (
            "as it is, in the header only",
            &["client_secret_basic"],
            raw,
            UNKNOWN,
            2,
        ),
        (
            "in the form only",
            &["client_secret_post"],
            post,
            UNKNOWN,
            1,
        ),
    ] {
        let server = picky(methods, knows, refusal).await;
        let op = Op::new().await;
        let settings = ProviderSettings {
            issuer: format!("http://{}", server.address),
            client_secret: Some(ODD_SECRET.into()),
            ..op.settings()
        };
        let steps = driver().check(&settings).await;
        assert!(steps.len() == 3 && steps[2].ok, "{what}: {steps:?}");
        assert!(steps[2].detail.contains("is known"), "{what}: {steps:?}");
        let tried = |server: &Scripted| {
            let asked = server.asked();
            asked.iter().filter(|it| it.path == "/token").count()
        };
        assert_eq!(tried(&server), requests, "{what}");
        // A sign-in does the same, and remembers it.
        let driver = driver();
        for _ in 0..2 {
            let (_, pending) = driver.begin(&settings, false).await.unwrap();
            let spent = driver.finish(&settings, &pending, &returned()).await;
            assert!(
                matches!(spent, Err(ProviderError::Code(_))),
                "{what}: {spent:?}"
            );
        }
        assert_eq!(tried(&server), 2 * requests + 1, "{what}");
    }
    // One that is wrong is said to be, with all that was tried; after a refused request nothing says that the client is known.
    let ways = "client_secret_basic, client_secret_post, client_secret_basic without encoding";
    for (refusal, ok, parts) in [
        (UNKNOWN, false, [ways, "oidc.client_secret"]),
        ((401, "access_denied"), false, [ways, "access_denied"]),
        (
            (400, "invalid_request"),
            true,
            [ways, "is not refused (invalid_request"],
        ),
    ] {
        let server = picky(both, |_| false, refusal).await;
        let op = Op::new().await;
        let settings = ProviderSettings {
            issuer: format!("http://{}", server.address),
            client_secret: Some(ODD_SECRET.into()),
            ..op.settings()
        };
        let steps = driver().check(&settings).await;
        let said = &steps[2].detail;
        assert_eq!(steps[2].ok, ok, "{said}");
        for part in parts {
            assert!(said.contains(part), "{said}");
        }
        assert!(!said.contains(ODD_SECRET), "{said}");
    }
}
