//! Requests to the double.

use std::collections::HashMap;

use http::Request;

use super::store::{Key, Stored};

/// Selection of objects by labels and fields.
#[derive(Debug, Default)]
pub(crate) struct Selector {
    /// Labels with their values; without one, any.
    labels: Vec<(String, Option<String>)>,
    /// Name, where a field says it.
    name: Option<String>,
    /// No object has such a field.
    never: bool,
}

impl Selector {
    fn of(query: &HashMap<String, String>) -> Self {
        let mut selector = Self::default();
        let parts = |key: &str| {
            let text = query.get(key).cloned().unwrap_or_default();
            let parts = text.split(',').filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect::<Vec<_>>()
        };
        for part in parts("labelSelector") {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key, Some(value.trim_start_matches('=').to_owned())),
                None => (part.as_str(), None),
            };
            selector.labels.push((key.to_owned(), value));
        }
        for part in parts("fieldSelector") {
            match part.split_once('=') {
                Some(("metadata.name", name)) => selector.name = Some(name.to_owned()),
                _ => selector.never = true,
            }
        }
        selector
    }

    pub(crate) fn selects(&self, object: &Stored) -> bool {
        let fits = |(key, value): &(String, Option<String>)| match value {
            Some(value) => object.labels.get(key) == Some(value),
            None => object.labels.contains_key(key),
        };
        !self.never
            && self
                .name
                .as_ref()
                .is_none_or(|name| *name == object.key.name)
            && self.labels.iter().all(fits)
    }
}

/// A request.
#[derive(Debug)]
pub(crate) struct Asked {
    /// `list`, `watch`, `get`, `create`, `patch`, `delete`.
    pub(crate) verb: &'static str,
    /// Place of the object; without a name, of all of them.
    pub(crate) key: Key,
    /// `log`, `exec`.
    pub(crate) part: Option<String>,
    pub(crate) selector: Selector,
    pub(crate) query: HashMap<String, String>,
    /// Metadata alone are wanted.
    pub(crate) is_partial: bool,
}

impl Asked {
    /// Reads an address such as `/api/v1/namespaces/x/pods/name`; `None`: it is another one.
    pub(crate) fn of<B>(request: &Request<B>) -> Option<Self> {
        let mut steps = request
            .uri()
            .path()
            .split('/')
            .filter(|step| !step.is_empty());
        match steps.next()? {
            "api" => drop(steps.next()),
            "apis" => drop((steps.next(), steps.next())),
            _ => return None,
        }
        let mut kind = steps.next()?;
        let mut namespace = "";
        if kind == "namespaces" {
            namespace = steps.next()?;
            kind = steps.next()?;
        }
        let name = steps.next();
        let query = request.uri().query().unwrap_or_default();
        let query: HashMap<String, String> = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let watch = query
            .get("watch")
            .is_some_and(|value| value == "true" || value == "1");
        let verb = match request.method().as_str() {
            "GET" if watch => "watch",
            "GET" if name.is_some() => "get",
            "GET" => "list",
            "POST" => "create",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => return None,
        };
        let accept = request.headers().get("accept");
        let is_partial = accept
            .and_then(|accept| accept.to_str().ok())
            .is_some_and(|accept| accept.contains("as=PartialObjectMetadata"));
        Some(Self {
            verb,
            key: Key::of(kind, namespace, name.unwrap_or_default()),
            part: steps.next().map(str::to_owned),
            selector: Selector::of(&query),
            query,
            is_partial,
        })
    }
}
