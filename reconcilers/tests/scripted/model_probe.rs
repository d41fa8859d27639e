//! Tests of models, against servers on loopback over real sockets.

use std::time::Duration;

use kit::http::{Answer, Asked, Scripted};
use reconcilers::drivers::model_probe::{Limits, ModelProbe};
use rstest::rstest;
use schema::adapter::ModelProtocol;
use schema::live::{ModelFault, ModelQuestion, ModelVerdict};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

const KEY: &str = "sk-hunter2";

fn reply(status: u16, body: impl ToString) -> Answer {
    Some((status, Vec::new(), body.to_string().into_bytes()))
}

fn answered() -> Answer {
    reply(200, json!({"choices": [{"message": {"content": "O"}}]}))
}

fn question(address: &str) -> ModelQuestion {
    ModelQuestion {
        protocol: ModelProtocol::Openai,
        address: address.parse().unwrap(),
        model: "large-1".to_owned(),
        key: Some(KEY.into()),
    }
}

async fn ask(question: &ModelQuestion) -> ModelVerdict {
    let limits = Limits {
        whole: Duration::from_secs(2),
        ..Limits::default()
    };
    let verdict = ModelProbe::new(limits).ask(question).await;
    assert!(!verdict.message.contains("hunter2"), "{verdict:?}");
    assert!(verdict.message.len() < 500, "{verdict:?}");
    assert_eq!(verdict.remedy.is_empty(), verdict.fault.is_none());
    verdict
}

/// Asks a server that answers as the script says, below `/v1`.
async fn ask_server(
    script: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (ModelVerdict, Vec<Asked>) {
    let server = Scripted::new(move |_, asked| script(asked)).await;
    let verdict = ask(&question(&format!("http://{}/v1/", server.address))).await;
    (verdict, server.asked())
}

#[tokio::test]
async fn model_that_answers_is_asked_for_one_token() {
    let (verdict, asked) = ask_server(|_| answered()).await;
    assert_eq!(verdict.fault, None, "{verdict:?}");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].path, "/v1/chat/completions");
    let bearer = format!("Bearer {KEY}");
    assert_eq!(asked[0].header("authorization"), Some(bearer.as_str()));
    let body: Value = serde_json::from_str(&asked[0].body).unwrap();
    assert_eq!(
        (&body["model"], &body["max_tokens"]),
        (&json!("large-1"), &json!(1))
    );
}

#[tokio::test]
async fn newer_name_of_the_limit_is_tried() {
    let (verdict, asked) = ask_server(|asked| {
        if asked.body.contains("max_completion_tokens") {
            return answered();
        }
        let message = "Unsupported parameter: use 'max_completion_tokens' instead.";
        reply(400, json!({"error": {"message": message}}))
    })
    .await;
    assert_eq!((verdict.fault, asked.len()), (None, 2), "{verdict:?}");
}

#[rstest]
#[case::key(401, json!({"error": {"message": "Incorrect API key provided: sk-hunter2"}}), ModelFault::Key)]
#[case::forbidden(403, json!({"message": "no"}), ModelFault::Key)]
#[case::model(404, json!({"error": {"message": "The model `large-1` does not exist", "code": "model_not_found"}}), ModelFault::Model)]
#[case::model_as_deepseek_says_it(400, json!({"error": {"message": "Model Not Exist"}}), ModelFault::Model)]
#[case::rate(429, json!({"error": {"message": "slow down"}}), ModelFault::Quota)]
#[case::quota(429, json!({"error": {"code": "insufficient_quota"}}), ModelFault::Quota)]
#[case::balance(402, json!({"error": {"message": "Insufficient Balance"}}), ModelFault::Quota)]
#[case::broken(500, json!({"error": "sk-hunter2 at fault"}), ModelFault::Answer)]
#[case::page(200, json!("<html>"), ModelFault::Answer)]
#[case::other(200, json!({"status": "ok"}), ModelFault::Answer)]
#[case::method(405, json!({}), ModelFault::Path)]
#[case::tls(400, json!("Client sent an HTTP request to an HTTPS server."), ModelFault::Scheme)]
#[tokio::test]
async fn failures_are_told_apart(
    #[case] status: u16,
    #[case] body: Value,
    #[case] expected: ModelFault,
) {
    let (verdict, _) = ask_server(move |_| reply(status, &body)).await;
    assert_eq!(verdict.fault, Some(expected), "{verdict:?}");
}

