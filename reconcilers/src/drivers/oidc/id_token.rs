//! Signed claims: ID tokens (OpenID Connect Core §3.1.3.7), and user info that is signed (§5.3.2).
//!
//! The library verifies what a token says of who issued it, for whom and when, on a copy that has only these claims: all others may have
//! any form. The signature is verified over the token as it came.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::core::{CoreIdToken, CoreJsonWebKey, CoreJwsSigningAlgorithm};
use openidconnect::{
    AccessToken, AccessTokenHash, ClaimsVerificationError, ClientId, IdTokenVerifier, IssuerUrl,
    JsonWebKey, JsonWebKeySet, JsonWebKeyUse, Nonce, SignatureVerificationError,
};
use schema::ids::Timestamp;
use schema::live::PendingSignIn;
use serde_json::{Map, Number, Value};

use super::ProviderSettings;
use super::claims::subject_of;
use super::error::ProviderError;
use super::json::Unique;
use super::keys::{Keys, is_rsa};
use super::provider::Provider;
use super::token::Tokens;
use crate::drivers::shown;

/// Most that the provider's clock may be ahead of this machine's.
const SKEW: Duration = Duration::from_secs(60);
/// Longest subject (OpenID Connect Core §2).
const LONGEST_SUBJECT: usize = 255;
/// Most keys that a token without a key's name is tried with.
const MOST_KEYS: usize = 50;
/// The claims that are verified.
const VERIFIED: [&str; 8] = ["iss", "sub", "aud", "exp", "iat", "nonce", "azp", "at_hash"];
/// Those of them that are times.
const TIMES: [&str; 2] = ["exp", "iat"];

/// Algorithms that may sign tokens: those with a key of the provider, never those with a shared secret, and not `none`.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Reason for refusing a token.
pub(super) enum Refusal {
    /// Its key is not known: the provider may have a new one.
    Key(String),
    /// For good.
    Final(ProviderError),
}

fn last(why: &str) -> Refusal {
    Refusal::Final(ProviderError::Token(shown(why)))
}

/// A token whose signature is good.
struct Signed<'a> {
    claims: Map<String, Value>,
    header: &'a str,
    signature: &'a str,
    algorithm: CoreJwsSigningAlgorithm,
    key: &'a CoreJsonWebKey,
}

/// Verifies the signature of a token (RFC 7515 §5.2) with the keys of the provider.
fn verify_signature<'a>(keys: &'a Keys, token: &'a str) -> Result<Signed<'a>, Refusal> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, signature] = parts[..] else {
        return Err(last("it has not the three parts of a signed token"));
    };
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let object = |part: &str| serde_json::from_slice::<Unique>(&decoded(part)?).ok();
    let (Some(Unique(head)), Some(Unique(claims)), Some(bytes)) =
        (object(header), object(payload), decoded(signature))
    else {
        return Err(last("its parts can't be read"));
    };
    let kind = head.get("typ").map(|kind| kind.as_str().unwrap_or("?"));
    let kind = kind.map(|kind| kind.to_lowercase());
    let kind = kind
        .as_deref()
        .map(|it| it.strip_prefix("application/").unwrap_or(it));
    if !matches!(kind, None | Some("jwt" | "jose")) || head.contains_key("cty") {
        return Err(last("it is another kind of token"));
    }
    if head.contains_key("crit") {
        return Err(last("it has extensions that are not known"));
    }
    let algorithm = head.get("alg").cloned().unwrap_or_default();
    let algorithm = serde_json::from_value::<CoreJwsSigningAlgorithm>(algorithm).ok();
    let Some(algorithm) = algorithm.filter(|it| ALGORITHMS.contains(it)) else {
        return Err(last(
            "its algorithm is none of RS256 to RS512, PS256 to PS512, ES256, ES384 and EdDSA; choose one of these for the client at the provider",
        ));
    };
    let named = match head.get("kid") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id),
        Some(_) => return Err(last("the name of its key is not text")),
    };
    let fits = |key: &&CoreJsonWebKey| {
        let id = key.key_id().map(|id| id.as_str());
        key.key_use().is_none_or(JsonWebKeyUse::allows_signature)
            && named.is_none_or(|named| id == Some(named))
    };
    let signed = &token.as_bytes()[..header.len() + 1 + payload.len()];
    let mut failed = SignatureVerificationError::NoMatchingKey;
    for key in keys.all.iter().filter(fits).take(MOST_KEYS) {
        match key.verify_signature(&algorithm, signed, &bytes) {
            Ok(()) => {
                return Ok(Signed {
                    claims,
                    header,
                    signature,
                    algorithm,
                    key,
                });
            }
            Err(error) => failed = error,
        }
    }
    if is_rsa(&algorithm)
        && let Some(why) = keys.describe_short(named.map(String::as_str))
    {
        return Err(Refusal::Key(why));
    }
    match failed {
        SignatureVerificationError::NoMatchingKey
        | SignatureVerificationError::CryptoError(_)
        | SignatureVerificationError::InvalidKey(_) => {
            Err(Refusal::Key(shown(&failed.to_string())))
        }
        error => Err(last(&error.to_string())),
    }
}

