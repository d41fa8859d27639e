//! Retry, pause, resume.

use schema::audit::About;
use schema::condition::{self, ConditionType, Reason};
use schema::container;
use schema::db::Tx;
use schema::error::DbError;
use schema::ids::{Generation, Kind};
use schema::object::{self, ObjectRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{ALL, find};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta};
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::params;
use crate::wait::{self, Change, Converging, Until};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("reconcile_retry", "/api/admin/reconcile/retry", retry)
            .tokens(Tokens::Admin)
            .title(Area::Operators, "Reconcile an object now")
            .about(
                "Ignores back-off; a container in a crash loop is started again. Instead of an \
                 object, one reconciler or all can be named.",
            )
            .fails(&[
                Failure::NO_OBJECT,
                Failure(409, "paused", "the object is paused; resume it first"),
                Failure(
                    409,
                    "not_leader",
                    "this replica runs no reconcilers; ask the leader",
                ),
            ]),
        Route::post("reconcile_pause", "/api/admin/reconcile/pause", pause)
            .tokens(Tokens::Admin)
            .title(Area::Operators, "Pause reconciliation")
            .about(
                "Of an object, a reconciler or all. Changes are recorded, and nothing is \
                 reconciled until it is resumed. For an object, the answer waits until its \
                 reconciler has observed the pause.",
            )
            .waits()
            .guarded()
            .fails(&[Failure::NO_OBJECT]),
        Route::post("reconcile_resume", "/api/admin/reconcile/resume", resume)
            .tokens(Tokens::Admin)
            .title(Area::Operators, "Resume reconciliation")
            .about("Of an object, a reconciler or all.")
            .waits()
            .guarded()
            .fails(&[Failure::NO_OBJECT]),
    ]
}

/// The kind under which the audit trail names reconcilers; `*` is all of them.
const RECONCILER: &str = "reconciler";

/// What a switch is on: `object=kind/name`, or `kind` and `name`, or `reconciler`, or `all=true`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Target {
    /// One object, as `kind/name`.
    #[schema(example = "container/alice")]
    object: Option<String>,
    /// One object's kind, together with `name`.
    #[schema(value_type = Option<Kind>)]
    kind: Option<String>,
    /// One object's name; requires `kind`.
    name: Option<String>,
    /// One reconciler, or `*` for all.
    reconciler: Option<String>,
    /// All reconcilers.
    all: Option<bool>,
}

/// The result of a pause or resume.
#[derive(Debug, Serialize, ToSchema)]
pub struct Switched {
    /// Absent when a reconciler was named.
    #[serde(flatten)]
    object: Option<Converging>,
}

impl From<Converging> for Switched {
    fn from(object: Converging) -> Self {
        let object = Some(object);
        Self { object }
    }
}

/// What is reconciled now. Absent when it is more than one object.
#[derive(Debug, Serialize, ToSchema)]
pub struct Retried {
    /// The object, as `kind/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "container/alice")]
    object: Option<String>,
    /// Its generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<Generation>,
}

impl Retried {
    const MANY: Self = Self {
        object: None,
        generation: None,
    };
}

/// What a switch is on.
#[derive(Debug, PartialEq, Eq)]
enum Scope {
    All,
    Reconciler(Kind),
    Object(Kind, String),
}

impl Target {
    /// Exactly one way to say it: a request that is understood differently than it was meant must
    /// not stop everything.
    fn scope(&self) -> Result<Scope> {
        let all = self.all.unwrap_or(false);
        match (
            params::given(&self.object),
            params::given(&self.kind),
            params::given(&self.name),
            params::given(&self.reconciler),
            all,
        ) {
            (Some(object), None, None, None, false) => {
                let (kind, name) = params::object_address("object", object)?;
                Ok(Scope::Object(kind, name))
            }
            (None, Some(kind), Some(name), None, false) => {
                Ok(Scope::Object(params::kind("kind", kind)?, name.to_owned()))
            }
            (None, None, None, Some(name), false) if name == ALL => Ok(Scope::All),
            (None, None, None, Some(name), false) => {
                Ok(Scope::Reconciler(params::kind("reconciler", name)?))
            }
            (None, None, None, None, true) => Ok(Scope::All),
            _ => Err(ApiError::InvalidParameter {
                field: None,
                message: "name one object (object=kind/name), one reconciler, or all=true"
                    .to_owned(),
            }),
        }
    }
}

fn change(row: &ObjectRow, kind: Kind) -> Change {
    Change::new(kind, row.uid.clone(), &*row.name, row.generation)
}

