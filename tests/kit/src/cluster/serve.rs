//! Answers of the double.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::request::Asked;
use super::store::{Key, Refusal, Stored};
use super::{Shared, kubelet, lock, watching};

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Grace of a deletion that names none, in seconds.
const GRACE: u64 = 30;

pub(crate) async fn answer_request(shared: Arc<Shared>, request: Request<Incoming>) -> Answer {
    tokio::time::sleep(shared.manner.latency).await;
    if request.uri().path() == "/version" {
        let version = json!({
            "major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "", "gitTreeState": "", "buildDate": "",
            "goVersion": "", "compiler": "", "platform": "linux/amd64",
        });
        count_call(&shared, "get version");
        return json_answer(200, version.to_string());
    }
    let Some(asked) = Asked::of(&request) else {
        return refusal(&Refusal(
            404,
            "NotFound",
            "there is no such address".to_owned(),
        ));
    };
    count_call(&shared, &format!("{} {}", asked.verb, asked.key.kind));
    if let Some(status) = next_refusal(&shared, asked.verb) {
        return refusal(&Refusal(status, "Scripted", "refused by script".to_owned()));
    }
    if asked.verb == "watch" {
        let body = StreamBody::new(watching::lines(shared, asked));
        return build_answer(200, BodyExt::boxed(body));
    }
    let body = request
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes());
    let body: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or(Value::Null);
    serve_call(&shared, &asked, body).unwrap_or_else(|refused| refusal(&refused))
}

fn count_call(shared: &Shared, call: &str) {
    *lock(&shared.calls).entry(call.to_owned()).or_default() += 1;
}

fn next_refusal(shared: &Shared, verb: &str) -> Option<u16> {
    let mut refusals = lock(&shared.refusals);
    let refusals = refusals
        .as_mut()
        .filter(|it| it.left > 0 && verb != "watch")?;
    refusals.left -= 1;
    Some(refusals.status)
}

fn serve_call(shared: &Arc<Shared>, asked: &Asked, body: Value) -> Result<Answer, Refusal> {
    let store = &shared.store;
    let key = &asked.key;
    let missing = || {
        Refusal(
            404,
            "NotFound",
            format!("{} {:?} not found", key.kind, key.name),
        )
    };
    if asked.part.is_some() || key.kind == "nodes" {
        return Err(missing());
    }
    match asked.verb {
        "create" if key.kind == "selfsubjectaccessreviews" => {
            let mut review = body;
            review["status"] = json!({ "allowed": true });
            Ok(json_answer(201, review.to_string()))
        }
        "create" => {
            let name = body["metadata"]["name"].as_str().unwrap_or_default();
            let made = store.create(Key::of(&key.kind, &key.namespace, name), body.clone())?;
            if key.kind == "pods" {
                kubelet::start_pod(shared, &made);
            }
            Ok(json_answer(201, made.text.clone()))
        }
        "get" => store
            .get(key)
            .map(|found| json_answer(200, text(&found, asked).to_owned()))
            .ok_or_else(missing),
        "list" => Ok(list_objects(shared, asked)),
        "patch" => store
            .patch(key, &body)
            .map(|patched| json_answer(200, text(&patched, asked).to_owned())),
        _ => {
            let grace = body["gracePeriodSeconds"].as_u64().unwrap_or(GRACE);
            let uid = body["preconditions"]["uid"].as_str();
            let (object, is_gone) = store.delete(key, uid, grace)?;
            if !is_gone {
                kubelet::end_pod(shared, &object);
            }
            Ok(json_answer(200, object.text.clone()))
        }
    }
}

fn text<'a>(object: &'a Stored, asked: &Asked) -> &'a str {
    match asked.is_partial {
        true => &object.metadata,
        false => &object.text,
    }
}

fn list_objects(shared: &Shared, asked: &Asked) -> Answer {
    let limit = asked
        .query
        .get("limit")
        .and_then(|limit| limit.parse().ok());
    // The revision of the first page, and the last name.
    let token = asked
        .query
        .get("continue")
        .and_then(|token| token.split_once('/'));
    let after = token.map(|(_, name)| name);
    let first = Key {
        name: String::new(),
        ..asked.key.clone()
    };
    let page = shared.store.list(
        &first,
        after,
        limit.filter(|&limit| limit > 0).unwrap_or(usize::MAX),
        &asked.selector,
    );
    let revision = token.map_or_else(
        || page.revision.to_string(),
        |(revision, _)| revision.to_owned(),
    );
    let next = page
        .last
        .map(|name| format!("{revision}/{name}"))
        .unwrap_or_default();
    let items: Vec<&str> = page
        .objects
        .iter()
        .map(|object| text(object, asked))
        .collect();
    let metadata = json!({ "resourceVersion": revision, "continue": next });
    let (version, kind) = match asked.is_partial {
        true => ("meta.k8s.io/v1", "PartialObjectMetadataList"),
        false => ("v1", "List"),
    };
    let items = items.join(",");
    json_answer(
        200,
        format!(
            "{{\"apiVersion\":\"{version}\",\"kind\":\"{kind}\",\"metadata\":{metadata},\"items\":[{items}]}}"
        ),
    )
}

fn refusal(Refusal(code, reason, message): &Refusal) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason, "message": message,
    });
    json_answer(*code, status.to_string())
}

fn json_answer(status: u16, body: String) -> Answer {
    build_answer(status, Full::new(Bytes::from(body)).boxed())
}

fn build_answer(status: u16, body: BoxBody<Bytes, Infallible>) -> Answer {
    let answer = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    answer.body(body).unwrap()
}
