//! The rows.

use super::Access::{Login, OrdinaryUser, Public, Superadmin, Visitor};
use super::{ANONYMOUS_BODY_LIMIT, Op, Route};

/// Every route.
pub const TABLE: &[Route] = &[
    Route::get(Op::Health, Public, "/api/health", "Health and version").for_agents(),
    Route::get(
        Op::ApiDocument,
        Public,
        "/api/openapi.json",
        "This document",
    ),
    Route::get(Op::Liveness, Public, "/healthz", "The process is alive"),
    Route::get(
        Op::Readiness,
        Public,
        "/readyz",
        "Database, engine and leadership, one per line",
    ),
    Route::post(
        Op::Login,
        Public,
        "/api/login",
        "Sign in with name and password",
    )
    .body_limit(ANONYMOUS_BODY_LIMIT),
    Route::get(
        Op::LoginMode,
        Public,
        "/api/login/mode",
        "The authentication mode",
    ),
    Route::get(
        Op::LoginOidc,
        Public,
        "/api/login/oidc",
        "Sign in through the identity provider; refused outside oidc mode",
    ),
    Route::post(Op::Logout, Visitor, "/api/logout", "End this session").without_body(),
    Route::get(
        Op::Csrf,
        Login,
        "/api/csrf",
        "The CSRF token of the present hour",
    ),
    Route::get(
        Op::UserInfo,
        Login,
        "/api/user/info",
        "Name, role and authentication mode",
    ),
    Route::get(
        Op::UserInitStatus,
        OrdinaryUser,
        "/api/user/init-status",
        "Whether the own container is ready",
    ),
    Route::post(
        Op::UserPassword,
        OrdinaryUser,
        "/api/user/password",
        "Change the own password",
    )
    .local_only(),
    Route::get(
        Op::OwnContainer,
        OrdinaryUser,
        "/api/user/container",
        "Status of the own container",
    ),
    Route::get(
        Op::OwnLogs,
        OrdinaryUser,
        "/api/user/logs",
        "Logs of the own container",
    ),
    Route::post(
        Op::OwnContainerRestart,
        OrdinaryUser,
        "/api/user/container/restart",
        "Restart the own container",
    ),
    Route::get(
        Op::OwnSessions,
        OrdinaryUser,
        "/api/user/sessions",
        "The own sessions",
    ),
    Route::post(
        Op::OwnSessionsRevoke,
        OrdinaryUser,
        "/api/user/sessions/revoke",
        "End own sessions",
    ),
    Route::get(
        Op::ConfigRead,
        Superadmin,
        "/api/config",
        "All configuration keys, secrets masked",
    ),
    Route::post(
        Op::ConfigSave,
        Superadmin,
        "/api/config",
        "Save configuration keys",
    ),
    Route::get(
        Op::UsersList,
        Superadmin,
        "/api/admin/users",
        "Users and their containers",
    ),
    Route::post(
        Op::UsersCreate,
        Superadmin,
        "/api/admin/users/create",
        "Create a local user",
    )
    .local_only(),
    Route::post(
        Op::UsersBatchCreate,
        Superadmin,
        "/api/admin/users/batch-create",
        "Create several local users",
    )
    .local_only(),
    Route::post(
        Op::UsersDelete,
        Superadmin,
        "/api/admin/users/delete",
        "Delete a user and archive the directory",
    ),
    Route::post(
        Op::UsersResetPassword,
        Superadmin,
        "/api/admin/users/reset-password",
        "Give a local user a new random password",
    )
    .local_only(),
    Route::post(
        Op::UsersDisable,
        Superadmin,
        "/api/admin/users/disable",
        "Disable a user",
    ),
    Route::post(
        Op::UsersEnable,
        Superadmin,
        "/api/admin/users/enable",
        "Enable a user",
    ),
    Route::post(
        Op::UsersRevokeSessions,
        Superadmin,
        "/api/admin/users/sessions/revoke",
        "End all sessions of an account",
    ),
    Route::get(
        Op::SuperadminsList,
        Superadmin,
        "/api/admin/superadmins",
        "Superadmins",
    ),
    Route::post(
        Op::SuperadminsCreate,
        Superadmin,
        "/api/admin/superadmins/create",
        "Create a superadmin",
    ),
    Route::post(
        Op::SuperadminsDelete,
        Superadmin,
        "/api/admin/superadmins/delete",
        "Delete a superadmin",
    ),
    Route::post(
        Op::SuperadminsReset,
        Superadmin,
        "/api/admin/superadmins/reset",
        "Give a superadmin a new random password",
    ),
    Route::post(
        Op::ContainerStart,
        Superadmin,
        "/api/admin/container/start",
        "Let a user's container run",
    ),
    Route::post(
        Op::ContainerStop,
        Superadmin,
        "/api/admin/container/stop",
        "Let a user's container stand",
    ),
    Route::post(
        Op::ContainerRestart,
        Superadmin,
        "/api/admin/container/restart",
        "Restart a user's container",
    ),
    Route::post(
        Op::ContainerDebug,
        Superadmin,
        "/api/admin/container/debug",
        "Run a user's container in debug mode",
    ),
    Route::post(
        Op::ContainerLimits,
        Superadmin,
        "/api/admin/container/limits",
        "Limits of a user's container",
    ),
    Route::get(
        Op::ContainerLogs,
        Superadmin,
        "/api/admin/container/logs",
        "Logs of a user's container",
    ),
    Route::get(
        Op::ContainerInspect,
        Superadmin,
        "/api/admin/container/inspect",
        "What the engine knows of a user's container",
    ),
    Route::get(
        Op::ContainerStats,
        Superadmin,
        "/api/admin/container/stats",
        "Resource use of a user's container",
    ),
    Route::get(
        Op::Reconcile,
        Superadmin,
        "/api/admin/reconcile",
        "Leader and reconcilers",
    ),
    Route::get(
        Op::ReconcileObjects,
        Superadmin,
        "/api/admin/reconcile/objects",
        "Objects with their conditions",
    ),
    Route::get(
        Op::ReconcileObject,
        Superadmin,
        "/api/admin/reconcile/objects/{kind}/{name}",
        "One object: desired, observed, plan, events",
    ),
    Route::post(
        Op::ReconcileRetry,
        Superadmin,
        "/api/admin/reconcile/retry",
        "Look at an object at once",
    ),
    Route::post(
        Op::ReconcilePause,
        Superadmin,
        "/api/admin/reconcile/pause",
        "Pause an object, a reconciler or all",
    ),
    Route::post(
        Op::ReconcileResume,
        Superadmin,
        "/api/admin/reconcile/resume",
        "Resume what was paused",
    ),
    Route::get(
        Op::Events,
        Superadmin,
        "/api/admin/events",
        "Events of objects",
    ),
    Route::get(
        Op::Watch,
        Superadmin,
        "/api/admin/watch",
        "Changes of objects as an event stream that can be resumed",
    ),
    Route::get(
        Op::TaskStatus,
        Superadmin,
        "/api/admin/task/status",
        "Progress of the newest or named operation",
    ),
    Route::get(
        Op::Tasks,
        Superadmin,
        "/api/admin/tasks",
        "Operations with their results",
    ),
    Route::get(
        Op::Audit,
        Superadmin,
        "/api/admin/audit",
        "Who changed what, from where, when",
    ),
    Route::get(
        Op::AuditVerify,
        Superadmin,
        "/api/admin/audit/verify",
        "Whether the audit trail is as it was written",
    ),
    Route::get(
        Op::AuditExport,
        Superadmin,
        "/api/admin/audit/export",
        "The audit trail as JSON Lines",
    ),
];
