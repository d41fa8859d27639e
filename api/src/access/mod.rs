//! The table of routes: every method and path with who may use it, and how.
//!
//! The table is the only place that grants access. The dispatcher reads it, the handler registry
//! refuses a handler whose caller type does not fit its row, and [`matrix()`] derives the test of
//! every route against every role and CSRF state from it.

mod matrix;
mod table;

use http::Method;

pub use matrix::{Case, Expect, Token, Who, matrix};
pub use table::TABLE;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Anybody; no session is looked up.
    Public,
    /// Anybody; a session is looked up when a cookie is there. One that cannot be looked up is none.
    Visitor,
    /// Any session.
    Login,
    /// A session of an ordinary user.
    OrdinaryUser,
    /// A session of a superadmin, or the admin socket.
    Superadmin,
}

/// In which authentication modes a route works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Modes {
    /// In every mode.
    Any,
    /// In local mode only; `mode_forbidden` elsewhere.
    LocalOnly,
}

/// What a route reads of the request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyKind {
    /// Nothing; a body is left unread.
    None,
    /// Named fields: form-urlencoded, multipart with text parts, or a JSON object.
    Fields,
    /// Multipart with one file, and named fields beside it.
    Upload,
}

/// Names of the routes, one for each row.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)] // The rows of the table say what each one is.
pub enum Op {
    Login,
    LoginMode,
    LoginOidc,
    Logout,
    UserInfo,
    UserInitStatus,
    UserPassword,
    Csrf,
    ApiDocument,
    Health,
    Liveness,
    Readiness,
    ChatAppRead,
    ChatAppSave,
    OwnChannels,
    OwnFieldsRead,
    OwnFieldsSave,
    CookiesSave,
    CookiesList,
    CookiesDelete,
    ConfigRead,
    ConfigSave,
    ConfigSchema,
    ConfigHistory,
    ConfigRollback,
    ConfigApply,
    McpToken,
    UsersList,
    UsersCreate,
    UsersBatchCreate,
    UsersDelete,
    UsersResetPassword,
    UsersDisable,
    UsersEnable,
    UsersRevokeSessions,
    SuperadminsList,
    SuperadminsCreate,
    SuperadminsDelete,
    SuperadminsReset,
    ContainerStart,
    ContainerStop,
    ContainerRestart,
    ContainerDebug,
    ContainerLimits,
    ContainerLogs,
    ContainerInspect,
    ContainerStats,
    OwnContainer,
    OwnLogs,
    OwnContainerRestart,
    OwnSessions,
    OwnSessionsRevoke,
    Reconcile,
    ReconcileObjects,
    ReconcileObject,
    ReconcileRetry,
    ReconcilePause,
    ReconcileResume,
    Events,
    Watch,
    TaskStatus,
    Tasks,
    TaskCancel,
    ImagesList,
    ImagesPull,
    ImagesPulls,
    ImagesPullsCancel,
    ImagesDelete,
    ImagesMigrate,
    ImagesUpgrade,
    ImagesRollouts,
    ImagesRollout,
    ImagesRolloutsPause,
    ImagesRolloutsResume,
    ImagesRolloutsCancel,
    ImagesRolloutsRollback,
    ImagesRegistry,
    ImagesLocalTags,
    ImagesUpgradeCandidates,
    ImagesUsers,
    AdapterShow,
    AdapterRefresh,
    AdapterUpload,
    AdapterRollback,
    AdapterList,
    AdapterChannels,
    Audit,
    AuditVerify,
    AuditExport,
}

/// The default limit of a request body, in bytes.
pub const DEFAULT_BODY_LIMIT: u64 = 1024 * 1024;

/// The limit of what anybody may send without being known, in bytes: a name, a password and room
/// for how they are written.
pub const ANONYMOUS_BODY_LIMIT: u64 = 16 * 1024;

/// The largest adapter package that is taken, in bytes.
pub const ADAPTER_LIMIT: u64 = 16 * 1024 * 1024;

