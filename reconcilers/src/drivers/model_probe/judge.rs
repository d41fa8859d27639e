//! Tells from an answer what is wrong. Pure.

use schema::adapter::ModelProtocol;
use schema::live::{ModelFault, ModelQuestion, ModelVerdict};
use secrecy::ExposeSecret;
use serde_json::Value;
use url::Url;

use crate::drivers::shown;

/// Stands for the key in what a provider says.
const MASK: &str = "********";

/// An answer.
pub(super) struct Reply {
    /// The status.
    pub(super) status: u16,
    /// The body, as far as it is read.
    pub(super) body: Vec<u8>,
    /// There was more.
    pub(super) is_cut: bool,
}

impl Reply {
    fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    fn lower(&self) -> String {
        String::from_utf8_lossy(&self.body).to_lowercase()
    }
}

/// A test that failed.
pub(super) fn failed(fault: ModelFault, message: String) -> ModelVerdict {
    let remedy = match fault {
        ModelFault::Address => "check scheme, host, port and path of the address",
        ModelFault::Path => "check the path of the address: it usually ends in /v1",
        ModelFault::Scheme => "write http:// in place of https://, or the other way round",
        ModelFault::Certificate => {
            "give the provider a certificate of an authority that this machine trusts, or add its authority to the system's"
        }
        ModelFault::Key => "check the key, and that it may use this model",
        ModelFault::Model => "check the name of the model, as the provider writes it",
        ModelFault::Quota => "wait, or raise the limit of the account at the provider",
        ModelFault::Answer => "check that the address is that of the provider's API",
        ModelFault::Timeout => "check the address, and that nothing on the way blocks it",
    };
    ModelVerdict {
        fault: Some(fault),
        message,
        remedy,
    }
}

/// Returns true when a provider takes the limit of tokens under its newer name only.
pub(super) fn takes_other_limit(reply: &Reply) -> bool {
    reply.status == 400 && reply.lower().contains("max_completion_tokens")
}

/// Explains that the server answers, and has no such API at the address.
fn describe_path(question: &ModelQuestion) -> String {
    let address = question.address.as_str().trim_end_matches('/');
    let is_openai = question.protocol == ModelProtocol::Openai;
    let usual = match is_openai && !address.ends_with("/v1") {
        true => format!("; it usually ends in /v1: {address}/v1"),
        false => String::new(),
    };
    shown(&format!(
        "{address} answers, but has no such API there{usual}"
    ))
}

/// Explains that the address has the other scheme than the server.
pub(super) fn wrong_scheme(address: &Url) -> ModelVerdict {
    let text = address.as_str().trim_end_matches('/');
    let message = match text.strip_prefix("https://") {
        Some(rest) => format!("{text} does not speak TLS; is it http://{rest}?"),
        None => format!(
            "{text} speaks TLS; is it {}?",
            text.replacen("http://", "https://", 1)
        ),
    };
    failed(ModelFault::Scheme, shown(&message))
}

/// Returns true when a server with TLS says that it was asked without.
fn wants_tls(question: &ModelQuestion, reply: &Reply) -> bool {
    let text = reply.lower();
    let says_so = ["to an https server", "to https port", "https scheme"];
    question.address.scheme() == "http"
        && reply.status == 400
        && says_so.iter().any(|words| text.contains(words))
}

/// Judges the answer to a question for one token.
pub(super) fn judge(question: &ModelQuestion, reply: &Reply) -> ModelVerdict {
    if wants_tls(question, reply) {
        return wrong_scheme(&question.address);
    }
    let status = reply.status;
    let text = reply.lower();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let of_model = text.contains("model");
    let of_quota = has(&[
        "insufficient_quota",
        "credit balance",
        "billing",
        "balance is",
    ]);
    let path;
    let (fault, what) = match status {
        200..=299 if is_answer(question.protocol, reply) => {
            return ModelVerdict {
                fault: None,
                message: "the model answered".to_owned(),
                remedy: "",
            };
        }
        200..=299 => (ModelFault::Answer, "something that is no model answered"),
        // The thinking took all tokens: it is a model.
        400 if has(&["output limit was reached"]) => {
            return ModelVerdict {
                fault: None,
                message: "the model answered".to_owned(),
                remedy: "",
            };
        }
        300..=399 => (
            ModelFault::Address,
            "the address leads elsewhere, which is not followed",
        ),
        402 | 429 => (ModelFault::Quota, "the provider refuses more requests"),
        400 | 403 if of_quota => (ModelFault::Quota, "the provider refuses more requests"),
        401 | 403 => (ModelFault::Key, "the provider refuses the key"),
        404 if of_model && reply.json().is_some() => {
            (ModelFault::Model, "the provider does not know the model")
        }
        400 | 422
            if of_model
                && has(&[
                    "exist",
                    "not found",
                    "not_found",
                    "unknown",
                    "invalid model",
                ]) =>
        {
            (ModelFault::Model, "the provider does not know the model")
        }
        404 | 405 => {
            path = describe_path(question);
            (ModelFault::Path, path.as_str())
        }
        _ => (ModelFault::Answer, "the provider failed"),
    };
    let said = said(question, reply);
    let end = if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    };
    failed(fault, format!("{what} ({status}){end}"))
}

fn is_answer(protocol: ModelProtocol, reply: &Reply) -> bool {
    let member = match protocol {
        ModelProtocol::Openai => "choices",
        ModelProtocol::Anthropic => "content",
    };
    let answer = reply.json().filter(|_| !reply.is_cut);
    answer.is_some_and(|answer| answer.get(member).is_some_and(Value::is_array))
}

/// The provider's message, short and without the key.
fn said(question: &ModelQuestion, reply: &Reply) -> String {
    let json = reply.json();
    let of = |json: &Value| {
        let error = json.get("error").unwrap_or(json);
        let text = error.get("message").unwrap_or(error).as_str();
        text.map(str::to_owned)
    };
    let text = match &json {
        Some(json) => of(json).unwrap_or_default(),
        None => String::from_utf8_lossy(&reply.body).into_owned(),
    };
    let mut plain: String = text.chars().filter(|c| !c.is_control()).collect();
    if let Some(key) = &question.key
        && !key.expose_secret().is_empty()
    {
        plain = plain.replace(key.expose_secret(), MASK);
    }
    // A page of a proxy says nothing to an administrator.
    if json.is_none() && plain.trim_start().starts_with('<') {
        return String::new();
    }
    shown(&plain)
}
