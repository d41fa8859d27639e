//! The table of kinds.

use schema::ids::Timestamp;
use serde_json::Value;

use super::{Changes, Column, KindInfo, Paging, condition};
use crate::cli::output::cell::{Cell, plain};
use crate::cli::output::time::age;

const fn column(title: &'static str, cell: fn(&Value, Timestamp) -> Cell) -> Column {
    Column {
        title,
        wide: false,
        cell,
    }
}

const fn wide(title: &'static str, cell: fn(&Value, Timestamp) -> Cell) -> Column {
    Column {
        title,
        wide: true,
        cell,
    }
}

fn of_ready(item: &Value, key: &str) -> String {
    let ready = condition(item, "Ready").and_then(|ready| ready.get(key));
    ready.map(plain).unwrap_or_default()
}

fn ready(item: &Value, _: Timestamp) -> Cell {
    match of_ready(item, "status").as_str() {
        "" => Cell::status("Unknown"),
        status => Cell::status(status),
    }
}

/// `Paused` beside the reason, since a paused object keeps its last reason.
fn reason(item: &Value, _: Timestamp) -> Cell {
    let reason = of_ready(item, "reason");
    match item.get("paused") {
        Some(Value::Bool(true)) => Cell::new(&format!("{reason},Paused")),
        _ => Cell::new(&reason),
    }
}

fn since(item: &Value, now: Timestamp) -> Cell {
    let ready = condition(item, "Ready").unwrap_or(&Value::Null);
    Cell::new(&age(ready, "last_transition_at", now))
}

fn message(item: &Value, _: Timestamp) -> Cell {
    Cell::new(&of_ready(item, "message"))
}

const NAME: Column = column("NAME", |item, _| Cell::field(item, "name"));
const USERNAME: Column = column("NAME", |item, _| Cell::field(item, "username"));
const READY: Column = column("READY", ready);
const REASON: Column = column("REASON", reason);
const SINCE: Column = column("SINCE", since);
const FAILURES: Column = column("FAILURES", |item, _| Cell::field(item, "failures"));
const NEXT: Column = column("NEXT TRY", |item, now| {
    Cell::new(&age(item, "next_attempt_at", now))
});
const AGE: Column = column("AGE", |item, now| Cell::new(&age(item, "created_at", now)));
const GENERATION: Column = wide("GENERATION", |item, _| Cell::field(item, "generation"));
const OBSERVED: Column = wide("OBSERVED", |item, _| {
    Cell::field(item, "observed_generation")
});
const MESSAGE: Column = wide("MESSAGE", message);
const UID: Column = wide("UID", |item, _| Cell::field(item, "uid"));
const LAST_LOGIN: Column = wide("LAST LOGIN", |item, now| {
    Cell::new(&age(item, "last_login_at", now))
});

const OBJECT_COLUMNS: &[Column] = &[
    NAME, READY, REASON, SINCE, FAILURES, NEXT, AGE, GENERATION, OBSERVED, UID, MESSAGE,
];

const fn object(
    singular: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    path: &'static str,
    told: &'static [&'static str],
) -> KindInfo {
    KindInfo {
        singular,
        plural,
        short,
        path,
        list: "objects",
        paging: Paging::Searched,
        id: "name",
        change: Changes::Told(told),
        columns: OBJECT_COLUMNS,
    }
}