impl Signed<'_> {
    /// The token with only those claims that the library verifies.
    fn reduced(&self) -> Result<CoreIdToken, Refusal> {
        let mut claims: Map<String, Value> = Map::new();
        for name in VERIFIED {
            let value = self.claims.get(name).filter(|value| !value.is_null());
            // Some write times as texts, and subjects as numbers.
            let usual = value.and_then(|value| match name {
                "sub" => subject_of(value).map(Value::String),
                _ if TIMES.contains(&name) => {
                    let number = value.as_str()?.parse::<Number>();
                    number.ok().map(Value::Number)
                }
                _ => None,
            });
            if let Some(value) = usual.or_else(|| value.cloned()) {
                claims.insert(name.to_owned(), value);
            }
        }
        let payload = URL_SAFE_NO_PAD.encode(Value::Object(claims).to_string());
        let token = format!("{}.{payload}.{}", self.header, self.signature);
        token
            .parse()
            .map_err(|_| last("one of its claims iss, sub, aud, exp, iat, nonce, azp and at_hash is missing, or has not the form of OpenID Connect Core §2"))
    }
}

impl Provider {
    /// The subject and the claims of the ID token, once it is one.
    pub(super) fn verify(
        &self,
        settings: &ProviderSettings,
        pending: &PendingSignIn,
        tokens: &Tokens,
        now: Timestamp,
    ) -> Result<(String, Map<String, Value>), Refusal> {
        use ClaimsVerificationError as Claims;

        let token = tokens.id_token.as_deref();
        let token = token.ok_or_else(|| {
            last("there is none; oidc.scopes must have openid, and the client must be one of OpenID Connect")
        })?;
        let signed = verify_signature(&self.keys, token.trim())?;
        let latest = now.plus(SKEW).as_secs();
        let issuer = IssuerUrl::new(self.description.issuer.clone());
        let issuer = issuer.map_err(|_| last("its issuer is no address"))?;
        let client = ClientId::new(settings.client_id.clone());
        let verifier = IdTokenVerifier::new_public_client(
            client,
            issuer,
            JsonWebKeySet::<CoreJsonWebKey>::new(Vec::new()),
        )
        // It is verified already, over all claims.
        .insecure_disable_signature_check()
        // Others may be meant, too, where it says that it was issued to us; that is looked at below.
        .set_other_audience_verifier_fn(|_| true)
        .set_issue_time_verifier_fn(move |issued| {
            if issued.timestamp() > latest {
                return Err("it was issued in the future".to_owned());
            }
            Ok(())
        });
        let nonce = Nonce::new(pending.nonce.clone());
        let reduced = signed.reduced()?;
        let claims = reduced.claims(&verifier, &nonce);
        let claims = claims.map_err(|error| match error {
            // The expected nonce is as secret as the one in the token.
            Claims::InvalidNonce(_) => last("its nonce is not that of this sign-in"),
            why => last(&why.to_string()),
        })?;
        let party = claims.authorized_party().map(|party| party.as_str());
        let alone = claims.audiences().len() == 1;
        if party.map_or(!alone, |party| party != settings.client_id) {
            return Err(last("it was issued to another client"));
        }
        if let (Some(expected), Some(token)) = (claims.access_token_hash(), &tokens.access_token) {
            let token = AccessToken::new(token.clone());
            let hash = AccessTokenHash::from_token(&token, &signed.algorithm, signed.key).ok();
            if hash.as_ref() != Some(expected) {
                return Err(last("it belongs to another access token"));
            }
        }
        let subject = claims.subject().as_str();
        let visible = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if !(1..=LONGEST_SUBJECT).contains(&subject.len()) || !subject.bytes().all(visible) {
            return Err(last("its subject is not 1 to 255 ASCII characters"));
        }
        let begins = signed.claims.get("nbf");
        let begins = begins.and_then(|it| it.as_f64().or_else(|| it.as_str()?.parse().ok()));
        if begins.is_some_and(|begins| begins > latest as f64) {
            return Err(last("it is not valid yet"));
        }
        Ok((subject.to_owned(), signed.claims))
    }

    /// The claims of user info that is signed, once it is this provider's and for this client.
    pub(super) fn verify_user_info(
        &self,
        settings: &ProviderSettings,
        token: &str,
    ) -> Result<Map<String, Value>, ProviderError> {
        let signed = verify_signature(&self.keys, token).map_err(|refusal| match refusal {
            Refusal::Key(why) => ProviderError::Token(why),
            Refusal::Final(error) => error,
        })?;
        let claim = |name: &str| signed.claims.get(name).cloned().unwrap_or_default();
        let client = Value::from(settings.client_id.as_str());
        let meant = match claim("aud") {
            Value::Array(audience) => audience.contains(&client),
            audience => audience == client,
        };
        if claim("iss") != self.description.issuer.as_str() || !meant {
            let why = "user info is signed by another issuer, or for another client";
            return Err(ProviderError::Token(why.to_owned()));
        }
        Ok(signed.claims)
    }
}
