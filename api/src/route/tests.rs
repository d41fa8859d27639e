use std::collections::HashSet;

use super::matrix::{Expect, matrix};
use super::*;
use crate::routes::all;

#[test]
fn every_route_has_its_own_id_and_address_and_says_what_it_is() {
    let ids: HashSet<_> = all().iter().map(|route| route.id).collect();
    let addresses: HashSet<_> = all().iter().map(|r| (r.verb, r.path)).collect();
    assert_eq!((ids.len(), addresses.len()), (all().len(), all().len()));
    for route in all() {
        assert!(
            !route.title.is_empty() && !route.title.ends_with('.'),
            "{route:?}"
        );
        assert!(route.description.ends_with('.'), "{route:?}");
    }
}

#[test]
fn l20_every_change_with_a_session_needs_a_token() {
    for route in all() {
        let token = route.access == Access::McpToken;
        let exempt = token || ["login", "logout"].contains(&route.id);
        assert_eq!(route.csrf(), route.changes() && !exempt, "{route:?}");
    }
}

#[test]
fn l63_strangers_send_little() {
    for route in all() {
        let stranger = matches!(route.access, Access::Public | Access::Visitor);
        assert!(
            !stranger || route.body_limit <= ANONYMOUS_BODY_LIMIT,
            "{route:?}"
        );
    }
}

#[test]
fn administration_is_for_superadmins_only() {
    for route in all() {
        let admin = route.path.starts_with("/api/admin/") || route.path == "/api/config";
        assert_eq!(route.access == Access::Superadmin, admin, "{route:?}");
    }
}

#[test]
fn every_superadmin_row_says_which_tokens_may_use_it() {
    for route in all() {
        let superadmin = route.access == Access::Superadmin;
        assert_eq!(route.tokens.is_some(), superadmin, "{route:?}");
        let changes = route.changes();
        assert!(!changes || route.tokens != Some(Tokens::Read), "{route:?}");
    }
    let none: Vec<_> = all()
        .into_iter()
        .filter(|route| route.tokens == Some(Tokens::None))
        .map(|route| route.id)
        .collect();
    let expected = [
        "superadmins_password",
        "api_tokens_list",
        "api_tokens_create",
        "api_tokens_revoke",
        "audit_export",
    ];
    assert_eq!(none, expected);
}

#[test]
fn the_matrix_covers_every_route_for_everybody() {
    let routes = all();
    let cases = matrix(&routes);
    for route in &routes {
        let of_route = cases.iter().filter(|case| case.route.id == route.id);
        assert_eq!(
            of_route.count(),
            if route.changes() { 20 } else { 5 },
            "{route:?}"
        );
    }
    assert!(cases.iter().any(|case| case.expect == Expect::WrongRole));
}
