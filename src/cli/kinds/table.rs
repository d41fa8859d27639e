//! What is listed and is not reconciled.

use std::borrow::Cow;

use schema::kind::{AGE, Column, NAME, USERNAME};

use super::{KindInfo, Paging};

const fn listed(
    singular: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    (path, paging): (&'static str, Paging),
    (list, id): (&'static str, &'static str),
    columns: &'static [Column],
) -> KindInfo {
    KindInfo {
        singular,
        plural,
        short,
        path: Cow::Borrowed(path),
        list,
        paging,
        id,
        watched: Vec::new(),
        columns: Cow::Borrowed(columns),
    }
}

/// Kinds of things that are not reconciled.
pub(super) static OTHERS: [&KindInfo; 9] = [
    &GROUPS,
    &SUPERADMINS,
    &API_TOKENS,
    &EXECUTORS,
    &RECONCILERS,
    &REPLICAS,
    &TASKS,
    &EVENTS,
    &AUDIT,
];

/// Groups of users.
pub static GROUPS: KindInfo = listed(
    "group",
    "groups",
    &["g"],
    ("/api/admin/groups", Paging::Searched),
    ("groups", "name"),
    &[
        NAME,
        Column::text("PARENT", "parent"),
        Column::text("MEMBERS", "member_count"),
        Column::text("SKILLS", "skill_count"),
        Column::text("SOURCE", "source"),
        AGE,
        Column::text("DESCRIPTION", "description").wide(),
        Column::text("ID", "id").wide(),
    ],
);

/// Superadmins: no objects, containers or directories.
pub static SUPERADMINS: KindInfo = listed(
    "superadmin",
    "superadmins",
    &["sa"],
    ("/api/admin/superadmins", Paging::Searched),
    ("items", "username"),
    &[USERNAME, AGE, Column::age("LAST LOGIN", "last_login_at")],
);

/// Tokens with which programs use the API.
pub static API_TOKENS: KindInfo = listed(
    "api-token",
    "api-tokens",
    &["at"],
    ("/api/admin/api-tokens", Paging::Searched),
    ("tokens", "name"),
    &[
        NAME,
        Column::text("ROLE", "role"),
        Column::text("EXPIRED", "expired"),
        Column::text("EXPIRES", "expires_at"),
        Column::age("LAST USE", "last_used_at"),
        AGE,
        Column::text("CREATED BY", "created_by"),
    ],
);

/// Browsers and desktops that are connected: one is named by its connection.
static EXECUTORS: KindInfo = listed(
    "executor",
    "executors",
    &["ex"],
    ("/api/admin/executors", Paging::Searched),
    ("executors", "id"),
    &[
        Column::text("ID", "id"),
        Column::text("USER", "username"),
        Column::text("SERVICE", "service"),
        Column::text("CLIENT", "client"),
        Column::text("LABEL", "label"),
        Column::text("VERSION", "version"),
        Column::text("PLATFORM", "platform"),
        Column::text("ADDRESS", "address"),
        Column::age("CONNECTED", "connected_at"),
        Column::text("IN PROGRESS", "calls"),
        Column::text("CALLS", "calls_total"),
        Column::text("LATE", "late_answers").wide(),
        Column::text("USER AGENT", "user_agent").wide(),
        Column::text("INSTANCE", "instance").wide(),
    ],
);

/// Reconcilers and their queues.
pub static RECONCILERS: KindInfo = listed(
    "reconciler",
    "reconcilers",
    &["r", "rc"],
    ("/api/admin/reconcile", Paging::Whole),
    ("reconcilers", "name"),
    &[
        NAME,
        Column::text("OBJECTS", "objects"),
        Column::text("READY", "ready"),
        Column::text("NOT READY", "not_ready"),
        Column::text("QUEUED", "queue_depth"),
        Column::text("FAILING", "failing"),
        Column::text("PAUSED", "paused"),
        Column::text("IN FLIGHT", "in_flight").wide(),
        Column::text("DELAYED", "delayed").wide(),
        Column::text("PAUSED OBJECTS", "paused_objects").wide(),
        Column::age("LAST RESYNC", "last_resync_at").wide(),
        Column::text("TOOK MS", "last_resync_ms").wide(),
    ],
);

/// Processes that serve the installation.
static REPLICAS: KindInfo = listed(
    "replica",
    "replicas",
    &["rep"],
    ("/api/admin/replicas", Paging::Whole),
    ("replicas", "number"),
    &[
        Column::text("NUMBER", "number"),
        NAME,
        Column::text("ADDRESS", "address"),
        Column::text("LEADS", "leads"),
        Column::text("AGENT LISTEN", "flags.agent-listen"),
        Column::text("ENGINE", "flags.engine").wide(),
        Column::text("DOCKER HOST", "flags.docker-host").wide(),
        Column::text("ENGINE DATA DIR", "flags.engine-data-dir").wide(),
        Column::text("ENGINE OPTIONS", "flags.engine-options").wide(),
        Column::text("DIFFERENCES", "differences"),
    ],
);

/// Tasks: requests about many objects.
pub static TASKS: KindInfo = listed(
    "task",
    "tasks",
    &["t"],
    ("/api/admin/tasks", Paging::Pages),
    ("tasks", "id"),
    &[
        Column::text("ID", "id"),
        Column::text("TYPE", "type"),
        Column::text("DONE", "done"),
        Column::text("FAILED", "failed"),
        Column::text("TOTAL", "total"),
        Column::age("STARTED", "started_at"),
        Column::age("FINISHED", "finished_at"),
        Column::text("ACTOR", "actor").wide(),
        Column::text("MESSAGE", "message").wide(),
    ],
);

/// Events, newest first.
pub static EVENTS: KindInfo = listed(
    "event",
    "events",
    &["ev"],
    ("/api/admin/events", Paging::Whole),
    ("events", "id"),
    &[
        Column::age("LAST", "last_at"),
        Column::text("AT", "last_at").wide(),
        Column::age("FIRST", "first_at").wide(),
        Column::text("COUNT", "count"),
        Column::text("OBJECT", "object"),
        Column::text("REASON", "reason"),
        Column::text("ACTION", "action"),
        Column::text("MESSAGE", "message"),
    ],
);

/// Entries of the audit trail.
pub static AUDIT: KindInfo = listed(
    "audit",
    "audit entries",
    &[],
    ("/api/admin/audit", Paging::Searched),
    ("entries", "seq"),
    &[
        Column::text("SEQ", "seq"),
        Column::text("AT", "at"),
        Column::text("ACTOR", "actor"),
        Column::text("ADDRESS", "address").wide(),
        Column::text("ACTION", "action"),
        Column::text("OBJECT", "object"),
        Column::status("OUTCOME", "outcome"),
        Column::text("COUNT", "count"),
        Column::text("DETAIL", "detail").wide(),
        Column::text("REQUEST", "request_id").wide(),
    ],
);

/// Images on the engine, desired by anybody or not. Not a kind: an object of kind `image` is what is desired.
pub static LOCAL_IMAGES: KindInfo = listed(
    "image",
    "images on the engine",
    &[],
    ("/api/admin/images", Paging::Searched),
    ("images", "id"),
    &[
        Column::text("ID", "id"),
        Column::text("TAGS", "repo_tags"),
        Column::text("SIZE", "size_str"),
        Column::text("CREATED", "created_str"),
        Column::text("USERS", "user_count"),
        Column::text("WHO", "users").wide(),
        Column::text("FULL ID", "full_id").wide(),
    ],
);

/// Directories of users who left, on this machine. Not a kind: the object `archive/local` is about all of them.
pub static ARCHIVES: KindInfo = listed(
    "archive",
    "archives",
    &[],
    ("", Paging::Whole),
    ("archives", "archive"),
    &[
        Column::text("ARCHIVE", "archive"),
        Column::age("AGE", "deleted_at"),
        Column::text("MODE SWITCH", "mode_switch"),
        Column::text("STATUS", "status"),
        Column::text("DELETED", "deleted_at").wide(),
        Column::text("PATH", "path").wide(),
    ],
);

/// Servers that `agentyard login` signed in to. Not a kind: they are this user's.
pub static CONTEXTS: KindInfo = listed(
    "context",
    "contexts",
    &[],
    ("", Paging::Whole),
    ("contexts", "name"),
    &[
        NAME,
        Column::text("CURRENT", "current"),
        Column::text("SERVER", "server"),
        Column::text("IDENTITY", "identity"),
    ],
);

/// Backups in a directory. Not a kind: no server lists them.
pub static BACKUPS: KindInfo = listed(
    "backup",
    "backups",
    &[],
    ("", Paging::Whole),
    ("backups", "backup"),
    &[
        Column::text("BACKUP", "backup"),
        Column::age("AGE", "started_at"),
        Column::text("DATABASE", "database"),
        Column::text("ENTRIES", "entries"),
        Column::text("SIZE", "size"),
        Column::text("LEFT OUT", "left_out"),
        Column::text("KEY", "key").wide(),
        Column::text("RELEASE", "release").wide(),
        Column::text("PATH", "path").wide(),
    ],
);

/// Changes of the configuration. Not a kind: nobody reconciles the past.
pub static CONFIG_HISTORY: KindInfo = listed(
    "revision",
    "changes of the configuration",
    &[],
    ("/api/admin/config/history", Paging::Searched),
    ("history", "revision"),
    &[
        Column::text("REVISION", "revision"),
        Column::age("AGE", "at"),
        Column::text("AT", "at").wide(),
        Column::text("ACTOR", "actor"),
        Column::text("CHANGES", "changes"),
    ],
);

/// The users of one rollout.
pub static ROLLOUT_USERS: KindInfo = listed(
    "container",
    "users in this rollout",
    &[],
    ("", Paging::Whole),
    ("users", "username"),
    &[
        USERNAME,
        Column::status("STATE", "state"),
        Column::age("SINCE", "since"),
        Column::text("MESSAGE", "message"),
        Column::text("PREVIOUS", "previous_image").wide(),
    ],
);

/// Live sessions of an account. Not a kind: a session has no name.
pub static SESSIONS: KindInfo = listed(
    "session",
    "live sessions",
    &[],
    ("", Paging::Whole),
    ("sessions", "issued_at"),
    &[
        Column::age("SIGNED IN", "created_at"),
        Column::text("CLIENT", "client"),
        Column::text("ADDRESS", "address"),
        Column::age("EXPIRES", "expires_at"),
        Column::text("AT", "created_at").wide(),
    ],
);

/// Resource use of agents, one sample each.
pub static RESOURCE_USE: KindInfo = listed(
    "container",
    "running agents",
    &[],
    ("", Paging::Whole),
    ("stats", "username"),
    &[
        USERNAME,
        Column::text("CPU", "cpu"),
        Column::text("MEMORY", "memory"),
        Column::text("LIMIT", "limit"),
        Column::text("USED", "used"),
        Column::text("PROCESSES", "stats.pids"),
        Column::text("RECEIVED", "received").wide(),
        Column::text("SENT", "sent").wide(),
    ],
);

/// Members of a group, direct and inherited.
pub static GROUP_MEMBERS: KindInfo = listed(
    "user",
    "members",
    &[],
    ("", Paging::Whole),
    ("members", "username"),
    &[Column::text("USER", "username"), Column::text("VIA", "via")],
);

/// What a change of skills or groups means for users.
pub static SKILL_CHANGES: KindInfo = listed(
    "user",
    "affected users",
    &[],
    ("", Paging::Whole),
    ("affected", "username"),
    &[
        Column::text("USER", "username"),
        Column::text("GAINS", "gains"),
        Column::text("LOSES", "loses"),
        Column::text("CHANGES", "changes"),
    ],
);

/// The versions of a skill.
pub static SKILL_VERSIONS: KindInfo = listed(
    "version",
    "versions",
    &[],
    ("", Paging::Whole),
    ("versions", "number"),
    &[
        Column::text("NUMBER", "number"),
        Column::digest("DIGEST", "digest"),
        Column::text("VERSION", "version"),
        Column::text("SOURCE", "source"),
        Column::digest("COMMIT", "commit"),
        Column::text("FILES", "file_count"),
        Column::age("AGE", "created_at"),
        Column::text("ACTIVE", "active"),
    ],
);

/// The skills in a repository, installed or not.
pub static OFFERED_SKILLS: KindInfo = listed(
    "skill",
    "skills in the repository",
    &[],
    ("/api/admin/skills/repos/list", Paging::Searched),
    ("skills", "name"),
    &[
        NAME,
        Column::text("DIRECTORY", "path"),
        Column::text("INSTALLED", "installed"),
        Column::text("UPDATE", "update_available"),
        Column::text("PROBLEM", "problem"),
        Column::text("DESCRIPTION", "description").wide(),
        Column::text("WARNINGS", "warnings").wide(),
    ],
);