/// `POST /api/admin/reconcile/retry`: a pass at once, back-off or not; a container in a crash loop is
/// started again.
///
/// # Errors
/// 404 without such an object; 409 `paused` for what is not reconciled before it is resumed; 409
/// `not_leader` for a reconciler on a standby, which runs none.
async fn retry(_: Superadmin, input: Input<Target>, deps: Deps) -> Result<Answer<Retried>> {
    let leading = deps.leadership.leader().leading;
    let scope = input.params.scope()?;
    unless_paused(&deps, &scope).await?;
    match scope {
        Scope::Object(kind, name) => retry_object(&input.meta, &deps, leading, (kind, &name)).await,
        Scope::All | Scope::Reconciler(_) if !leading => Err(ApiError::conflict(
            "not_leader",
            "this replica runs no reconcilers; ask the leader",
        )),
        Scope::All => {
            record(&input.meta, &deps, ALL).await?;
            deps.reconcilers.wake(None);
            Ok(Answer::ok(
                "reconciliation requested for everything that is not paused",
                Retried::MANY,
            ))
        }
        Scope::Reconciler(kind) => {
            record(&input.meta, &deps, kind.as_str()).await?;
            deps.reconcilers.wake(Some(kind.as_str()));
            let message = format!("reconciliation requested for every {kind} that is not paused");
            Ok(Answer::ok(message, Retried::MANY))
        }
    }
}

/// Nothing that is paused is reconciled, whoever asks for it.
async fn unless_paused(deps: &Deps, scope: &Scope) -> Result<()> {
    let mut connection = deps.db.read().await?;
    let paused = object::paused_reconcilers(&mut connection).await?;
    let by = |name: &str| paused.iter().any(|paused| paused == name);
    let kind = match scope {
        Scope::All => None,
        Scope::Reconciler(kind) | Scope::Object(kind, _) => Some(kind.as_str()),
    };
    let (what, how) = if by(ALL) {
        ("every reconciler".to_owned(), "all=true".to_owned())
    } else if let Some(kind) = kind.filter(|kind| by(kind)) {
        (
            format!("the reconciler {kind}"),
            format!("reconciler={kind}"),
        )
    } else {
        match scope {
            Scope::Object(kind, name)
                if object::find_by_name(&mut connection, *kind, name)
                    .await?
                    .is_some_and(|row| row.paused) =>
            {
                let object = format!("{kind}/{name}");
                (object.clone(), format!("object={object}"))
            }
            Scope::All | Scope::Reconciler(_) | Scope::Object(..) => return Ok(()),
        }
    };
    let message = format!("{what} is paused; resume it first ({how})");
    Err(ApiError::conflict("paused", message))
}

/// A reconciliation changes nothing in the database, but the audit trail records who requested it.
async fn record(meta: &Meta, deps: &Deps, name: &str) -> Result<()> {
    let tx = meta.begin(deps).await?;
    Ok(tx.commit(About::object(RECONCILER, name)).await?)
}

async fn retry_object(
    meta: &Meta,
    deps: &Deps,
    leading: bool,
    (kind, name): (Kind, &str),
) -> Result<Answer<Retried>> {
    let mut row = find(deps, kind, name).await?;
    let mut tx = meta.begin(deps).await?;
    let restarted = forgive_crashes(&mut tx, kind, &row).await?;
    if let Some(generation) = restarted {
        row.generation = generation;
    } else if !leading {
        // The leader is elsewhere; a new generation makes it reconcile without delay.
        row.generation = object::bump(&mut tx, kind, &row.uid, None).await?;
    }
    tx.commit(About::object(kind, &row.name)).await?;
    if leading && restarted.is_none() {
        deps.reconcilers.retry(kind.as_str(), row.uid.as_str());
    }
    let change = change(&row, kind);
    let retried = Retried {
        object: Some(change.object()),
        generation: Some(change.generation),
    };
    Ok(Answer::ok("reconciliation requested", retried))
}

/// A container that ends again and again waits by itself before its next start;
/// only a restart resets the count, so for it a retry is one. Gives the generation that it made.
async fn forgive_crashes(
    tx: &mut Tx,
    kind: Kind,
    row: &ObjectRow,
) -> Result<Option<Generation>, DbError> {
    let ready = condition::find(&row.status.conditions, ConditionType::Ready);
    let loops = ready.is_some_and(|ready| ready.reason == Reason::CrashLoop);
    if kind != Kind::Container || !loops {
        return Ok(None);
    }
    let Some(container) = container::get(tx, &row.uid).await? else {
        return Ok(None);
    };
    if !container.desired_running() {
        return Ok(None);
    }
    let token = Uuid::new_v4().to_string();
    let (uid, debug) = (&row.uid, container.debug);
    let generation = container::request_restart(tx, uid, &token, debug, None).await?;
    Ok(Some(generation))
}

