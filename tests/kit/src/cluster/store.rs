//! Objects and their changes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use schema::clock::{Clock, SystemClock};
use schema::ids::Uid;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::lock;
use super::request::Selector;

/// Changes that a watch can go back to.
const CHANGES: usize = 200_000;

/// Place of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// `pods`.
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn of(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// An object as text, whole and its metadata alone: few of very many are read, and then by many.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) revision: u64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) text: String,
    pub(crate) metadata: String,
}

impl Stored {
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) kind: &'static str,
    pub(crate) object: Arc<Stored>,
}

/// Refusal: code, reason and sentence.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) u16, pub(crate) &'static str, pub(crate) String);

#[derive(Debug, Default)]
struct Inner {
    revision: u64,
    objects: BTreeMap<Key, Arc<Stored>>,
    /// Names of Pods by the uid of their owner.
    owned: HashMap<String, Vec<Key>>,
    changes: VecDeque<Change>,
    /// Changes up to this one are forgotten.
    forgotten: u64,
}

#[derive(Debug)]
pub(crate) struct Store {
    inner: Mutex<Inner>,
    newest: watch::Sender<u64>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            inner: Mutex::default(),
            newest: watch::Sender::new(0),
        }
    }
}

/// A page of a listing.
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Stored>>,
    pub(crate) revision: u64,
    /// Last key of the page, when there are more.
    pub(crate) last: Option<String>,
}

