//! Changes of `web.auth_mode`: the plan, the test of the new source of users, and the confirmation.

use schema::config::{AuthMode, Config, keys};
use schema::error::DbError;
use schema::ids::UserName;
use schema::mode_switch;
use schema::reader::Connection;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::Terms;
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::input::Meta;
use crate::ports::{CheckStep, DirectoryWanted};
use crate::route::Failure;
use crate::routes::auth::{check_directory, check_provider};

/// The plan is not confirmed.
pub(super) const UNCONFIRMED: Failure = Failure(
    409,
    "confirmation_required",
    "`web.auth_mode` would change and users, containers or groups be removed; `purge` shows the plan, and `confirm` \
     with its digest confirms it",
);
/// The new source of users does not work.
pub(super) const UNTESTED: Failure = Failure(
    409,
    "auth_test_failed",
    "the directory or the identity provider that `web.auth_mode` would use failed its test; `purge.problem` says why, \
     and `force` changes the mode all the same",
);

/// Plan of a change of the authentication mode: all that it removes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Purge)]
pub struct Purging {
    /// The task that tells how far it is; null with `dry_run`.
    #[schema(required = true)]
    pub(super) operation: Option<String>,
    /// The present mode.
    from: AuthMode,
    /// The new mode.
    to: AuthMode,
    /// Number of users who leave; their directories are archived.
    pub(super) users: usize,
    /// The first 100 of them.
    names: Vec<UserName>,
    /// Number of containers that are removed.
    containers: i64,
    /// Number of groups that are removed.
    groups: i64,
    /// Digest of the plan: the value of `confirm`; absent when nothing is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, example = "3f0a6d2be1c94875")]
    confirm: Option<String>,
    /// Reason why the new source of users failed its test; absent when it works, or `force` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    problem: Option<String>,
}

impl Purging {
    /// Most users that are named.
    const NAMED: usize = 100;

    /// Reads what a change of the mode would take away now.
    pub(super) async fn read_plan(
        connection: &mut Connection,
        (from, to): (AuthMode, AuthMode),
    ) -> Result<Self, DbError> {
        let mut purge = mode_switch::purge(connection).await?;
        let confirm = (!purge.is_nothing()).then(|| purge.digest((from, to)));
        let users = purge.names.len();
        purge.names.truncate(Self::NAMED);
        Ok(Self {
            operation: None,
            from,
            to,
            users,
            names: purge.names,
            containers: purge.containers,
            groups: purge.groups,
            confirm,
            problem: None,
        })
    }

    /// The plan with the result of a test.
    pub(super) fn tested(&mut self, problem: Option<String>) {
        self.problem = problem;
    }

    /// Refuses a change whose new source does not work, or that the administrator has not confirmed.
    pub(super) fn check_consent(&self, terms: &Terms) -> Result<()> {
        let code = match (&self.problem, &self.confirm) {
            (Some(_), _) => "auth_test_failed",
            (None, Some(digest)) if *digest != terms.confirm.trim() => "confirmation_required",
            _ => return Ok(()),
        };
        Err(ApiError::SwitchRefused {
            code,
            message: format!("nothing was saved; {}", self.sentence()),
            purge: json!(self),
        })
    }

    /// The plan in words, and what to send.
    pub(super) fn sentence(&self) -> String {
        let Self {
            from,
            to,
            users,
            containers,
            groups,
            ..
        } = self;
        let mut said = format!(
            "a change of web.auth_mode from {from} to {to} removes users: {users}, containers: {containers}, \
             groups: {groups}; the users' directories are archived"
        );
        if let Some(problem) = &self.problem {
            said += &format!(
                "; the test of the {} failed: {problem}; correct the settings, or send force=true to change the mode \
                 all the same",
                match to {
                    AuthMode::Oidc => "identity provider",
                    AuthMode::Ldap | AuthMode::Local => "directory",
                }
            );
        }
        if let Some(digest) = &self.confirm {
            said += &format!("; to confirm this plan, send confirm={digest}");
        }
        said
    }
}

/// Tests the source from which users would come; returns why it cannot be used.
///
/// # Errors
/// When a setting is missing, or the database fails.
pub(super) async fn test_source(
    deps: &Dependencies,
    meta: &Meta,
    config: &Config,
) -> Result<Option<String>> {
    let failed = |steps: &[CheckStep]| {
        let failed = steps.iter().find(|step| !step.ok);
        failed.map(|step| format!("{}: {}", step.name, step.detail))
    };
    Ok(match config.get(&keys::web::AUTH_MODE) {
        AuthMode::Local => None,
        AuthMode::Ldap => {
            // However long a list of all users takes.
            let wanted = DirectoryWanted {
                few: true,
                ..DirectoryWanted::default()
            };
            let check = check_directory(deps, meta, config, wanted).await?;
            let empty =
                || "user_search: found 0 users; check ldap.base_dn and ldap.filter".to_owned();
            failed(&check.steps).or_else(|| (check.user_count == 0).then(empty))
        }
        AuthMode::Oidc => failed(&check_provider(deps, meta, config).await?),
    })
}
