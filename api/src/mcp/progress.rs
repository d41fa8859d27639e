//! What a client is told while its answer takes long.

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::message::Params;
use super::{answer, events};

/// The progress of a request, if its client has asked for it.
#[derive(Debug)]
pub(super) struct Progress {
    token: Option<Box<RawValue>>,
    begun: Instant,
}

/// A token is a text or a number.
fn is_token(raw: &RawValue) -> bool {
    raw.get()
        .starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'))
}

impl Progress {
    /// That of a request with these parameters, which begins now.
    pub(super) fn of(params: Option<&Params>) -> Self {
        let token = params.and_then(|params| params.meta.progress_token.as_ref());
        Self {
            token: token.filter(|token| is_token(token)).cloned(),
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
        let progress = Progress::of(Some(&Params::read(params)));
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
