//! Looks up paths.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::Method;

use crate::route::{Access, Route, Verb};

/// Two routes have one address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two routes have the address {0}")]
pub struct AddressTwice(pub(crate) &'static str);

/// The routes of one path.
#[derive(Debug, Default)]
pub(super) struct Node {
    get: Option<Route>,
    post: Option<Route>,
    delete: Option<Route>,
}

impl Node {
    /// The route of a method; HEAD is answered like GET, unless GET opens something.
    pub(super) fn route(&self, method: &Method) -> Option<&Route> {
        if *method == Method::GET || (*method == Method::HEAD && !self.takes_tokens()) {
            self.get.as_ref()
        } else if *method == Method::POST {
            self.post.as_ref()
        } else if *method == Method::DELETE {
            self.delete.as_ref()
        } else {
            None
        }
    }

    /// The `Allow` header.
    pub(super) fn allow(&self) -> &'static str {
        match (
            self.get.is_some(),
            self.post.is_some(),
            self.delete.is_some(),
        ) {
            (true, true, true) if self.takes_tokens() => "GET, POST, DELETE, OPTIONS",
            (true, false, false) if self.takes_tokens() => "GET, OPTIONS",
            (true, true, true) => "GET, HEAD, POST, DELETE, OPTIONS",
            (true, true, false) => "GET, HEAD, POST, OPTIONS",
            (true, false, true) => "GET, HEAD, DELETE, OPTIONS",
            (true, false, false) => "GET, HEAD, OPTIONS",
            (false, true, true) => "POST, DELETE, OPTIONS",
            (false, true, false) => "POST, OPTIONS",
            (false, false, true) => "DELETE, OPTIONS",
            (false, false, false) => "OPTIONS",
        }
    }

    /// Whether the listener for agents serves this path.
    pub(super) fn for_agents(&self) -> bool {
        self.any().is_some_and(|route| route.for_agents)
    }

    /// Returns whether this path exists on the admin socket only.
    pub(super) fn is_on_machine(&self) -> bool {
        self.any().is_some_and(|route| route.on_machine)
    }

    /// Whether an MCP token acts at this path, and no cookie.
    pub(super) fn takes_tokens(&self) -> bool {
        self.any()
            .is_some_and(|route| route.access == Access::McpToken)
    }

    /// One of the routes, for what all of a path have in common.
    fn any(&self) -> Option<&Route> {
        let route = self.get.as_ref().or(self.post.as_ref());
        route.or(self.delete.as_ref())
    }
}

/// A path that exists.
pub(super) struct Found<'a> {
    pub(super) node: &'a Node,
    /// Parameters as they stand in the path, not decoded yet.
    pub(super) params: Vec<(String, String)>,
}

/// Takes repeated slashes in a path of the API for one: clients put an address that ends with a slash before a path that begins
/// with one. Other paths stay as they are.
pub(super) fn merge_slashes(path: &str) -> Cow<'_, str> {
    if !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let mut merged = String::with_capacity(path.len());
    for c in path.chars() {
        if c != '/' || !merged.ends_with('/') {
            merged.push(c);
        }
    }
    match merged.starts_with("/api/") {
        true => Cow::Owned(merged),
        false => Cow::Borrowed(path),
    }
}

/// All routes by their paths.
pub(super) struct Router {
    paths: matchit::Router<Node>,
}

impl Router {
    pub(super) fn new(routes: Vec<Route>) -> Result<Self, AddressTwice> {
        let mut nodes: BTreeMap<&'static str, Node> = BTreeMap::new();
        for route in routes {
            let path = route.path;
            let node = nodes.entry(path).or_default();
            let slot = match route.verb {
                Verb::Get => &mut node.get,
                Verb::Post => &mut node.post,
                Verb::Delete => &mut node.delete,
            };
            if slot.replace(route).is_some() {
                return Err(AddressTwice(path));
            }
        }
        let mut paths = matchit::Router::new();
        for (path, node) in nodes {
            paths.insert(path, node).map_err(|_| AddressTwice(path))?;
        }
        Ok(Self { paths })
    }

    /// Finds a path. `/api/v1/…` is `/api/…`, and one trailing slash does not matter.
    pub(super) fn find(&self, path: &str) -> Option<Found<'_>> {
        let path = match path.strip_suffix('/') {
            Some(stem) if !stem.is_empty() && !stem.ends_with('/') => stem,
            _ => path,
        };
        let unversioned;
        let path = match path.strip_prefix("/api/v1/") {
            Some(rest) => {
                unversioned = format!("/api/{rest}");
                &unversioned
            }
            None => path,
        };
        let matched = self.paths.at(path).ok()?;
        Some(Found {
            node: matched.value,
            params: matched
                .params
                .iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn router() -> Router {
        Router::new(crate::routes::all()).unwrap()
    }

    #[rstest]
    #[case("/api/health", true)]
    #[case("/api/health/", true)]
    #[case("/api/v1/health", true)]
    #[case("/api/v1/health/", true)]
    #[case("/healthz", true)]
    #[case("/healthz/", true)]
    #[case("/v1/healthz", false)]
    #[case("/api/v1/v1/health", false)]
    #[case("/api/v1", false)]
    #[case("/api/v2/health", false)]
    #[case("/api/health//", false)]
    #[case("/api//health", false)]
    #[case("//api/health", false)]
    #[case("/api/Health", false)]
    #[case("/api/%68ealth", false)]
    #[case("/api/../api/health", false)]
    #[case("/", false)]
    #[case("", false)]
    #[case("/api/admin/reconcile/objects/container", false)]
    #[case("/api/admin/reconcile/objects//alice", false)]
    #[case("/api/admin/reconcile/objects/container/alice/x", false)]
    fn paths_match_exactly(#[case] path: &str, #[case] exists: bool) {
        assert_eq!(router().find(path).is_some(), exists, "{path}");
    }

    #[rstest]
    #[case("//api/health", "/api/health")]
    #[case("/api//health", "/api/health")]
    #[case("///api///v1//health//", "/api/v1/health/")]
    #[case("/api/health", "/api/health")]
    #[case("//login", "//login")]
    #[case("//evil.example/api/", "//evil.example/api/")]
    fn repeated_slashes_of_the_api_are_one(#[case] path: &str, #[case] merged: &str) {
        assert_eq!(merge_slashes(path), merged);
    }

    #[test]
    fn parameters_are_the_segments_of_their_names() {
        let router = router();
        let found = router
            .find("/api/v1/admin/reconcile/objects/container/a%40b/")
            .unwrap();
        let expected = [("kind", "container"), ("name", "a%40b")];
        assert_eq!(
            found.params,
            expected.map(|(n, v)| (n.to_owned(), v.to_owned()))
        );
    }

    #[test]
    fn an_address_has_one_route() {
        let twice = [crate::routes::all(), crate::routes::all()];
        let error = Router::new(twice.into_iter().flatten().collect()).err();
        assert_eq!(error, Some(AddressTwice("/api/openapi.json")));
    }

    #[test]
    fn a_path_knows_all_its_methods() {
        let router = router();
        let node = |path| router.find(path).unwrap().node;
        assert_eq!(node("/api/config").allow(), "GET, HEAD, POST, OPTIONS");
        assert_eq!(node("/api/health").allow(), "GET, HEAD, OPTIONS");
        assert_eq!(node("/api/login").allow(), "POST, OPTIONS");
        assert!(node("/api/login").route(&Method::HEAD).is_none());
        assert!(node("/api/health").route(&Method::DELETE).is_none());
    }
}