/// All kinds.
pub static KINDS: &[KindInfo] = &[
    KindInfo {
        singular: "user",
        plural: "users",
        short: &["u"],
        path: "/api/admin/users",
        list: "users",
        paging: Paging::Searched,
        id: "username",
        // A user's line shows the container's status.
        change: Changes::Told(&["user", "container"]),
        columns: &[
            USERNAME,
            column("STATUS", |item, _| {
                Cell::status(&plain(item.get("status").unwrap_or(&Value::Null)))
            }),
            column("DESIRED", |item, _| Cell::field(item, "desired")),
            REASON,
            SINCE,
            column("IMAGE", |item, _| Cell::field(item, "image")),
            column("IP", |item, _| Cell::field(item, "ip")),
            AGE,
            wide("SOURCE", |item, _| Cell::field(item, "source")),
            wide("DISABLED", |item, _| Cell::field(item, "disabled")),
            GENERATION,
            OBSERVED,
            wide("GROUPS", |item, _| Cell::field(item, "groups")),
            LAST_LOGIN,
            MESSAGE,
        ],
    },
    object(
        "container",
        "containers",
        &["c", "ct"],
        "/api/admin/reconcile/objects?reconciler=container",
        &["container"],
    ),
    object(
        "engine",
        "engines",
        &["e"],
        "/api/admin/reconcile/objects?reconciler=engine",
        &["engine"],
    ),
    object(
        "image",
        "images",
        &["i", "img"],
        "/api/admin/reconcile/objects?reconciler=image",
        &["image"],
    ),
    object(
        "rollout",
        "rollouts",
        &["ro"],
        "/api/admin/reconcile/objects?reconciler=rollout",
        &["rollout"],
    ),
    object(
        "agent-config",
        "agent-configs",
        &["ac"],
        "/api/admin/reconcile/objects?reconciler=agent-config",
        &["agent-config"],
    ),
    object(
        "adapter",
        "adapters",
        &["ad"],
        "/api/admin/reconcile/objects?reconciler=adapter",
        &["adapter"],
    ),
    KindInfo {
        singular: "object",
        plural: "objects",
        short: &["o", "all"],
        path: "/api/admin/reconcile/objects",
        list: "objects",
        paging: Paging::Searched,
        id: "object",
        change: Changes::Told(&[
            "user",
            "container",
            "engine",
            "image",
            "rollout",
            "agent-config",
            "adapter",
        ]),
        columns: &[
            column("OBJECT", |item, _| Cell::field(item, "object")),
            READY,
            REASON,
            SINCE,
            FAILURES,
            NEXT,
            AGE,
            GENERATION,
            OBSERVED,
            UID,
            MESSAGE,
        ],
    },
    KindInfo {
        singular: "superadmin",
        plural: "superadmins",
        short: &["sa"],
        path: "/api/admin/superadmins",
        list: "items",
        paging: Paging::Searched,
        id: "username",
        change: Changes::Looked,
        columns: &[
            USERNAME,
            AGE,
            column("LAST LOGIN", |item, now| {
                Cell::new(&age(item, "last_login_at", now))
            }),
        ],
    },
    KindInfo {
        singular: "reconciler",
        plural: "reconcilers",
        short: &["r", "rc"],
        path: "/api/admin/reconcile",
        list: "reconcilers",
        paging: Paging::Whole,
        id: "name",
        change: Changes::Looked,
        columns: &[
            NAME,
            column("OBJECTS", |item, _| Cell::field(item, "objects")),
            column("READY", |item, _| Cell::field(item, "ready")),
            column("NOT READY", |item, _| Cell::field(item, "not_ready")),
            column("QUEUED", |item, _| Cell::field(item, "queue_depth")),
            column("FAILING", |item, _| Cell::field(item, "failing")),
            column("PAUSED", |item, _| Cell::field(item, "paused")),
            wide("IN FLIGHT", |item, _| Cell::field(item, "in_flight")),
            wide("DELAYED", |item, _| Cell::field(item, "delayed")),
            wide("PAUSED OBJECTS", |item, _| {
                Cell::field(item, "paused_objects")
            }),
            wide("LAST RESYNC", |item, now| {
                Cell::new(&age(item, "last_resync_at", now))
            }),
            wide("TOOK MS", |item, _| Cell::field(item, "last_resync_ms")),
        ],
    },
    KindInfo {
        singular: "task",
        plural: "tasks",
        short: &["t"],
        path: "/api/admin/tasks",
        list: "tasks",
        paging: Paging::Pages,
        id: "id",
        change: Changes::Looked,
        columns: &[
            column("ID", |item, _| Cell::field(item, "id")),
            column("TYPE", |item, _| Cell::field(item, "type")),
            column("DONE", |item, _| Cell::field(item, "done")),
            column("FAILED", |item, _| Cell::field(item, "failed")),
            column("TOTAL", |item, _| Cell::field(item, "total")),
            column("STARTED", |item, now| {
                Cell::new(&age(item, "started_at", now))
            }),
            column("FINISHED", |item, now| {
                Cell::new(&age(item, "finished_at", now))
            }),
            wide("ACTOR", |item, _| Cell::field(item, "actor")),
            wide("MESSAGE", |item, _| Cell::field(item, "message")),
        ],
    },
    KindInfo {
        singular: "event",
        plural: "events",
        short: &["ev"],
        path: "/api/admin/events",
        list: "events",
        paging: Paging::Whole,
        id: "id",
        change: Changes::Looked,
        columns: &[
            column("LAST", |item, now| Cell::new(&age(item, "last_at", now))),
            wide("AT", |item, _| Cell::field(item, "last_at")),
            wide("FIRST", |item, now| Cell::new(&age(item, "first_at", now))),
            column("COUNT", |item, _| Cell::field(item, "count")),
            column("OBJECT", |item, _| Cell::field(item, "object")),
            column("REASON", |item, _| Cell::field(item, "reason")),
            column("ACTION", |item, _| Cell::field(item, "action")),
            column("MESSAGE", |item, _| Cell::field(item, "message")),
        ],
    },
    KindInfo {
        singular: "audit",
        plural: "audit",
        short: &[],
        path: "/api/admin/audit",
        list: "entries",
        paging: Paging::Searched,
        id: "seq",
        change: Changes::Looked,
        columns: &[
            column("SEQ", |item, _| Cell::field(item, "seq")),
            column("AT", |item, _| Cell::field(item, "at")),
            column("ACTOR", |item, _| Cell::field(item, "actor")),
            wide("ADDRESS", |item, _| Cell::field(item, "address")),
            column("ACTION", |item, _| Cell::field(item, "action")),
            column("OBJECT", |item, _| Cell::field(item, "object")),
            column("OUTCOME", |item, _| {
                Cell::status(&plain(item.get("outcome").unwrap_or(&Value::Null)))
            }),
            wide("REQUEST", |item, _| Cell::field(item, "request_id")),
        ],
    },
];

