//! The revision without sessions (2026-07-28): every request says what it needs, in headers and in `_meta`.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::answer::{Answer, RpcError, failure, success};
use super::get;
use super::handshake::{Tools, first_page, instructions, no_method, server_info};
use super::message::Params;
use super::post::{self, Accepted, Request, refused};
use super::progress::Progress;
use super::revision::Revision;
use super::stream::VERSION;
use super::tools::Meta;
use crate::reply::Reply;

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// For how long a client may keep the list of tools, in milliseconds: it only changes with the program.
const TTL_MS: u64 = 60 * 60 * 1000;

/// Whether a request is one of this revision, or of one that is not known.
pub(super) fn is_meant(version: Option<&str>, params: Option<&Params>) -> bool {
    let handshake = |version: &str| Revision::from_str(version).is_ok_and(Revision::has_handshake);
    version.is_some_and(|version| !handshake(version))
        || params.is_some_and(|params| params.meta.version.is_some())
}

/// Checks what the headers and `_meta` of a request say.
fn check(request: &Request, method: &str, params: Option<&Params>) -> Result<(), RpcError> {
    let headers = |said: String| Err(RpcError::new(RpcError::HEADERS, said));
    let Some(version) = request.text(VERSION) else {
        return headers("the header mcp-protocol-version is missing".to_owned());
    };
    let meta = params.map(|params| &params.meta);
    let said = meta.and_then(|meta| meta.version.as_ref());
    let Some(said) = said.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok()) else {
        let rule = format!("params._meta has no {META_VERSION}");
        return Err(RpcError::new(RpcError::PARAMS, rule));
    };
    if said != version {
        return headers(format!(
            "mcp-protocol-version and _meta.{META_VERSION} differ"
        ));
    }
    if Revision::from_str(version).is_ok_and(Revision::has_handshake)
        || Revision::from_str(version).is_err()
    {
        let supported: Vec<String> = supported();
        let data = json!({"supported": supported, "requested": version});
        return Err(RpcError {
            data: Some(data),
            ..RpcError::new(RpcError::REVISION, "the revision is not supported")
        });
    }
    match request.text(METHOD) {
        None => return headers("the header mcp-method is missing".to_owned()),
        Some(named) if named.trim() != method => {
            return headers("mcp-method and the method of the request differ".to_owned());
        }
        Some(_) => {}
    }
    if method == "tools/call" {
        let Some(named) = request.text(NAME) else {
            return headers("the header mcp-name is missing".to_owned());
        };
        if unwrapped(named).as_ref() != params.and_then(|params| params.name.as_ref()) {
            return headers("mcp-name and params.name differ".to_owned());
        }
    }
    let capabilities = meta.and_then(|meta| meta.capabilities.as_ref());
    if !capabilities.is_some_and(|raw| raw.get().starts_with('{')) {
        let rule = format!("params._meta has no {META_CAPABILITIES}");
        return Err(RpcError::new(RpcError::PARAMS, rule));
    }
    Ok(())
}

fn supported() -> Vec<String> {
    use strum::VariantArray;
    let newest_first = Revision::VARIANTS.iter().rev();
    newest_first.map(ToString::to_string).collect()
}

