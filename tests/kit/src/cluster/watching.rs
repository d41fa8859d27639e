//! Watches.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use hyper::body::Frame;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Shared;
use super::request::Asked;
use super::store::Change;

/// Longest time of a watch that names none.
const LONGEST: u64 = 1800;

/// Lines of changes after the version that was asked for, until the time is over.
pub(crate) fn lines(
    shared: Arc<Shared>,
    asked: Asked,
) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    let number = |key: &str| {
        asked
            .query
            .get(key)
            .and_then(|text| text.parse::<u64>().ok())
    };
    let begin = Watch {
        after: number("resourceVersion").unwrap_or(0),
        end: Instant::now() + Duration::from_secs(number("timeoutSeconds").unwrap_or(LONGEST)),
        bookmarks: asked
            .query
            .get("allowWatchBookmarks")
            .is_some_and(|it| it == "true"),
        shared,
        asked,
        is_over: false,
    };
    futures::stream::unfold(begin, |mut watch| async move {
        let text = watch.next().await?;
        Some((Ok(Frame::data(Bytes::from(text))), watch))
    })
}

struct Watch {
    shared: Arc<Shared>,
    asked: Asked,
    after: u64,
    end: Instant,
    bookmarks: bool,
    is_over: bool,
}

impl Watch {
    /// The next lines; `None`: the watch is over.
    async fn next(&mut self) -> Option<String> {
        let mut newest = self.shared.store.subscribe();
        let bookmark = Instant::now() + self.shared.manner.bookmarks;
        while !self.is_over {
            newest.borrow_and_update();
            let Some((changes, revision)) = self.shared.store.changes(self.after) else {
                self.is_over = true;
                let status = json!({ "type": "ERROR", "object": {
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
                    "message": "too old resource version",
                }});
                return Some(format!("{status}\n"));
            };
            self.after = revision;
            let lines: String = changes
                .iter()
                .filter_map(|change| self.line(change))
                .collect();
            if !lines.is_empty() {
                return Some(lines);
            }
            let until = self.end.min(bookmark);
            match timeout_at(until, newest.changed()).await {
                Ok(_) => {}
                Err(_) if until == self.end => return None,
                Err(_) if self.bookmarks => return Some(self.bookmark()),
                Err(_) => sleep_until(self.end).await,
            }
        }
        None
    }

    fn line(&self, change: &Change) -> Option<String> {
        let object = &change.object;
        let (wanted, found) = (&self.asked.key, &object.key);
        let is_there = wanted.kind == found.kind && wanted.namespace == found.namespace;
        if !is_there || !self.asked.selector.selects(object) {
            return None;
        }
        let text = match self.asked.is_partial {
            true => &object.metadata,
            false => &object.text,
        };
        Some(format!(
            "{{\"type\":\"{}\",\"object\":{text}}}\n",
            change.kind
        ))
    }

    fn bookmark(&self) -> String {
        let object = json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": { "resourceVersion": self.after.to_string() },
        });
        format!("{}\n", json!({ "type": "BOOKMARK", "object": object }))
    }
}
