//! The question to a provider of models whether it answers with these settings.

mod judge;
mod locate;

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use schema::adapter::ModelProtocol;
use schema::live::{ModelFault, ModelQuestion, ModelVerdict};
use schema::zone::Zone;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::net::lookup_host;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use url::Host;

use self::judge::{Reply, failed, judge, takes_other_limit, wrong_scheme};
pub use self::locate::locate;
use crate::drivers::{shown, trust};

/// The version of Anthropic's protocol.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Tokens of an answer where a provider counts those of thinking, too.
const THINKING_TOKENS: u32 = 16;

/// Limits for a provider's answer.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time in all.
    pub whole: Duration,
    /// Largest answer in bytes.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            whole: Duration::from_secs(15),
            bytes: 64 * 1024,
        }
    }
}

/// Tests models over HTTP. Private and loopback addresses are asked; link-local ones and metadata services are not,
/// redirects are not followed, and no proxy is used.
#[derive(Debug, Clone, Default)]
pub struct ModelProbe {
    limits: Limits,
}

impl ModelProbe {
    /// A probe with these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// Asks the provider for one token of an answer.
    pub async fn ask(&self, question: &ModelQuestion) -> ModelVerdict {
        let asking = Box::pin(self.converse(question));
        match timeout(self.limits.whole, asking).await {
            Ok(Ok(verdict) | Err(verdict)) => verdict,
            Err(_) => self.too_slow(),
        }
    }

    fn too_slow(&self) -> ModelVerdict {
        let message = format!(
            "the provider did not answer within {} s",
            self.limits.whole.as_secs()
        );
        failed(ModelFault::Timeout, message)
    }

    async fn converse(&self, question: &ModelQuestion) -> Result<ModelVerdict, ModelVerdict> {
        let client = self.client(question).await?;
        let limit = |name: &str, tokens: u32| {
            let mut body = json!({
                "model": question.model,
                "messages": [{ "role": "user", "content": "Say OK." }],
            });
            body[name] = Value::from(tokens);
            body
        };
        let path = match question.protocol {
            ModelProtocol::Openai => "/chat/completions",
            ModelProtocol::Anthropic => "/messages",
        };
        let url = format!("{}{path}", base(question));
        let request = client.post(&url).json(&limit("max_tokens", 1));
        let mut reply = self.send(question, request).await?;
        if question.protocol == ModelProtocol::Openai && takes_other_limit(&reply) {
            let body = limit("max_completion_tokens", THINKING_TOKENS);
            reply = self.send(question, client.post(&url).json(&body)).await?;
        }
        let verdict = judge(question, &reply);
        if reply.status == 404 && verdict.fault == Some(ModelFault::Path) {
            // Some providers say no more of a model that they do not know.
            let request = client.get(format!("{}/models", base(question)));
            let models = self.send(question, request).await?;
            if models.status == 200 {
                let message = "the provider does not know the model (404)".to_owned();
                return Ok(failed(ModelFault::Model, message));
            }
        }
        Ok(verdict)
    }

    /// A client that connects to the checked addresses only.
    async fn client(&self, question: &ModelQuestion) -> Result<Client, ModelVerdict> {
        let unusable = |problem: &str| {
            let message = format!("the address cannot be used: {}", shown(problem));
            failed(ModelFault::Address, message)
        };
        let url = &question.address;
        let port = url.port_or_known_default().unwrap_or_default();
        let addresses: Vec<SocketAddr> = match url.host() {
            Some(Host::Ipv4(ip)) => vec![SocketAddr::new(ip.into(), port)],
            Some(Host::Ipv6(ip)) => vec![SocketAddr::new(ip.into(), port)],
            Some(Host::Domain(name)) => match lookup_host((name, port)).await {
                Ok(found) => found.collect(),
                Err(error) => return Err(unusable(&error.to_string())),
            },
            None => return Err(unusable("it names no host")),
        };
        let is_refused = |one: &SocketAddr| Zone::from_address(one.ip()) == Zone::LinkLocal;
        if addresses.iter().any(is_refused) {
            return Err(unusable(
                "link-local addresses and metadata services are not asked",
            ));
        }
        // Reads files the first time.
        let config = spawn_blocking(|| trust::client_config(None)).await;
        let config = config.map_err(|error| unusable(&error.to_string()))?;
        let config = config.map_err(|error| unusable(&error.to_string()))?;
        Client::builder()
            .tls_backend_preconfigured(config)
            .connect_timeout(self.limits.whole)
            .timeout(self.limits.whole)
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .resolve_to_addrs(url.host_str().unwrap_or_default(), &addresses)
            .build()
            .map_err(|error| unusable(&error.to_string()))
    }

    async fn send(
        &self,
        question: &ModelQuestion,
        request: RequestBuilder,
    ) -> Result<Reply, ModelVerdict> {
        let key = question.key.as_ref().map(ExposeSecret::expose_secret);
        let request = match (question.protocol, key) {
            (ModelProtocol::Openai, Some(key)) => request.bearer_auth(key),
            (ModelProtocol::Openai, None) => request,
            (ModelProtocol::Anthropic, key) => request
                .header("x-api-key", key.unwrap_or_default())
                .header("anthropic-version", ANTHROPIC_VERSION),
        };
        let sent = request.send().await;
        let mut response = sent.map_err(|error| self.unreached(question, &error))?;
        let mut reply = Reply {
            status: response.status().as_u16(),
            body: Vec::new(),
            is_cut: false,
        };
        while !reply.is_cut {
            let piece = response.chunk().await;
            let Some(piece) = piece.map_err(|error| self.unreached(question, &error))? else {
                break;
            };
            let room = self.limits.bytes.saturating_sub(reply.body.len());
            reply.is_cut = piece.len() > room;
            reply.body.extend(piece.iter().take(room));
        }
        Ok(reply)
    }

    /// Explains a request that got no answer.
    fn unreached(&self, question: &ModelQuestion, error: &reqwest::Error) -> ModelVerdict {
        if error.is_timeout() {
            return self.too_slow();
        }
        if error.is_builder() {
            let message = "the key cannot be sent: it is no value of a header".to_owned();
            return failed(ModelFault::Key, message);
        }
        // The innermost says what happened; the outer ones only that a request failed.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let text = shown(&cause.to_string());
        // A server without TLS answers in plain text, and one with it by an alert that is no HTTP.
        let sign = match question.address.scheme() {
            "https" => "InvalidContentType",
            _ => "invalid HTTP version",
        };
        if text.contains(sign) {
            return wrong_scheme(&question.address);
        }
        if text.contains("certificate") {
            let message = format!("the provider's certificate is not trusted: {text}");
            return failed(ModelFault::Certificate, message);
        }
        failed(
            ModelFault::Address,
            format!("the provider cannot be reached: {text}"),
        )
    }
}

/// The address below which the protocol has its paths.
fn base(question: &ModelQuestion) -> String {
    let text = question.address.as_str().trim_end_matches('/');
    match question.protocol {
        ModelProtocol::Openai => text.to_owned(),
        // Agents take the address with and without it.
        ModelProtocol::Anthropic => format!("{}/v1", text.strip_suffix("/v1").unwrap_or(text)),
    }
}