/// Room for what is around the file of an upload, in bytes: boundaries, and fields beside it.
pub const AROUND_A_FILE: u64 = 64 * 1024;

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The row's name.
    pub op: Op,
    /// True for POST, false for GET (and HEAD, which is answered like GET).
    pub post: bool,
    /// The path, parameters in braces. What begins with `/api/` is served under `/api/v1/` too.
    pub path: &'static str,
    /// Who may use it.
    pub access: Access,
    /// In which authentication modes it works.
    pub modes: Modes,
    /// What it reads of the body.
    pub body: BodyKind,
    /// The largest body it takes, in bytes.
    pub body_limit: u64,
    /// Whether the listener for agents serves it, too.
    pub for_agents: bool,
    /// One line for the API document.
    pub summary: &'static str,
}

impl Route {
    const fn get(op: Op, access: Access, path: &'static str, summary: &'static str) -> Self {
        Self {
            op,
            post: false,
            path,
            access,
            modes: Modes::Any,
            body: BodyKind::None,
            body_limit: 0,
            for_agents: false,
            summary,
        }
    }

    const fn post(op: Op, access: Access, path: &'static str, summary: &'static str) -> Self {
        Self {
            post: true,
            body: BodyKind::Fields,
            body_limit: DEFAULT_BODY_LIMIT,
            ..Self::get(op, access, path, summary)
        }
    }

    const fn body_limit(self, bytes: u64) -> Self {
        Self {
            body_limit: bytes,
            ..self
        }
    }

    /// It takes a file of at most so many bytes.
    const fn upload(self, bytes: u64) -> Self {
        Self {
            body: BodyKind::Upload,
            body_limit: bytes + AROUND_A_FILE,
            ..self
        }
    }

    const fn without_body(self) -> Self {
        Self {
            body: BodyKind::None,
            body_limit: 0,
            ..self
        }
    }

    const fn local_only(self) -> Self {
        Self {
            modes: Modes::LocalOnly,
            ..self
        }
    }

    const fn for_agents(self) -> Self {
        Self {
            for_agents: true,
            ..self
        }
    }

    /// Whether a CSRF token is required: on every POST that acts with the rights of a session.
    /// Signing in and out are the exceptions; neither acts on anything but the session itself.
    pub const fn csrf(&self) -> bool {
        self.post
            && match self.access {
                Access::Public | Access::Visitor => false,
                Access::Login | Access::OrdinaryUser | Access::Superadmin => true,
            }
    }

    /// The method.
    pub fn method(&self) -> Method {
        if self.post { Method::POST } else { Method::GET }
    }
}

/// The row of an operation; `None` only if the table lacks it.
pub fn route(op: Op) -> Option<&'static Route> {
    TABLE.iter().find(|route| route.op == op)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use strum::VariantArray;

    use super::*;

    #[test]
    fn every_operation_has_exactly_one_row() {
        for op in Op::VARIANTS {
            let rows = TABLE.iter().filter(|route| route.op == *op).count();
            assert_eq!(rows, 1, "{op}");
        }
        let addresses: HashSet<_> = TABLE.iter().map(|r| (r.post, r.path)).collect();
        assert_eq!(addresses.len(), TABLE.len());
    }

    #[test]
    fn l20_every_post_with_a_session_needs_a_token() {
        for route in TABLE.iter().filter(|route| route.post) {
            let exempt = matches!(route.op, Op::Login | Op::Logout);
            assert_eq!(route.csrf(), !exempt, "{}", route.path);
        }
        assert!(
            TABLE
                .iter()
                .filter(|route| !route.post)
                .all(|route| !route.csrf())
        );
    }

    #[test]
    fn l63_strangers_send_little() {
        for route in TABLE {
            let stranger = matches!(route.access, Access::Public | Access::Visitor);
            assert!(
                !stranger || route.body_limit <= ANONYMOUS_BODY_LIMIT,
                "{}",
                route.path
            );
        }
    }

    #[test]
    fn administration_is_for_superadmins_only() {
        for route in TABLE {
            let admin = route.path.starts_with("/api/admin/") || route.path == "/api/config";
            assert_eq!(route.access == Access::Superadmin, admin, "{}", route.path);
        }
    }

    #[test]
    fn the_matrix_covers_every_route_for_everybody() {
        let cases = matrix();
        for route in TABLE {
            let of_route = cases
                .iter()
                .filter(|case| case.route.op == route.op)
                .count();
            assert_eq!(of_route, if route.post { 12 } else { 3 }, "{}", route.path);
        }
        assert!(cases.iter().any(|case| case.expect == Expect::WrongRole));
    }
}
