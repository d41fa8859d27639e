//! What a client is told while its answer takes long.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{answer, events};

/// The progress of a request, if its client has asked for it.
#[derive(Debug)]
pub(super) struct Progress {
    token: Option<Box<RawValue>>,
    begun: Instant,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "progressToken")]
    token: Box<RawValue>,
}

/// A token is a text or a number.
fn is_token(raw: &RawValue) -> bool {
    raw.get()
        .starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'))
}

impl Progress {
    /// That of a request with these parameters, which begins now.
    pub(super) fn of(params: Option<&RawValue>) -> Self {
        let params = params.and_then(|raw| serde_json::from_str::<Params>(raw.get()).ok());
        let token = params.map(|params| params.meta.token);
        Self {
            token: token.filter(|token| is_token(token)),
            begun: Instant::now(),
        }
    }

    /// That the answer still comes: for how many seconds it has been waited for.
    pub(super) fn news(&self) -> Bytes {
        let Some(token) = &self.token else {
            return events::comment();
        };
        let params = json!({"progressToken": token, "progress": self.begun.elapsed().as_secs()});
        events::message(answer::notification(
            "notifications/progress",
            Some(&params),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use tokio::time::advance;

    use super::*;

    #[rstest]
    #[case(r#"{"_meta":{"progressToken":"a"}}"#, Some(r#""progressToken":"a""#))]
    #[case(r#"{"_meta":{"progressToken":7}}"#, Some(r#""progressToken":7"#))]
    #[case(r#"{"_meta":{"progressToken":{}}}"#, None)]
    #[case(r#"{"_meta":{}}"#, None)]
    #[case("{}", None)]
    #[tokio::test(start_paused = true)]
    async fn whoever_asks_is_told(#[case] params: &str, #[case] expected: Option<&str>) {
        let params = RawValue::from_string(params.to_owned()).unwrap();
        let progress = Progress::of(Some(&params));
        advance(Duration::from_secs(30)).await;
        let said = String::from_utf8(progress.news().to_vec()).unwrap();
        match expected {
            None => assert_eq!(said, ":\n\n"),
            Some(part) => {
                assert!(
                    said.contains(part) && said.contains(r#""progress":30"#),
                    "{said}"
                );
            }
        }
    }
}
