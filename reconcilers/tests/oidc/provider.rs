//! A provider that says what it is told to, over real sockets: for what a real one cannot be made to say.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kit::http::{Answer, Asked, Scripted};
use reconcilers::drivers::oidc::ProviderSettings;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use schema::clock::{Clock, SystemClock};
use serde_json::{Value, json};

pub const CLIENT: &str = "yard";
pub const SECRET: &str = "a secret & more";

pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key that signs.
pub enum Key {
    Ecdsa(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

impl Key {
    pub fn ecdsa() -> Self {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref(), &random).unwrap();
        Self::Ecdsa(Box::new(pair))
    }

    pub fn ed25519() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        Self::Ed25519(Box::new(pair))
    }

    /// The public half (RFC 7517).
    pub fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Ecdsa(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": base64(x), "y": base64(y), "kid": id, "use": "sig"})
            }
            Self::Ed25519(pair) => {
                let x = base64(pair.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": id, "use": "sig"})
            }
        }
    }

    pub fn sign(&self, text: &str) -> Vec<u8> {
        match self {
            Self::Ecdsa(pair) => {
                let signature = pair.sign(&SystemRandom::new(), text.as_bytes());
                signature.unwrap().as_ref().to_vec()
            }
            Self::Ed25519(pair) => pair.sign(text.as_bytes()).as_ref().to_vec(),
        }
    }

    /// A token of these parts (RFC 7515 §7.1).
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let text = unsigned(header, claims);
        let signature = base64(self.sign(&text));
        format!("{text}.{signature}")
    }
}

pub fn unsigned(header: &Value, claims: &Value) -> String {
    let (header, claims) = (header.to_string(), claims.to_string());
    format!("{}.{}", base64(header), base64(claims))
}

/// Seconds since the Unix epoch.
pub fn now() -> i64 {
    SystemClock.now().as_secs()
}

pub fn ok(body: &Value) -> Answer {
    let kind = ("content-type", "application/json".to_owned());
    Some((200, vec![kind], body.to_string().into_bytes()))
}

/// What it says next.
pub struct Says {
    pub discovery: Option<Answer>,
    /// What it says of itself besides.
    pub more: Value,
    pub keys: Value,
    /// What the page says at which people sign in.
    pub authorize: Answer,
    pub token: Answer,
    pub user_info: Answer,
}

/// The provider.
pub struct Op {
    pub server: Scripted,
    pub key: Key,
    says: Arc<Mutex<Says>>,
}

impl Op {
    pub async fn new() -> Self {
        let key = Key::ecdsa();
        let says = Arc::new(Mutex::new(Says {
            discovery: None,
            more: json!({}),
            keys: json!([key.jwk("one")]),
            authorize: Some((200, Vec::new(), Vec::new())),
            token: ok(&json!({})),
            user_info: Some((404, Vec::new(), Vec::new())),
        }));
        let script = Arc::clone(&says);
        let server = Scripted::new(move |host, asked| {
            let says = script.lock().unwrap();
            answer(&says, host, asked)
        });
        Self {
            server: server.await,
            key,
            says,
        }
    }

    pub fn issuer(&self) -> String {
        format!("http://{}", self.server.address)
    }

    pub fn tell(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.says.lock().unwrap());
    }

    /// The next ID token.
    pub fn issues(&self, token: &str) {
        let tokens = json!({"access_token": "at", "token_type": "Bearer", "id_token": token});
        self.tell(|says| says.token = ok(&tokens));
    }

    pub fn settings(&self) -> ProviderSettings {
        ProviderSettings {
            issuer: self.issuer(),
            ca_certificate: None,
            client_id: CLIENT.to_owned(),
            client_secret: Some(SECRET.into()),
            redirect_url: "http://127.0.0.1/api/login/oidc/callback".to_owned(),
            scopes: "openid profile email".to_owned(),
            username_claim: "preferred_username".to_owned(),
            groups_claim: "groups".to_owned(),
        }
    }

    /// How often it was asked for this.
    pub fn asked(&self, path: &str) -> usize {
        let asked = self.server.asked();
        asked.iter().filter(|it| it.path == path).count()
    }

    /// Claims as they should be.
    pub fn claims(&self, nonce: &str) -> Value {
        json!({
            "iss": self.issuer(), "aud": CLIENT, "sub": "17", "nonce": nonce, "iat": now(), "exp": now() + 300,
            "preferred_username": "alice", "groups": ["dev", "ops"],
        })
    }
}

/// The header that belongs to the provider's key.
pub fn header() -> Value {
    json!({"alg": "ES256", "kid": "one", "typ": "JWT"})
}

pub const DISCOVERY: &str = "/.well-known/openid-configuration";

fn answer(says: &Says, host: &str, asked: &Asked) -> Answer {
    match asked.path.as_str() {
        DISCOVERY => says.discovery.clone().unwrap_or_else(|| {
            let at = |path: &str| format!("http://{host}/{path}");
            let mut metadata = json!({
                "issuer": format!("http://{host}"),
                "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
                "jwks_uri": at("keys"), "userinfo_endpoint": at("userinfo"),
                "response_types_supported": ["code"], "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["none", "HS256", "ES256", "RS256"],
            });
            for (name, value) in says.more.as_object().unwrap() {
                metadata[name] = value.clone();
            }
            ok(&metadata)
        }),
        "/keys" => ok(&json!({"keys": says.keys})),
        path if path.starts_with("/authorize?") => says.authorize.clone(),
        "/token" => says.token.clone(),
        "/userinfo" => says.user_info.clone(),
        other => panic!("{other}"),
    }
}