/// The value of a header, which may be wrapped because it is none that a header can have.
fn unwrapped(value: &str) -> Option<String> {
    let value = value.trim();
    let wrapped = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match wrapped {
        Some(wrapped) => String::from_utf8(STANDARD.decode(wrapped).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// A result with what all of them have.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Complete<T> {
    #[serde(flatten)]
    result: T,
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: Meta,
}

impl<T> Complete<T> {
    fn new(result: T) -> Self {
        Self {
            result,
            result_type: "complete",
            meta: (to_raw_value(&server_info()).into_iter())
                .map(|server| (META_SERVER, server))
                .collect(),
        }
    }
}

/// A list that may be kept for a while. It is the same for everybody.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cached<T> {
    #[serde(flatten)]
    result: T,
    ttl_ms: u64,
    cache_scope: &'static str,
}

impl<T> Cached<T> {
    fn new(result: T) -> Self {
        Self {
            result,
            ttl_ms: TTL_MS,
            cache_scope: "private",
        }
    }
}

/// Answers a request. A client that goes away cancels it.
pub(super) async fn answer(
    request: Request,
    id: &RawValue,
    method: &str,
    params: Option<Params>,
) -> Reply {
    if let Err(error) = check(&request, method, params.as_ref()) {
        return refused(StatusCode::BAD_REQUEST, Some(id), &error);
    }
    let raw = params.as_ref().map(|params| &*params.raw);
    let answered = match method {
        "server/discover" => {
            let found = json!({
                "supportedVersions": supported(),
                "capabilities": {"tools": {"listChanged": true}},
                "instructions": instructions(request.service),
            });
            success(id, &Complete::new(Cached::new(found)))
        }
        "tools/list" => match first_page(raw) {
            Err(error) => return refused(StatusCode::BAD_REQUEST, Some(id), &error),
            Ok(()) => {
                let tools = request.deps.mcp.catalogue.list(request.service);
                tools.and_then(|tools| success(id, &Complete::new(Cached::new(Tools { tools }))))
            }
        },
        "tools/call" => return call(request, id, params).await,
        "subscriptions/listen" => return get::listen(&request, id, raw),
        _ => return refused(StatusCode::NOT_FOUND, Some(id), &no_method(method)),
    };
    match answered {
        Some(text) => post::json(text),
        None => {
            let error = RpcError::new(RpcError::INTERNAL, "the result cannot be sent");
            refused(StatusCode::INTERNAL_SERVER_ERROR, Some(id), &error)
        }
    }
}

async fn call(request: Request, id: &RawValue, params: Option<Params>) -> Reply {
    let accepted = Accepted::of(&request.headers);
    let may_stream = post::may_stream(&request, accepted, params.as_ref());
    let progress = Progress::of(params.as_ref());
    let caller = request.caller(post::bounds(accepted, may_stream), None);
    let (deps, memory, id) = (request.deps, request.memory, id.to_owned());
    let asked = id.clone();
    let answer = async move {
        // As long as what was in the body is there.
        let _memory = memory;
        let params = params.as_ref().map(|params| &*params.raw);
        let called = tokio::select! {
            called = deps.mcp.call_tool(&caller, params) => called,
            stopped = post::last_moment(&deps.shutdown) => Err(stopped),
        };
        match called {
            Ok(result) => {
                let mut complete = Complete::new(result);
                complete.meta.extend(complete.result.meta());
                let share = std::mem::take(&mut complete.result.share);
                let text = success(&asked, &complete).unwrap_or_default();
                Answer { text, share }
            }
            Err(error) => failure(Some(&asked), &error).into(),
        }
    };
    post::reply(accepted, may_stream, &id, progress, answer).await
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("browser_click", Some("browser_click"))]
    #[case("  browser_click ", Some("browser_click"))]
    #[case("=?base64?YnJvd3Nlcl9jbGljaw==?=", Some("browser_click"))]
    #[case("=?base64?!?=", None)]
    #[case("=?base64?/w==?=", None)]
    fn names_may_be_wrapped(#[case] header: &str, #[case] expected: Option<&str>) {
        assert_eq!(unwrapped(header).as_deref(), expected);
    }

    #[rstest]
    #[case(None, "{}", false)]
    #[case(Some("2025-06-18"), "{}", false)]
    #[case(Some("2026-07-28"), "{}", true)]
    #[case(Some("2099-01-01"), "{}", true)]
    #[case(Some("nonsense"), "{}", true)]
    #[case(
        None,
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
        true
    )]
    #[case(None, r#"{"_meta":{"progressToken":1}}"#, false)]
    fn header_or_meta_decide(
        #[case] version: Option<&str>,
        #[case] params: &str,
        #[case] meant: bool,
    ) {
        let params = RawValue::from_string(params.to_owned()).unwrap();
        let params = Params::read(params);
        assert_eq!(is_meant(version, Some(&params)), meant);
    }
}