/// Images on the engine, wanted by anybody or not. No kind of its own: an object of kind `image` is
/// what somebody wants.
pub static LOCAL_IMAGES: KindInfo = KindInfo {
    singular: "image",
    plural: "images on the engine",
    short: &[],
    path: "/api/admin/images",
    list: "images",
    paging: Paging::Searched,
    id: "id",
    change: Changes::Looked,
    columns: &[
        column("ID", |item, _| Cell::field(item, "id")),
        column("TAGS", |item, _| Cell::field(item, "repo_tags")),
        column("SIZE", |item, _| Cell::field(item, "size_str")),
        column("CREATED", |item, _| Cell::field(item, "created_str")),
        column("USERS", |item, _| Cell::field(item, "user_count")),
        wide("WHO", |item, _| Cell::field(item, "users")),
        wide("FULL ID", |item, _| Cell::field(item, "full_id")),
    ],
};

/// Changes of the configuration. No kind of its own: nobody reconciles the past.
pub static CONFIG_HISTORY: KindInfo = KindInfo {
    singular: "revision",
    plural: "changes of the configuration",
    short: &[],
    path: "/api/admin/config/history",
    list: "history",
    paging: Paging::Searched,
    id: "revision",
    change: Changes::Looked,
    columns: &[
        column("REVISION", |item, _| Cell::field(item, "revision")),
        column("AGE", |item, now| Cell::new(&age(item, "at", now))),
        wide("AT", |item, _| Cell::field(item, "at")),
        column("ACTOR", |item, _| Cell::field(item, "actor")),
        column("CHANGES", |item, _| Cell::new(&changed(item))),
    ],
};

/// `key: old → new` of each key; what is long is cut, and in full in JSON.
fn changed(item: &Value) -> String {
    const LONGEST: usize = 40;
    let short = |value: Option<&Value>| {
        let text = match value {
            None | Some(Value::Null) => "default".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    };
    let changes = item.get("changes").and_then(Value::as_array);
    let told = changes.into_iter().flatten().map(|change| {
        let key = change.get("key").map(plain).unwrap_or_default();
        let (old, new) = (short(change.get("old")), short(change.get("new")));
        format!("{key}: {old} → {new}")
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The users of one rollout.
pub static ROLLOUT_USERS: KindInfo = KindInfo {
    singular: "container",
    plural: "users in this rollout",
    short: &[],
    path: "",
    list: "users",
    paging: Paging::Whole,
    id: "username",
    change: Changes::Looked,
    columns: &[
        USERNAME,
        column("STATE", |item, _| {
            Cell::status(&plain(item.get("state").unwrap_or(&Value::Null)))
        }),
        column("SINCE", |item, now| {
            let ended = age(item, "finished_at", now);
            let since = if ended.is_empty() {
                age(item, "moved_at", now)
            } else {
                ended
            };
            Cell::new(&since)
        }),
        column("MESSAGE", |item, _| Cell::field(item, "message")),
        wide("PREVIOUS", |item, _| Cell::field(item, "previous_image")),
    ],
};
