//! Every route × every sender × every CSRF state, with the outcome its row demands.

use schema::api_token::Role;
use strum::VariantArray;

use super::{Access, Route, Tokens};

/// Who sends a request in the access matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::VariantArray)]
pub(crate) enum Who {
    /// Without a cookie.
    Anonymous,
    /// With the session of an ordinary user.
    OrdinaryUser,
    /// With the session of a superadmin.
    Superadmin,
    /// With an API token that reads.
    ReadToken,
    /// With an API token that also changes.
    AdminToken,
}

impl Who {
    /// The account of its session.
    pub(crate) fn account(self) -> Option<&'static str> {
        match self {
            Self::Anonymous | Self::ReadToken | Self::AdminToken => None,
            Self::OrdinaryUser => Some("alice"),
            Self::Superadmin => Some("root"),
        }
    }

    /// The role of its API token.
    pub(crate) fn token_role(self) -> Option<Role> {
        match self {
            Self::Anonymous | Self::OrdinaryUser | Self::Superadmin => None,
            Self::ReadToken => Some(Role::Read),
            Self::AdminToken => Some(Role::Admin),
        }
    }
}

/// The CSRF token a request of the access matrix carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::VariantArray)]
pub(crate) enum Token {
    /// A valid one.
    Valid,
    /// None.
    Missing,
    /// A wrong one.
    Wrong,
    /// A valid one, but in the query, where it must not count.
    InQuery,
}

/// How far a request of the access matrix must come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Expect {
    /// 401 `not_signed_in`.
    NotSignedIn,
    /// 401 `token_invalid`.
    TokenInvalid,
    /// 403 `wrong_role`.
    WrongRole,
    /// 403 `csrf_invalid`.
    CsrfInvalid,
    /// It reaches the handler.
    Handler,
}

/// One case of the access matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    /// The route.
    pub(crate) route: &'a Route,
    /// The sender.
    pub(crate) who: Who,
    /// The token sent along (with changes only; GET has the one case [`Token::Missing`]).
    pub(crate) token: Token,
    /// The outcome its row demands.
    pub(crate) expect: Expect,
}

/// Every route with every sender and token, and the outcome its row demands.
pub(crate) fn matrix(routes: &[Route]) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for route in routes {
        let tokens = if route.changes() {
            Token::VARIANTS
        } else {
            &[Token::Missing]
        };
        for &who in Who::VARIANTS {
            for &token in tokens {
                let expect = expectation(route, who, token);
                cases.push(Case {
                    route,
                    who,
                    token,
                    expect,
                });
            }
        }
    }
    cases
}

fn expectation(route: &Route, who: Who, token: Token) -> Expect {
    let role = match (route.access, who) {
        (Access::Public | Access::Visitor, _) => return Expect::Handler,
        // A session is no token.
        (Access::McpToken, _) => return Expect::TokenInvalid,
        (_, Who::Anonymous)
        | (Access::Login | Access::OrdinaryUser, Who::ReadToken | Who::AdminToken) => {
            Expect::NotSignedIn
        }
        // Whatever stands in place of a CSRF token.
        (Access::Superadmin, Who::ReadToken | Who::AdminToken) => {
            return match (route.tokens, who) {
                (Some(Tokens::Read), _) | (Some(Tokens::Admin), Who::AdminToken) => Expect::Handler,
                _ => Expect::WrongRole,
            };
        }
        (Access::Login, Who::OrdinaryUser | Who::Superadmin)
        | (Access::OrdinaryUser, Who::OrdinaryUser)
        | (Access::Superadmin, Who::Superadmin) => Expect::Handler,
        (Access::OrdinaryUser, Who::Superadmin) | (Access::Superadmin, Who::OrdinaryUser) => {
            Expect::WrongRole
        }
    };
    if role == Expect::Handler && route.csrf() && token != Token::Valid {
        return Expect::CsrfInvalid;
    }
    role
}
