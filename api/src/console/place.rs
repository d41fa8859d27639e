//! The places of the console, and who is sent elsewhere.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schema::user::Role;

use super::Viewer;

/// The first page of superadmins.
pub(super) const DASHBOARD: &str = "/admin/dashboard";
const MANAGE: &str = "/manage";
/// Longest path and query that a sign-in comes back to, in bytes.
const LONGEST_NEXT: usize = 1000;
/// Characters that are written in percents inside `next`.
const INSIDE_QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A place of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// `/`.
    Start,
    /// `/login`.
    SignIn,
    /// `/admin`.
    AdminStart,
    /// A page for accounts.
    Inside(Area),
    /// A file below `/assets/`, by its name.
    Asset(&'a str),
}

/// The kind of accounts that pages are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    /// Ordinary users.
    User,
    /// Superadmins.
    Admin,
}

/// Where a viewer is sent instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elsewhere {
    SignIn,
    Page(&'static str),
}

impl<'a> Place<'a> {
    /// Finds the place that a path names; a slash at its end makes no difference.
    pub(super) fn find(path: &'a str) -> Option<Self> {
        if path == "/" {
            return Some(Self::Start);
        }
        if let Some(name) = path.strip_prefix("/assets/") {
            return Some(Self::Asset(name));
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        let is_in = |area: &str| {
            let rest = path.strip_prefix(area);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match path {
            "/login" => Some(Self::SignIn),
            "/admin" => Some(Self::AdminStart),
            "/initializing" => Some(Self::Inside(Area::User)),
            _ if is_in(MANAGE) => Some(Self::Inside(Area::User)),
            _ if is_in("/admin") => Some(Self::Inside(Area::Admin)),
            _ => None,
        }
    }

    /// The pattern by which logs and metrics name it.
    pub(crate) fn pattern(self) -> &'static str {
        match self {
            Self::Start => "/",
            Self::SignIn => "/login",
            Self::AdminStart | Self::Inside(Area::Admin) => "/admin/{section}",
            Self::Inside(Area::User) => "/manage",
            Self::Asset(_) => "/assets/{file}",
        }
    }
}

impl Area {
    /// Tells where a viewer is sent; `None`: the page is for this viewer.
    pub(super) fn leads_to(self, viewer: Viewer) -> Option<Elsewhere> {
        match (self, viewer) {
            (_, Viewer::Guest) => Some(Elsewhere::SignIn),
            (Self::User, Viewer::Account(Role::Superadmin)) => Some(Elsewhere::Page(DASHBOARD)),
            (Self::Admin, Viewer::Account(Role::User)) => Some(Elsewhere::Page(MANAGE)),
            (_, Viewer::Unknown)
            | (Self::User, Viewer::Account(Role::User))
            | (Self::Admin, Viewer::Account(Role::Superadmin)) => None,
        }
    }
}

/// The path of the sign-in that comes back to `path` and `query`; one that is too long is not come back to.
pub(super) fn sign_in_and_return(path: &str, query: &str) -> String {
    let next = match query {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    if next.len() > LONGEST_NEXT {
        return "/login".to_owned();
    }
    format!("/login?next={}", utf8_percent_encode(&next, INSIDE_QUERY))
}

/// The path that a viewer who is signed in already is sent to: `next` of the query when it is an own path, else the first page.
pub(super) fn after_sign_in(query: &str, role: Role) -> String {
    let next = query.split('&').find_map(|pair| pair.strip_prefix("next="));
    let next = next.and_then(|next| percent_decode_str(next).decode_utf8().ok());
    // Other characters could lead to another site, or are no part of an address.
    let is_plain = |next: &str| {
        let mut bytes = next.bytes();
        bytes.all(|byte| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte))
    };
    let is_own = |next: &str| next.starts_with('/') && !next.starts_with("//") && is_plain(next);
    match (next.filter(|next| is_own(next)), role) {
        (Some(next), _) => next.into_owned(),
        (None, Role::User) => MANAGE.to_owned(),
        (None, Role::Superadmin) => DASHBOARD.to_owned(),
    }
}
