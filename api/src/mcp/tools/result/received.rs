//! A result that another replica has made.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{CallResult, Content, Share};

/// A result as it comes from another replica.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::mcp::tools) struct Received {
    content: Vec<Box<RawValue>>,
    #[serde(default)]
    structured_content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

#[derive(Debug, Default, Deserialize)]
struct Meta {
    #[serde(rename = "agentyard/untrusted", default)]
    untrusted: bool,
    #[serde(rename = "agentyard/facts", default)]
    facts: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

impl From<Received> for CallResult {
    fn from(received: Received) -> Self {
        let Received {
            content,
            structured_content,
            is_error,
            meta,
        } = received;
        let only = match &content[..] {
            [only] if structured_content.is_some() => serde_json::from_str::<Text>(only.get()).ok(),
            _ => None,
        };
        let aside = structured_content.is_none();
        Self {
            // Its facts are shown as they were there: beside a text alone.
            content: match only {
                Some(Text { text }) => vec![Content::Text(text)],
                None => content.into_iter().map(Content::Other).collect(),
            },
            facts: structured_content.or(meta.facts),
            aside,
            is_error,
            untrusted: meta.untrusted,
            share: Share::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::mcp::handshake::Told;

    #[test]
    fn result_is_the_same_after_it_was_passed_on() {
        let results = || {
            let picture = RawValue::from_string(r#"{"type":"image","data":"x"}"#.to_owned());
            let mut shown = CallResult::text("seen");
            shown.content.push(Content::Other(picture.unwrap()));
            [
                CallResult::text("done").with(&json!({"a": 1})),
                CallResult::text("done").with_aside(&json!({"a": 1})),
                CallResult::quoting(Some("A page".to_owned()), "its text"),
                CallResult::error("no"),
                shown,
            ]
        };
        let text = |result: CallResult| serde_json::to_string(&Told::from(result)).unwrap();
        // Marks are random.
        let plain = |text: &str| -> Value {
            let mut value: Value = serde_json::from_str(text).unwrap();
            for part in value["content"].as_array_mut().unwrap() {
                if part["text"]
                    .as_str()
                    .is_some_and(|it| it.contains("untrusted"))
                {
                    part["text"] = json!("marked");
                }
            }
            value
        };
        for result in results() {
            let sent = text(result);
            let received: Received = serde_json::from_str(&sent).unwrap();
            assert_eq!(plain(&text(received.into())), plain(&sent));
        }
    }
}