#[rstest]
#[case::list_of_models(200, ModelFault::Model)]
#[case::nothing(404, ModelFault::Path)]
#[tokio::test]
async fn bare_404_is_judged_by_the_list_of_models(
    #[case] models: u16,
    #[case] expected: ModelFault,
) {
    let (verdict, asked) = ask_server(move |asked| match asked.path.as_str() {
        "/v1/models" => reply(models, json!({"data": []})),
        _ => reply(404, "nothing here"),
    })
    .await;
    assert_eq!(verdict.fault, Some(expected), "{verdict:?}");
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let other = Scripted::new(|_, _| answered()).await;
    let target = format!("http://{}/v1/chat/completions", other.address);
    let (verdict, _) =
        ask_server(move |_| Some((307, vec![("location", target.clone())], Vec::new()))).await;
    assert_eq!(verdict.fault, Some(ModelFault::Address), "{verdict:?}");
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn slow_provider_is_given_up() {
    let (verdict, _) = ask_server(|_| None).await;
    assert_eq!(verdict.fault, Some(ModelFault::Timeout), "{verdict:?}");
}

#[tokio::test]
async fn long_answer_is_not_read_to_its_end() {
    let (verdict, _) = ask_server(|_| reply(200, "x".repeat(8 << 20))).await;
    assert_eq!(verdict.fault, Some(ModelFault::Answer), "{verdict:?}");
}

#[rstest]
#[case("http://169.254.169.254/v1")]
#[case("http://[fe80::1]/v1")]
#[case("http://[::ffff:169.254.169.254]/v1")]
#[case("http://100.100.100.200/v1")]
#[tokio::test]
async fn link_local_address_is_refused(#[case] address: &str) {
    let verdict = ask(&question(address)).await;
    assert_eq!(verdict.fault, Some(ModelFault::Address));
    assert!(verdict.message.contains("link-local"), "{verdict:?}");
}

#[tokio::test]
async fn closed_port_is_a_wrong_address() {
    let verdict = ask(&question("http://127.0.0.1:9/v1")).await;
    assert_eq!(verdict.fault, Some(ModelFault::Address), "{verdict:?}");
}

#[tokio::test]
async fn untrusted_certificate_is_named() {
    let server = Scripted::new(|_, _| answered()).await;
    let (_, config) = crate::oidc::tls::certified(false);
    let port = crate::oidc::tls::in_front_of(&server.address, config).await;
    let verdict = ask(&question(&format!("https://localhost:{port}/v1"))).await;
    assert_eq!(verdict.fault, Some(ModelFault::Certificate), "{verdict:?}");
    assert!(server.asked().is_empty());
}

#[rstest]
#[case("", true)]
#[case("/api/v1", false)]
#[tokio::test]
async fn server_without_the_api_is_told_from_none(#[case] path: &str, #[case] has_hint: bool) {
    let server = Scripted::new(|_, _| reply(404, "nothing here")).await;
    let address = format!("http://{}{path}", server.address);
    let verdict = ask(&question(&address)).await;
    assert_eq!(verdict.fault, Some(ModelFault::Path), "{verdict:?}");
    let hint = format!("; it usually ends in /v1: {address}/v1");
    let start = format!("{address} answers, but has no such API there");
    assert!(verdict.message.starts_with(&start), "{verdict:?}");
    assert_eq!(verdict.message.contains(&hint), has_hint, "{verdict:?}");
}

/// A server that takes everything for bad HTTP. Lives as long as the runtime.
async fn refuse_all() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    TaskTracker::new().spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut begin = [0; 1024];
            let _ = stream.read(&mut begin).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    port
}

#[tokio::test]
async fn wrong_scheme_is_named() {
    let server = Scripted::new(|_, _| answered()).await;
    let (_, config) = crate::oidc::tls::certified(false);
    let port = crate::oidc::tls::in_front_of(&server.address, config).await;
    let plain = refuse_all().await;
    for (address, other) in [
        (
            format!("https://127.0.0.1:{plain}/v1"),
            format!("http://127.0.0.1:{plain}/v1?"),
        ),
        (
            format!("http://localhost:{port}/v1"),
            format!("https://localhost:{port}/v1?"),
        ),
    ] {
        let verdict = ask(&question(&address)).await;
        assert_eq!(verdict.fault, Some(ModelFault::Scheme), "{verdict:?}");
        assert!(verdict.message.ends_with(&other), "{verdict:?}");
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn key_that_is_no_header_is_refused() {
    let mut bad = question("http://127.0.0.1:9/v1");
    bad.key = Some("a\nhunter2".into());
    assert_eq!(ask(&bad).await.fault, Some(ModelFault::Key));
}

#[rstest]
#[case("")]
#[case("/v1")]
#[case("/v1/")]
#[tokio::test]
async fn anthropic_is_asked_in_its_own_protocol(#[case] path: &str) {
    let server = Scripted::new(|_, asked| match asked.path.as_str() {
        "/v1/messages" => reply(200, json!({"content": [{"type": "text", "text": "O"}]})),
        _ => reply(404, json!({})),
    })
    .await;
    let mut asked = question(&format!("http://{}{path}", server.address));
    asked.protocol = ModelProtocol::Anthropic;
    assert_eq!(ask(&asked).await.fault, None);
    let sent = &server.asked()[0];
    assert_eq!(sent.header("x-api-key"), Some(KEY));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("authorization"), None);
}

#[tokio::test]
async fn unknown_model_of_anthropic_is_told() {
    let error =
        json!({"type": "error", "error": {"type": "not_found_error", "message": "model: large-1"}});
    let server = Scripted::new(move |_, _| reply(404, &error)).await;
    let mut asked = question(&format!("http://{}", server.address));
    asked.protocol = ModelProtocol::Anthropic;
    let verdict = ask(&asked).await;
    assert_eq!(verdict.fault, Some(ModelFault::Model));
    assert!(
        verdict.message.ends_with("(404): model: large-1"),
        "{verdict:?}"
    );
}
