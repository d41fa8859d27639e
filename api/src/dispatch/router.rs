//! Looks up paths.

use http::Method;

use super::registry::RegistryError;
use crate::access::{Route, TABLE};

/// The routes of one path.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Node {
    get: Option<&'static Route>,
    post: Option<&'static Route>,
}

impl Node {
    /// The route of a method; HEAD is answered like GET.
    pub(super) fn route(&self, method: &Method) -> Option<&'static Route> {
        if *method == Method::GET || *method == Method::HEAD {
            self.get
        } else if *method == Method::POST {
            self.post
        } else {
            None
        }
    }

    /// The `Allow` header.
    pub(super) fn allow(&self) -> &'static str {
        match (self.get.is_some(), self.post.is_some()) {
            (true, true) => "GET, HEAD, POST, OPTIONS",
            (true, false) => "GET, HEAD, OPTIONS",
            (false, true) => "POST, OPTIONS",
            (false, false) => "OPTIONS",
        }
    }

    /// Whether the listener for agents serves this path.
    pub(super) fn for_agents(&self) -> bool {
        self.get.or(self.post).is_some_and(|route| route.for_agents)
    }
}

/// A path that exists.
pub(super) struct Found {
    pub(super) node: Node,
    /// Parameters as they stand in the path, not decoded yet.
    pub(super) params: Vec<(String, String)>,
}

/// All paths of the table.
pub(super) struct Router {
    paths: matchit::Router<Node>,
}

impl Router {
    pub(super) fn new() -> Result<Self, RegistryError> {
        let mut nodes: Vec<(&'static str, Node)> = Vec::new();
        for route in TABLE {
            let at = match nodes.iter().position(|(path, _)| *path == route.path) {
                Some(at) => at,
                None => {
                    nodes.push((route.path, Node::default()));
                    nodes.len() - 1
                }
            };
            let Some((_, node)) = nodes.get_mut(at) else {
                continue;
            };
            let slot = if route.post {
                &mut node.post
            } else {
                &mut node.get
            };
            if slot.replace(route).is_some() {
                return Err(RegistryError::AddressTwice(route.path));
            }
        }
        let mut paths = matchit::Router::new();
        for (path, node) in nodes {
            paths
                .insert(path, node)
                .map_err(|_| RegistryError::AddressTwice(path))?;
        }
        Ok(Self { paths })
    }

    /// Finds a path. `/api/v1/…` is `/api/…`, and one trailing slash does not matter.
    pub(super) fn find(&self, path: &str) -> Option<Found> {
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
            node: *matched.value,
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
        assert_eq!(
            Router::new().unwrap().find(path).is_some(),
            exists,
            "{path}"
        );
    }

    #[test]
    fn parameters_are_the_segments_of_their_names() {
        let router = Router::new().unwrap();
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
    fn a_path_knows_all_its_methods() {
        let router = Router::new().unwrap();
        let node = |path| router.find(path).unwrap().node;
        assert_eq!(node("/api/config").allow(), "GET, HEAD, POST, OPTIONS");
        assert_eq!(node("/api/health").allow(), "GET, HEAD, OPTIONS");
        assert_eq!(node("/api/login").allow(), "POST, OPTIONS");
        assert!(node("/api/login").route(&Method::HEAD).is_none());
        assert!(node("/api/health").route(&Method::DELETE).is_none());
    }
}
