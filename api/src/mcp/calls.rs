//! Calls that are under way, so that they can be cancelled. A call is known by its session and the id of its request: without a
//! session ids of several clients would be one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

/// A session's id, and that of a request in it as it was sent.
type Name = (String, String);

/// The calls. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<HashMap<Name, Arc<CancellationToken>>>>);

/// A call that is under way; it is forgotten when this is dropped.
#[derive(Debug)]
pub struct Call {
    calls: Calls,
    name: Option<Name>,
    cancelled: Arc<CancellationToken>,
}

impl Calls {
    /// A call has begun.
    pub fn begin(&self, session: Option<&str>, id: &RawValue) -> Call {
        let cancelled = Arc::new(CancellationToken::new());
        let name = session.map(|session| (session.to_owned(), id.get().to_owned()));
        if let Some(name) = &name {
            self.lock().insert(name.clone(), Arc::clone(&cancelled));
        }
        Call {
            calls: self.clone(),
            name,
            cancelled,
        }
    }

    /// Cancels a call that is under way; returns false if it is not.
    pub fn cancel(&self, session: &str, id: &RawValue) -> bool {
        let name = (session.to_owned(), id.get().to_owned());
        let calls = self.lock();
        let cancelled = calls.get(&name);
        cancelled.inspect(|call| call.cancel()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Arc<CancellationToken>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    /// Waits until the client has cancelled it.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // A client that uses an id twice has another call under it by now.
        let Some(name) = &self.name else {
            return;
        };
        let mut calls = self.calls.lock();
        let present = calls.get(name);
        if present.is_some_and(|present| Arc::ptr_eq(present, &self.cancelled)) {
            calls.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn only_the_call_of_that_session_is_cancelled() {
        let calls = Calls::default();
        let ours = calls.begin(Some("s1"), &id("1"));
        let text = calls.begin(Some("s1"), &id("\"1\""));
        let others = calls.begin(Some("s2"), &id("1"));
        let nobodys = calls.begin(None, &id("1"));
        calls.cancel("s1", &id("1"));
        calls.cancel("s3", &id("1"));
        let all = [&ours, &text, &others, &nobodys].map(|call| call.cancelled.is_cancelled());
        assert_eq!(all, [true, false, false, false]);
        drop((ours, text, others, nobodys));
        assert!(calls.lock().is_empty());
    }
}