/// `POST /api/admin/reconcile/pause`: no passes until it is resumed.
///
/// # Errors
/// 400 unless exactly one thing is named; 404 without such an object; 412 for a stale `if_generation`.
async fn pause(_: Superadmin, input: Input<Target>, deps: Deps) -> Result<Answer<Switched>> {
    let Some((kind, name)) = reconcilers_paused(&input, &deps, true).await? else {
        return Ok(Answer::ok("paused", Switched { object: None }));
    };
    let change = object_paused(&input, &deps, (kind, &name), true).await?;
    let settled = wait::settle(&deps, &change, Until::Paused, input.wait).await;
    let done = format!("{} is paused", change.object());
    let under_way = "pause requested; a reconciliation under way may still end";
    Ok(wait::reply(&change, settled, done, under_way)?.map(Switched::from))
}

/// `POST /api/admin/reconcile/resume`: passes go on.
///
/// # Errors
/// As [`pause`]; what the object fails with.
async fn resume(_: Superadmin, input: Input<Target>, deps: Deps) -> Result<Answer<Switched>> {
    let Some((kind, name)) = reconcilers_paused(&input, &deps, false).await? else {
        return Ok(Answer::ok("resumed", Switched { object: None }));
    };
    let change = object_paused(&input, &deps, (kind, &name), false).await?;
    let done = format!("{} is resumed and as desired", change.object());
    let answer = wait::answer(&deps, &change, input.wait, done).await?;
    Ok(answer.map(Switched::from))
}

/// Switches a reconciler or all of them; gives the object back when one is named instead.
async fn reconcilers_paused(
    input: &Input<Target>,
    deps: &Deps,
    paused: bool,
) -> Result<Option<(Kind, String)>> {
    let name = match input.params.scope()? {
        Scope::Object(kind, name) => return Ok(Some((kind, name))),
        Scope::Reconciler(kind) => kind.as_str(),
        Scope::All => ALL,
    };
    let mut tx = input.meta.begin(deps).await?;
    object::set_reconciler_paused(&mut tx, name, paused).await?;
    tx.commit(About::object(RECONCILER, name)).await?;
    if !paused {
        // What was paused is reconciled without waiting for the resync.
        deps.reconcilers.wake((name != ALL).then_some(name));
    }
    Ok(None)
}

async fn object_paused(
    input: &Input<Target>,
    deps: &Deps,
    (kind, name): (Kind, &str),
    paused: bool,
) -> Result<Change> {
    let mut row = find(deps, kind, name).await?;
    let mut tx = input.meta.begin(deps).await?;
    let expected = input.if_generation;
    row.generation = object::set_paused(&mut tx, kind, &row.uid, paused, expected).await?;
    tx.commit(About::object(kind, &row.name)).await?;
    Ok(change(&row, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(fields: &[(&str, &str)]) -> Target {
        let field = |name: &str| {
            fields
                .iter()
                .find(|(field, _)| *field == name)
                .map(|(_, value)| (*value).to_owned())
        };
        Target {
            object: field("object"),
            kind: field("kind"),
            name: field("name"),
            reconciler: field("reconciler"),
            all: field("all").map(|all| all == "true"),
        }
    }

    #[test]
    fn a_switch_is_on_one_thing() {
        let alice = || Scope::Object(Kind::Container, "alice".to_owned());
        let good: [(&[(&str, &str)], Scope); 5] = [
            (&[("object", "container/alice")], alice()),
            (&[("kind", "container"), ("name", "alice")], alice()),
            (&[("reconciler", "user")], Scope::Reconciler(Kind::User)),
            (&[("reconciler", "*")], Scope::All),
            (&[("all", "true")], Scope::All),
        ];
        for (fields, scope) in good {
            assert_eq!(target(fields).scope().unwrap(), scope, "{fields:?}");
        }
        let bad: [&[(&str, &str)]; 7] = [
            &[],
            &[("all", "false")],
            &[("kind", "container")],
            &[("name", "alice")],
            &[("object", "container/alice"), ("all", "true")],
            &[("reconciler", "user"), ("object", "container/alice")],
            &[("reconciler", "pods")],
        ];
        for fields in bad {
            assert!(target(fields).scope().is_err(), "{fields:?}");
        }
    }
}
