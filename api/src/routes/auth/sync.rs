//! Bringing users and groups up to date with the directory, on request.

use schema::directory::{self, OBJECT_NAME, SyncResult, SyncScope, object_uid};
use schema::ids::{Generation, Kind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::REMOTE;
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::ports::SyncPlan;
use crate::route::{Area, Failure, Route, Tokens};
use crate::settings::AuthMode;
use crate::wait::{self, Change, Settled, State, Until};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    const FAILURES: &[Failure] = &[
        Failure(
            409,
            "mass_removal",
            "more would be removed than `ldap.max_removal_percent` allows; nothing was changed",
        ),
        Failure(
            403,
            "mode_forbidden",
            "users do not come from a directory, and `dry_run` is not set",
        ),
        REMOTE,
        Failure(
            502,
            "directory_failed",
            "the directory cannot be asked, or its answer is not complete",
        ),
        Failure(
            422,
            "invalid_settings",
            "the directory's address or search base is not set",
        ),
    ];
    vec![
        Route::post("auth_sync_users", "/api/admin/auth/sync-users", users)
.tokens(Tokens::Admin)
            .title(Area::Authentication, "Synchronise users and groups")
            .about(
                "Users whom the directory has are created or brought up to date; those it no longer has are \
                 disabled, and deleted after `ldap.removal_grace`. With `dry_run` the plan is returned and nothing \
                 is changed. A removal of more than `ldap.max_removal_percent` needs `confirm` with the digest of \
                 the plan. In another mode only `dry_run` is possible: it plans as after a change to `ldap`, which removes all \
                 users first; `change` has those of the same name.",
            )
            .waits()
            .guarded()
            .fails(FAILURES),
        Route::post("auth_sync_groups", "/api/admin/auth/sync-groups", groups)
.tokens(Tokens::Admin)
            .title(Area::Authentication, "Synchronise groups")
            .about("As sync-users for groups and their members; no user is created, disabled or deleted.")
            .waits()
            .guarded()
            .fails(FAILURES),
    ]
}

/// How to synchronise.
#[derive(Debug, Deserialize, ToSchema)]
pub struct SyncForm {
    /// Return the plan, and change nothing.
    #[serde(default)]
    dry_run: bool,
    /// The digest of a plan that removes more than `ldap.max_removal_percent`.
    #[serde(default)]
    #[schema(example = "")]
    confirm: String,
}

/// What a synchronisation has done, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub struct Synced {
    /// How many of what, all 0 while it is under way; the lists with `dry_run` only.
    #[serde(flatten)]
    plan: SyncPlan,
    /// The directory.
    #[schema(example = "directory/users")]
    object: String,
    /// How far it is; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// The generation of the request; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<Generation>,
}

fn object() -> String {
    format!("{}/{OBJECT_NAME}", Kind::Directory)
}

/// `POST /api/admin/auth/sync-users`.
///
/// # Errors
/// 403 outside ldap mode, 409 `mass_removal`, 502 when the directory fails, 412.
async fn users(_: Superadmin, input: Input<SyncForm>, deps: Deps) -> Result<Answer<Synced>> {
    sync(SyncScope::Users, input, &deps).await
}

/// `POST /api/admin/auth/sync-groups`.
///
/// # Errors
/// As `sync-users`.
async fn groups(_: Superadmin, input: Input<SyncForm>, deps: Deps) -> Result<Answer<Synced>> {
    sync(SyncScope::Groups, input, &deps).await
}

async fn sync(scope: SyncScope, input: Input<SyncForm>, deps: &Deps) -> Result<Answer<Synced>> {
    let SyncForm { dry_run, confirm } = input.params;
    if dry_run {
        let plan = deps.directory.plan(scope).await?;
        let message = match &plan.mass_removal {
            Some(held) => format!(
                "nothing was changed; {} would be removed, which needs confirmation with digest {}",
                held.what, held.digest
            ),
            None => "nothing was changed".to_owned(),
        };
        let synced = Synced {
            plan,
            object: object(),
            state: None,
            generation: None,
        };
        return Ok(Answer::ok(message, synced));
    }
    if deps.settings().auth_mode != AuthMode::Ldap {
        return Err(ApiError::ModeForbidden(
            "users come from a directory in ldap mode only; `dry_run` shows what a change to it would bring",
        ));
    }
    let mut tx = input.meta.begin(deps).await?;
    let generation =
        directory::request(&mut tx, scope, confirm.trim(), input.if_generation).await?;
    let change = Change::new(Kind::Directory, object_uid(), OBJECT_NAME, generation);
    let how = if confirm.trim().is_empty() {
        ""
    } else {
        ", with confirmation"
    };
    tx.commit(change.about().detail(format!("{scope}{how}")))
        .await?;
    let settled = wait::settle(deps, &change, Until::Converged, input.wait).await;
    let converged = settled == Settled::Converged;
    let answer = wait::reply(
        &change,
        settled,
        "synchronised",
        "synchronisation requested",
    )?;
    let result = match converged {
        true => directory::facts(&mut *deps.db.read().await?).await?.result,
        false => SyncResult::default(),
    };
    Ok(answer.map(|_| Synced {
        plan: SyncPlan {
            result,
            ..SyncPlan::default()
        },
        object: object(),
        state: Some(if converged {
            State::Converged
        } else {
            State::Pending
        }),
        generation: Some(generation),
    }))
}