impl Store {
    pub(crate) fn count(&self, kind: &str) -> usize {
        let inner = lock(&self.inner);
        inner.objects.keys().filter(|key| key.kind == kind).count()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Stored>> {
        lock(&self.inner).objects.get(key).cloned()
    }

    pub(crate) fn list(
        &self,
        first: &Key,
        after: Option<&str>,
        limit: usize,
        selector: &Selector,
    ) -> Page {
        let inner = lock(&self.inner);
        let mut page = Page {
            objects: Vec::new(),
            revision: inner.revision,
            last: None,
        };
        let from = Key {
            name: after.unwrap_or_default().to_owned(),
            ..first.clone()
        };
        for (key, object) in inner.objects.range(from..) {
            if (&key.kind, &key.namespace) != (&first.kind, &first.namespace) {
                break;
            }
            if after == Some(key.name.as_str()) || !selector.selects(object) {
                continue;
            }
            if page.objects.len() == limit {
                page.last = page.objects.last().map(|last| last.key.name.clone());
                break;
            }
            page.objects.push(Arc::clone(object));
        }
        page
    }

    pub(crate) fn create(&self, key: Key, mut object: Value) -> Result<Arc<Stored>, Refusal> {
        let mut inner = lock(&self.inner);
        if inner.objects.contains_key(&key) {
            let text = format!("{} {:?} already exists", key.kind, key.name);
            return Err(Refusal(409, "AlreadyExists", text));
        }
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(key.name);
        metadata["namespace"] = json!(key.namespace);
        metadata["uid"] = json!(new_uid());
        metadata["creationTimestamp"] = json!(SystemClock.now().to_rfc3339());
        if key.kind == "pods" {
            object["status"] = json!({ "phase": "Pending" });
        }
        Ok(self.store_object(&mut inner, key, object, "ADDED"))
    }

    pub(crate) fn patch(&self, key: &Key, patch: &Value) -> Result<Arc<Stored>, Refusal> {
        let mut inner = lock(&self.inner);
        let Some(found) = inner.objects.get(key) else {
            return Err(not_found(key));
        };
        let asked = |field: &str| patch["metadata"][field].as_str().map(str::to_owned);
        if asked("resourceVersion").is_some_and(|asked| asked != found.revision.to_string()) {
            let text =
                "the object has been modified; please apply your changes to the latest version";
            return Err(Refusal(409, "Conflict", text.to_owned()));
        }
        if asked("uid").is_some_and(|asked| asked != found.uid) {
            return Err(Refusal(
                409,
                "Conflict",
                "the uid is another one".to_owned(),
            ));
        }
        let mut object = found.value();
        merge_patch(&mut object, patch);
        let key = key.clone();
        Ok(self.store_object(&mut inner, key, object, "MODIFIED"))
    }

    /// Begins a deletion; `true`: the object is gone.
    pub(crate) fn delete(
        &self,
        key: &Key,
        uid: Option<&str>,
        grace: u64,
    ) -> Result<(Arc<Stored>, bool), Refusal> {
        let mut inner = lock(&self.inner);
        let Some(found) = inner.objects.get(key).cloned() else {
            return Err(not_found(key));
        };
        if uid.is_some_and(|uid| uid != found.uid) {
            return Err(Refusal(
                409,
                "Conflict",
                "the uid in the precondition is another one".to_owned(),
            ));
        }
        let mut object = found.value();
        let runs = key.kind == "pods" && object["status"]["phase"] != "Pending";
        if runs && grace > 0 {
            object["metadata"]["deletionTimestamp"] = json!(SystemClock.now().to_rfc3339());
            object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
            let kept = self.store_object(&mut inner, key.clone(), object, "MODIFIED");
            return Ok((kept, false));
        }
        let gone = self.remove_object(&mut inner, key);
        let owned = inner.owned.remove(&found.uid).unwrap_or_default();
        for key in owned {
            self.remove_object(&mut inner, &key);
        }
        Ok((gone.unwrap_or(found), true))
    }

    /// Takes an object away for good, if it is still this one.
    pub(crate) fn finish(&self, key: &Key, uid: &str) {
        let mut inner = lock(&self.inner);
        if inner.objects.get(key).is_some_and(|found| found.uid == uid) {
            self.remove_object(&mut inner, key);
        }
    }

    fn remove_object(&self, inner: &mut Inner, key: &Key) -> Option<Arc<Stored>> {
        let found = inner.objects.remove(key)?;
        inner.revision += 1;
        let mut object = found.value();
        object["metadata"]["resourceVersion"] = json!(inner.revision.to_string());
        let stored = new_stored(key.clone(), inner.revision, &object);
        self.record_change(inner, "DELETED", &stored);
        Some(stored)
    }

    fn store_object(
        &self,
        inner: &mut Inner,
        key: Key,
        mut object: Value,
        change: &'static str,
    ) -> Arc<Stored> {
        inner.revision += 1;
        object["metadata"]["resourceVersion"] = json!(inner.revision.to_string());
        let stored = new_stored(key.clone(), inner.revision, &object);
        if change == "ADDED"
            && let Some(owner) = object["metadata"]["ownerReferences"][0]["uid"].as_str()
        {
            inner
                .owned
                .entry(owner.to_owned())
                .or_default()
                .push(key.clone());
        }
        inner.objects.insert(key, Arc::clone(&stored));
        self.record_change(inner, change, &stored);
        stored
    }

    fn record_change(&self, inner: &mut Inner, kind: &'static str, object: &Arc<Stored>) {
        let revision = inner.revision;
        inner.changes.push_back(Change {
            revision,
            kind,
            object: Arc::clone(object),
        });
        if inner.changes.len() > CHANGES
            && let Some(oldest) = inner.changes.pop_front()
        {
            inner.forgotten = oldest.revision;
        }
        self.newest.send_replace(revision);
    }

    pub(crate) fn forget_changes(&self) {
        let mut inner = lock(&self.inner);
        inner.changes.clear();
        inner.forgotten = inner.revision;
    }

    /// The changes after a revision, with the newest one; `None`: they are forgotten.
    pub(crate) fn changes(&self, after: u64) -> Option<(Vec<Change>, u64)> {
        let inner = lock(&self.inner);
        if after < inner.forgotten {
            return None;
        }
        let from = inner
            .changes
            .partition_point(|change| change.revision <= after);
        Some((
            inner.changes.range(from..).cloned().collect(),
            inner.revision,
        ))
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

fn new_stored(key: Key, revision: u64, object: &Value) -> Arc<Stored> {
    let metadata = &object["metadata"];
    let labels = metadata["labels"].as_object().into_iter().flatten();
    let labels =
        labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
    let alone = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata,
    });
    Arc::new(Stored {
        uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
        labels: labels.collect(),
        text: object.to_string(),
        metadata: alone.to_string(),
        key,
        revision,
    })
}

fn not_found(key: &Key) -> Refusal {
    Refusal(
        404,
        "NotFound",
        format!("{} {:?} not found", key.kind, key.name),
    )
}

/// In the form that the cluster has.
fn new_uid() -> String {
    let random = format!(
        "{:0<32}",
        Uid::random()
            .as_str()
            .replace(|c: char| !c.is_ascii_hexdigit(), "0")
    );
    let part = |from: usize, to: usize| random.get(from..to).unwrap_or_default().to_owned();
    [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ]
    .join("-")
}

/// A merge patch: RFC 7386.
fn merge_patch(object: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            if let Some(object) = object.as_object_mut() {
                object.remove(key);
            }
        } else {
            merge_patch(&mut object[key.as_str()], value);
        }
    }
}
