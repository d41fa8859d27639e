//! The kinds of things that can be listed: how they are called, where the server has them, and which
//! columns tell about them. All commands read this one table.

use schema::ids::Timestamp;
use serde_json::Value;

use super::output::cell::{Cell, plain};
use super::output::time::age;
use super::suggest;

/// One kind.
#[derive(Debug)]
pub struct KindInfo {
    /// `container`, as in `container/alice`.
    pub singular: &'static str,
    /// `containers`.
    pub plural: &'static str,
    /// Short names.
    short: &'static [&'static str],
    /// Where the server lists them.
    pub path: &'static str,
    /// Under which name the answer holds the list.
    pub list: &'static str,
    /// How the server hands out the list.
    pub paging: Paging,
    /// The field that names one.
    id: &'static str,
    /// What they are.
    pub change: Changes,
    columns: &'static [Column],
}

/// How the server hands out a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// In pages, and it searches.
    Searched,
    /// In pages only.
    Pages,
    /// Everything at once.
    Whole,
}

/// How changes are heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Reconciled objects: the server tells, naming objects of these kinds.
    Told(&'static [&'static str]),
    /// By looking again.
    Looked,
}

/// One column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    wide: bool,
    /// Its value.
    pub cell: fn(&Value, Timestamp) -> Cell,
}

impl KindInfo {
    /// The columns of its table.
    pub fn columns(&self, wide: bool) -> impl Iterator<Item = &'static Column> + use<> {
        self.columns
            .iter()
            .filter(move |column| wide || !column.wide)
    }

    /// The field that names one.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// The name of one.
    pub fn name(&self, item: &Value) -> String {
        item.get(self.id).map(plain).unwrap_or_default()
    }

    /// `kind/name` of one.
    pub fn address(&self, item: &Value) -> String {
        // Objects of all kinds are listed by that already.
        if self.singular == "object" {
            return self.name(item);
        }
        format!("{}/{}", self.singular, self.name(item))
    }

    /// Whether it is reconciled: has conditions, can be retried, paused and waited for.
    pub fn is_object(&self) -> bool {
        matches!(self.change, Changes::Told([own]) if *own == self.singular)
            || self.singular == "user"
    }
}

/// Finds a kind by any of its names.
pub fn named(name: &str) -> Option<&'static KindInfo> {
    let name = name.to_ascii_lowercase();
    KINDS.iter().find(|kind| {
        kind.singular == name || kind.plural == name || kind.short.contains(&name.as_str())
    })
}

/// Reads a kind from the command line.
///
/// # Errors
/// A sentence with what may have been meant.
pub fn parse(name: &str) -> Result<&'static KindInfo, String> {
    named(name).ok_or_else(|| {
        let names = KINDS.iter().flat_map(|kind| [kind.plural, kind.singular]);
        let guess = suggest::closest(name, names);
        let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.plural).collect();
        format!(
            "there is no kind {name:?}{}; kinds are {}",
            suggest::did_you_mean(&guess),
            kinds.join(", ")
        )
    })
}

/// Reads a kind of reconciled objects from the command line.
///
/// # Errors
/// A sentence with what may have been meant.
pub fn parse_object(name: &str) -> Result<&'static KindInfo, String> {
    let kind = parse(name)?;
    if kind.is_object() {
        return Ok(kind);
    }
    let kinds = KINDS.iter().filter(|kind| kind.is_object());
    let kinds: Vec<&str> = kinds.map(|kind| kind.singular).collect();
    Err(format!(
        "{} are not reconciled; name one of the kinds {}",
        kind.plural,
        kinds.join(", ")
    ))
}

/// Help text: all kinds with their short names.
pub fn help() -> String {
    let mut text = "Kinds:\n".to_owned();
    for kind in KINDS {
        let names = [&[kind.singular], kind.short].concat().join(", ");
        text += &format!("  {:<12} ({names})\n", kind.plural);
    }
    text
}

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

/// The condition of this type.
pub fn condition<'a>(item: &'a Value, of_type: &str) -> Option<&'a Value> {
    let conditions = item.get("conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(of_type))
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
    KindInfo {
        singular: "object",
        plural: "objects",
        short: &["o", "all"],
        path: "/api/admin/reconcile/objects",
        list: "objects",
        paging: Paging::Searched,
        id: "object",
        change: Changes::Told(&["user", "container", "engine"]),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schema::ids::Kind;
    use strum::VariantArray;

    use super::*;

    #[test]
    fn every_name_means_one_kind() {
        let mut names = BTreeSet::new();
        for kind in KINDS {
            let own: BTreeSet<&str> = [&[kind.singular, kind.plural], kind.short]
                .concat()
                .into_iter()
                .collect();
            for name in own {
                assert!(names.insert(name), "{name}");
            }
        }
        assert_eq!(parse("Containers").unwrap().singular, "container");
        let wrong = parse("containerz").unwrap_err();
        assert!(wrong.contains("did you mean \"containers\""), "{wrong}");
        assert!(
            parse("xyz")
                .unwrap_err()
                .contains("kinds are users, containers")
        );
        assert!(
            parse_object("tasks")
                .unwrap_err()
                .contains("user, container, engine")
        );
    }

    #[test]
    fn every_reconciled_kind_is_here() {
        let all = named("objects").unwrap();
        for kind in Kind::VARIANTS {
            let info = named(kind.as_str()).unwrap_or_else(|| panic!("{kind} is missing"));
            assert!(info.is_object(), "{kind}");
            let Changes::Told(told) = all.change else {
                panic!("objects are watched");
            };
            assert!(told.contains(&kind.as_str()), "{kind}");
        }
        for kind in KINDS.iter().filter(|kind| kind.is_object()) {
            assert!(kind.singular.parse::<Kind>().is_ok(), "{}", kind.singular);
        }
    }
}
