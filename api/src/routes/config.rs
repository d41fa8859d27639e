//! Reading and saving the configuration, what it was before, and bringing it to the agents.

pub mod apply;
pub mod history;
mod switch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::header::{ETAG, HeaderName};
use http::{HeaderValue, StatusCode};
use schema::adapter::RenderError;
use schema::audit::{About, Audited};
use schema::config::history::SavedBy;
use schema::config::{
    self, AuthMode, Changes, Config, Patch, Problem, ProblemCode, check_integers, keys, parse_patch,
};
use schema::container;
use schema::db::Tx;
use schema::error::DbError;
use schema::ids::{Generation, Uid};
use schema::mode_switch;
use schema::object;
use schema::under_way::track_call;
use schema::whitelist;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::spawn_blocking;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::answer::{Answer, Resource};
use crate::deps::{Dependencies, Deps};
use crate::dispatch::{Actor, Superadmin};
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta, Nothing};
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::agent_model::ModelForm;
use crate::routes::auth::whitelist::EMPTY;
use crate::routes::containers::find_cpu_problem;
use crate::routes::skills::effect::{UserChange, affected};
use crate::settings::{self, WebSettings};
use crate::wait::{self, Change, Settled, State};

pub(crate) use self::switch::Purging;
use self::switch::test_source;

/// The routes of this file, and of those below it.
pub(super) fn routes() -> Vec<Route> {
    let mut routes =
        vec![
        Route::get("config_read", "/api/config", read)
.tokens(Tokens::Read)
            .title(Area::Configuration, "Get the configuration")
            .about(
                "All keys as one nested document, without envelope; secrets are shown as \
                 `********`.",
            )
            .headers(&["ETag", "X-Config-Generation"]),
        Route::post("config_save", "/api/config", save)
.tokens(Tokens::Admin)
            .title(Area::Configuration, "Change the configuration")
            .about(
                "Keys that are not sent stay unchanged, and so do masked secrets; `null` returns \
                 a key to its default. A stored secret belongs to the host it was given for: a \
                 change of that host has to send it again, or remove it. With `dry_run` nothing \
                 is saved. `if_generation` is compared with the configuration's generation. A change of \
                 `web.auth_mode` removes all ordinary users: the new source of users is tested, and `confirm` is \
                 required. By default the answer does not wait for what follows from the change.",
            )
            .guarded()
            .waits()
            .fails(&[
                switch::UNCONFIRMED,
                switch::UNTESTED,
                Failure(
                    409,
                    "network_in_use",
                    "the network cannot be changed while containers exist",
                ),
                Failure(
                    422,
                    "invalid_config",
                    "`problems` names the keys that are refused, at most 50; `problem_count` counts them",
                ),
                Failure(
                    422,
                    "not_available_yet",
                    "the values are valid, but not supported yet",
                ),
            ]),
        Route::get("config_schema", "/api/admin/config/schema", describe)
.tokens(Tokens::Read)
            .title(Area::Configuration, "Get the JSON Schema of the configuration")
            .about("For every key: title, description, default, rule, whether it is secret, and whether this release supports it."),
    ];
    routes.extend(history::routes());
    routes.extend(apply::routes());
    routes
}

const GENERATION: HeaderName = HeaderName::from_static("x-config-generation");

/// All keys as one nested document.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Document(Value);

impl ToSchema for Document {
    fn name() -> std::borrow::Cow<'static, str> {
        "Configuration".into()
    }
}

impl PartialSchema for Document {
    /// As the rows of the keys describe it.
    fn schema() -> RefOr<Schema> {
        serde_json::from_value(config::json_schema())
            .unwrap_or_else(|_| RefOr::T(Schema::Object(Object::new())))
    }
}

/// `GET /api/config`: all keys as one nested document, secrets masked, without envelope. The
/// generation that `if_generation` of a save compares with is in the headers `ETag` and
/// `X-Config-Generation`.
///
/// # Errors
/// None of its own.
async fn read(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Resource<Document>> {
    let (config, generation) = settings::read(&deps.db, &deps.master_key).await?;
    let mut connection = deps.db.read().await?;
    let config = deps.adapter.settle(&mut connection, config).await?;
    let tag = HeaderValue::try_from(format!("\"{generation}\"")).map_err(ApiError::internal)?;
    Ok(Resource::pretty(&Document(config.to_document(true)))
        .header(ETAG, tag)
        .header(GENERATION, HeaderValue::from(generation)))
}

/// The JSON Schema of the configuration.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConfigurationSchema)]
pub struct Described {
    /// JSON Schema (2020-12) of the nested document. Every key has `title`, `description`, `default`, `secret`
    /// (its value, or each of its leaves, is never shown), `x-rule` (the rule of a text), `x-belongs-to` (the key of the host that a
    /// secret is for), `x-effects` (what a change recreates or reconciles: `containers`, `files`, or a kind of objects) and
    /// `x-available`: false for a key that this release does not support yet and that can only be set to its default.
    #[schema(value_type = Object, example = json!({"type": "object", "properties": {}}))]
    schema: Value,
}

/// `GET /api/admin/config/schema`: what forms are rendered from.
///
/// # Errors
/// None of its own.
async fn describe(_: Superadmin, _: Input<Nothing>, _: Deps) -> Result<Answer<Described>> {
    let schema = config::json_schema();
    Ok(Answer::ok(
        "the configuration's JSON Schema",
        Described { schema },
    ))
}

/// The form of `POST /api/config`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ConfigForm {
    /// A full or partial document as JSON text; may contain secrets.
    #[schema(value_type = String, example = "{\"image\": {\"tag\": \"1.2.3\"}}")]
    config: SecretString,
    /// Report what would change, without saving.
    #[serde(default)]
    dry_run: bool,
    /// Digest of the plan of a change of `web.auth_mode`, as `purge.confirm` of a dry run shows it.
    #[serde(default)]
    #[schema(example = "")]
    confirm: String,
    /// Change `web.auth_mode` without a test of the new source of users.
    #[serde(default)]
    force: bool,
}

/// What was saved, or would be with `dry_run`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConfigSaved)]
pub struct Saved {
    /// The keys whose values change.
    #[schema(example = json!(["image.tag"]))]
    changed: Vec<&'static str>,
    /// How many containers are recreated: running ones that use a changed value, and all running ones
    /// if agents' files depend on one.
    #[schema(example = 0)]
    restarts: i64,
    /// Their users, the first 100.
    #[schema(example = json!([]))]
    restarted_users: Vec<String>,
    /// The rollout in which agents that are ready get the change, a few at a time (`container.max_unavailable`), and its task.
    /// Absent when there are none, and with `dry_run`. The first agent that is not ready within
    /// `container.health_timeout` pauses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    task_id: Option<String>,
    /// What was changed.
    #[schema(example = "config")]
    object: &'static str,
    /// How far what follows from it is; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// The configuration's generation.
    #[schema(example = 3)]
    generation: i64,
    /// What it means for the skills of users, when `skills.defaults` changes; the first 1,000 users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    skill_changes: Vec<UserChange>,
    /// What a change of `web.auth_mode` takes away.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    purge: Option<Purging>,
    /// Changes that have no effect for now, and other effects that may not be expected, a sentence each; `message` repeats them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, example = json!([]))]
    warnings: Vec<String>,
}

/// `POST /api/config`: keys that are not sent stay as they are, a masked secret too, `null` returns
/// a key to its default. Two writers of different keys lose nothing; of two of the same key
/// `if_generation` refuses the second.
///
/// # Errors
/// 400 when `config` is no JSON, 422 with the problems in `problems`, 412, 409 `network_in_use`,
/// `confirmation_required` and `auth_test_failed`.
async fn save(
    Superadmin(actor): Superadmin,
    input: Input<ConfigForm>,
    deps: Deps,
) -> Result<Answer<Saved>> {
    let ConfigForm {
        config,
        dry_run,
        confirm,
        force,
    } = input.params;
    let patch = parse(&config)?;
    check_backup_directory(&deps, &patch).await?;
    let wanted = Wanted::Patch(patch);
    let terms = Terms {
        dry_run,
        confirm,
        force,
        if_generation: input.if_generation,
        wait: input.wait,
    };
    make_change(&deps, &actor, &input.meta, &wanted, terms).await
}

/// Refuses another directory of backups that cannot be used. The file system is asked before anything is locked.
async fn check_backup_directory(deps: &Deps, patch: &Patch) -> Result<()> {
    let key = keys::backup::DIRECTORY.row.key;
    let sent = patch.iter().find(|(sent, _)| *sent == key);
    let Some((_, config::Change::Set(Value::String(directory)))) = sent else {
        return Ok(());
    };
    let (present, _) = settings::read(&deps.db, &deps.master_key).await?;
    if present.get(&keys::backup::DIRECTORY).as_ref() == Some(directory) {
        return Ok(());
    }
    let (health, directory) = (Arc::clone(&deps.health), PathBuf::from(directory));
    let check = move || health.check_backups(&directory);
    let checked = spawn_blocking(track_call("a directory of backups", check)).await;
    match checked {
        Ok(Err(rule)) => Err(refuse_value(key, &rule)),
        Ok(Ok(())) => Ok(()),
        Err(panic) => Err(ApiError::internal(panic)),
    }
}

fn refuse_value(key: &str, rule: &str) -> ApiError {
    refused(vec![Problem {
        key: key.to_owned(),
        code: ProblemCode::InvalidValue,
        message: format!("{key}: {rule}"),
    }])
}

/// Values that a save asks for.
pub(in crate::routes) enum Wanted {
    /// Values of keys.
    Patch(Patch),
    /// The values as of a revision.
    Revision(i64),
    /// A model for all agents, and why they do not reach it.
    Model(Box<ModelForm>, Vec<String>),
}

impl Wanted {
    /// The values, and how the audit trail describes them.
    async fn resolve(&self, tx: &mut Tx, deps: &Dependencies) -> Result<(Patch, String)> {
        match self {
            Self::Patch(patch) => Ok((patch.clone(), String::new())),
            Self::Revision(revision) => {
                let patch = history::read_revision(tx, deps, *revision).await?;
                Ok((patch, format!("to revision {revision}; ")))
            }
            Self::Model(form, _) => form.resolve(tx, deps).await,
        }
    }

    /// Effects that a caller may not expect, a sentence each.
    fn warnings(&self) -> &[String] {
        match self {
            Self::Patch(_) | Self::Revision(_) => &[],
            Self::Model(_, warnings) => warnings,
        }
    }
}

/// Conditions of a save.
pub(in crate::routes) struct Terms {
    /// Report only.
    dry_run: bool,
    /// Digest of the plan of a change of `web.auth_mode`.
    confirm: String,
    /// Change `web.auth_mode` without a test.
    force: bool,
    /// The generation that the caller has read.
    if_generation: Option<Generation>,
    /// Time for which the answer is held back.
    wait: Option<Duration>,
}

impl Terms {
    /// Those of a save that changes no source of users.
    pub(in crate::routes) fn plain(
        dry_run: bool,
        if_generation: Option<Generation>,
        wait: Option<Duration>,
    ) -> Self {
        Self {
            dry_run,
            confirm: String::new(),
            force: false,
            if_generation,
            wait,
        }
    }
}

/// Most users that an answer names whose containers are recreated.
const NAMED_USERS: i64 = 100;

/// Most tests of a source of users for one request: the configuration may change meanwhile.
const MOST_TESTS: usize = 3;

/// Saves what is wanted, or reports what would change. A change of `web.auth_mode` is made after a test of the new source.
pub(in crate::routes) async fn make_change(
    deps: &Deps,
    actor: &Actor,
    meta: &Meta,
    wanted: &Wanted,
    terms: Terms,
) -> Result<Answer<Saved>> {
    let mut tested: Option<(i64, Option<String>)> = None;
    for _ in 0..=MOST_TESTS {
        let mut tx = meta.begin(deps).await?;
        config::query::lock(&mut tx).await?;
        let (patch, mut detail) = wanted.resolve(&mut tx, deps).await?;
        let warnings = [patch.warnings(), wanted.warnings()].concat();
        let mut draft = draft(&mut tx, deps, patch, terms.if_generation).await?;
        draft.warnings.extend(warnings);
        detail += &described(&draft.changes);
        if let Some(purge) = &mut draft.purge {
            match tested.take() {
                _ if terms.force => detail += "; the new source of users was not tested",
                Some((generation, problem)) if generation == draft.generation => {
                    purge.tested(problem);
                }
                _ => {
                    // A source may take its time: nothing is locked meanwhile.
                    drop(tx);
                    let problem = test_source(deps, meta, &draft.after).await?;
                    tested = Some((draft.generation, problem));
                    continue;
                }
            }
        }
        if terms.dry_run {
            return unsaved(deps, actor, tx, draft).await;
        }
        if let Some(purge) = &draft.purge {
            purge.check_consent(&terms)?;
        }
        let about = About::whole("config").detail(detail);
        return finish(deps, actor, tx, draft, about, terms.wait).await;
    }
    Err(ApiError::Stale { generation: None })
}

/// Says what a draft would change, and leaves everything as it is.
async fn unsaved(
    deps: &Deps,
    actor: &Actor,
    mut tx: Audited,
    mut draft: Draft,
) -> Result<Answer<Saved>> {
    if draft.changes.has(&keys::skills::DEFAULTS) {
        // Never committed.
        draft.skills = affected(&record(deps, actor, &mut tx, &mut draft).await?.skills);
        draft
            .purge
            .iter_mut()
            .for_each(|purge| purge.operation = None);
    }
    Ok(draft.unsaved(deps))
}

/// Writes a draft, and what it takes away.
async fn record(
    deps: &Deps,
    actor: &Actor,
    tx: &mut Audited,
    draft: &mut Draft,
) -> Result<config::query::Saved> {
    let actor = actor.to_string();
    let by = SavedBy {
        actor: &actor,
        at: deps.clock.now(),
    };
    let (key, changed) = (&deps.master_key, &draft.changes);
    let saved = config::query::save(tx, key, changed, None, by).await;
    let saved = saved.map_err(unknown_skills)?;
    if let Some(purge) = &mut draft.purge {
        let modes = (draft.before, draft.after.get(&keys::web::AUTH_MODE));
        let operation = mode_switch::begin(tx, modes, &actor, deps.clock.now()).await?;
        purge.operation = Some(operation);
    }
    Ok(saved)
}

/// Saves a draft, and waits for what follows from it.
async fn finish(
    deps: &Deps,
    actor: &Actor,
    mut tx: Audited,
    mut draft: Draft,
    about: About,
    wait: Option<Duration>,
) -> Result<Answer<Saved>> {
    let saved = record(deps, actor, &mut tx, &mut draft).await?;
    draft.skills = affected(&saved.skills);
    draft.rollout.clone_from(&saved.rollout);
    let (generation, changed) = (saved.generation, &draft.changes);
    // Without users there is nothing to wait for.
    let purge = draft.purge.as_ref().filter(|purge| purge.users > 0);
    let purge = purge.and_then(|purge| purge.operation.clone());
    let mut singles = Vec::new();
    for (kind, uid, name) in config::query::singles_touched(changed) {
        if let Some(object) = object::get(&mut tx, kind, &uid).await? {
            singles.push(Change::new(kind, uid, name, object.generation));
        }
    }
    tx.commit(about).await?;
    let settings = WebSettings::of(&draft.after, generation);
    settings::publish(&deps.settings_sender, settings);
    let kinds = config::query::kinds_touched(changed);
    let (decides, mut settled, failed) = wait::settle_kinds(deps, &singles, &kinds, wait).await;
    if let Some(purge) = purge
        && settled == Settled::Converged
        && wait::settle_operation(deps, &purge, wait)
            .await
            .is_under_way()
    {
        settled = Settled::default();
    }
    let mut broken = 0;
    if let Some(rollout) = &draft.rollout
        && settled == Settled::Converged
    {
        let progress = wait::settle_change(deps, rollout.as_str(), wait).await;
        broken = progress.failed;
        if broken == 0 && progress.is_under_way() {
            settled = Settled::default();
        }
    }
    let saved = |state, message: &str| draft.answer(deps, message, generation, Some(state));
    let way_back = generation - 1;
    Ok(match settled {
        Settled::Converged if broken > 0 => saved(
            State::Failed,
            &format!(
                "configuration saved; {broken} agents are not ready with it, and no others get it; `agentyard config rollback {way_back}` takes it back"
            ),
        ),
        Settled::Converged if failed > 0 => saved(
            State::Failed,
            &format!("configuration saved; {failed} objects need manual action"),
        ),
        Settled::Converged => saved(State::Converged, "configuration saved"),
        Settled::Pending(_) | Settled::Unavailable(_) | Settled::Paused(_) => {
            let message = match &draft.rollout {
                Some(task) => format!(
                    "configuration saved; agents get it in steps (task {task}); `agentyard config rollback {way_back}` takes it back"
                ),
                None => "configuration saved; what follows from it is under way".to_owned(),
            };
            saved(State::Pending, &message).status(StatusCode::ACCEPTED)
        }
        Settled::Failed { reason, message } => {
            return Err(wait::failure(&singles[decides], reason, message));
        }
    })
}

fn parse(document: &SecretString) -> Result<Patch> {
    let text = document.expose_secret();
    let document: Value = serde_json::from_str(text)
        .map_err(|_| ApiError::invalid("config", "config is not valid JSON"))?;
    check_integers(text).map_err(|problem| refused(vec![problem]))?;
    parse_document(&document)
}

/// The patch that a document describes.
///
/// # Errors
/// 422 for keys that there are none of.
pub(in crate::routes) fn parse_document(document: &Value) -> Result<Patch> {
    parse_patch(document).map_err(refused)
}

/// Names of keys only: a value may be a secret.
fn described(changes: &Changes) -> String {
    let keys: Vec<&str> = changes.0.keys().copied().collect();
    match &*keys {
        [] => "nothing changed".to_owned(),
        keys => format!("changed: {}", keys.join(", ")),
    }
}

/// What a request would change.
struct Draft {
    changes: Changes,
    /// The configuration with the changes.
    after: Config,
    /// The present generation.
    generation: i64,
    /// How many containers would be recreated.
    restarts: i64,
    /// The first of their users.
    restarted_users: Vec<String>,
    /// The rollout that brings the change to them.
    rollout: Option<Uid>,
    /// What it means for the skills of users.
    skills: Vec<UserChange>,
    /// Where users came from before.
    before: AuthMode,
    /// What a change of that takes away.
    purge: Option<Purging>,
    /// Effects that a caller may not expect.
    warnings: Vec<String>,
}

impl Draft {
    fn answered(&self, deps: &Dependencies, generation: i64, state: Option<State>) -> Saved {
        Saved {
            changed: self.changes.0.keys().copied().collect(),
            restarts: self.restarts,
            restarted_users: self.restarted_users.clone(),
            task_id: self.rollout.as_ref().map(Uid::to_string),
            object: "config",
            state,
            generation,
            skill_changes: self.skills.clone(),
            purge: self.purge.clone(),
            warnings: self.warnings(deps),
        }
    }

    fn unsaved(&self, deps: &Dependencies) -> Answer<Saved> {
        let mut message = "nothing was saved".to_owned();
        if let Some(purge) = &self.purge {
            message = format!("{message}; {}", purge.sentence());
        }
        self.answer(deps, &message, self.generation, None)
    }

    fn answer(
        &self,
        deps: &Dependencies,
        message: &str,
        generation: i64,
        state: Option<State>,
    ) -> Answer<Saved> {
        let saved = self.answered(deps, generation, state);
        let warnings = saved.warnings.iter().map(String::as_str);
        let sentences: Vec<&str> = std::iter::once(message).chain(warnings).collect();
        Answer::ok(sentences.join("; "), saved)
    }

    /// Effects that a caller may not expect, such as a value that is saved and not obeyed.
    fn warnings(&self, deps: &Dependencies) -> Vec<String> {
        let by = deps
            .log_override
            .filter(|_| self.changes.has(&keys::log::LEVEL));
        let warning = |by| {
            format!(
                "log.level has no effect while the environment variable {by} of the server is set"
            )
        };
        let mut warnings = self.warnings.clone();
        warnings.extend(by.map(warning));
        warnings
    }
}

/// Compares a request with the configuration in effect, which the transaction has locked.
async fn draft(
    tx: &mut Tx,
    deps: &Dependencies,
    patch: Patch,
    expected: Option<Generation>,
) -> Result<Draft> {
    let (values, generation) = config::query::load(tx, &deps.master_key).await?;
    if expected.is_some_and(|expected| expected.0 != generation) {
        return Err(ApiError::Stale {
            generation: Some(Generation(generation)),
        });
    }
    let present = Config::from_stored(values);
    let present = deps.adapter.settle(tx, present).await?;
    let changes = patch.resolve(&present).map_err(refused)?;
    if changes.has(&keys::container::NETWORK_SUBNET) && container::count_on_network(tx).await? > 0 {
        return Err(ApiError::NetworkInUse);
    }
    if let Some(cores) = changes.get(&keys::container::CPU_LIMIT)
        && let Some(rule) = find_cpu_problem(deps, cores)
    {
        return Err(refuse_value(keys::container::CPU_LIMIT.row.key, &rule));
    }
    if let Some(Some(directory)) = changes.get(&keys::backup::DIRECTORY)
        && let Err(rule) = deps.health.permit_backups(Path::new(&directory))
    {
        return Err(refuse_value(keys::backup::DIRECTORY.row.key, &rule));
    }
    let before = present.get(&keys::web::AUTH_MODE);
    let documents = |config: &Config| (config.get(&keys::AGENT), config.get(&keys::SECURITY));
    let documents_before = documents(&present);
    let after = present.apply(&changes);
    let missing = after.missing_for_mode();
    if !missing.is_empty() {
        return Err(refused(missing));
    }
    let mut warnings = Vec::new();
    if changes.has(&keys::AGENT) || changes.has(&keys::SECURITY) {
        check_global(tx, deps, &after).await?;
        let adapter = deps.adapter.current_in(tx).await?;
        warnings = adapter.warn_of_unknown(&documents_before, &documents(&after));
    }
    let may_clash = changes.has(&keys::AGENT) || changes.has(&keys::chat::ENABLED);
    if may_clash && after.get(&keys::chat::ENABLED) {
        let adapter = deps.adapter.current_in(tx).await?;
        let checked = adapter.check_chat(&after.get(&keys::AGENT));
        checked.map_err(|error| global_problem(&error))?;
    }
    let lists = [
        &keys::ldap::WHITELIST_ENABLED,
        &keys::oidc::WHITELIST_ENABLED,
    ];
    let is_enabled = lists.iter().any(|key| changes.has(key) && after.get(key));
    if is_enabled && whitelist::is_empty(tx).await? {
        warnings.push(EMPTY.to_owned());
    }
    let (restarts, restarted_users) = config::query::restarts(tx, &changes, NAMED_USERS).await?;
    Ok(Draft {
        restarts,
        restarted_users,
        rollout: None,
        purge: match after.get(&keys::web::AUTH_MODE) {
            same if same == before => None,
            new => Some(Purging::read_plan(tx, (before, new)).await?),
        },
        before,
        after,
        changes,
        generation,
        skills: Vec::new(),
        warnings,
    })
}

/// What the active adapter can't put into the files of any agent version is refused before it reaches anybody.
async fn check_global(tx: &mut Tx, deps: &Dependencies, after: &Config) -> Result<()> {
    let adapter = deps.adapter.current_in(tx).await?;
    let (agent, security) = (after.get(&keys::AGENT), after.get(&keys::SECURITY));
    let checked = adapter.check_global(&agent, &security);
    checked.map_err(|error| global_problem(&error))
}

/// The answer to global settings that the adapter refuses.
fn global_problem(error: &RenderError) -> ApiError {
    let (key, message) = match error {
        RenderError::InvalidGlobal { key, problem } => (*key, format!("{key} {problem}")),
        _ => (
            "agent",
            "agent says that it is of a configuration version from which the active adapter knows no way to any that its agents read".to_owned(),
        ),
    };
    refused(vec![Problem {
        key: key.to_owned(),
        code: ProblemCode::InvalidValue,
        message,
    }])
}

/// What names no skill is refused as any other value of the key.
fn unknown_skills(error: DbError) -> ApiError {
    match &error {
        DbError::UnknownSkills(_) => {
            let key = keys::skills::DEFAULTS.row.key;
            refused(vec![Problem {
                key: key.to_owned(),
                code: ProblemCode::InvalidValue,
                message: format!("{key}: {error}"),
            }])
        }
        _ => error.into(),
    }
}

pub(in crate::routes) fn refused(problems: Vec<Problem>) -> ApiError {
    let not_yet = problems
        .iter()
        .all(|problem| problem.code == ProblemCode::NotAvailableYet);
    let sentences = problems.iter().map(|problem| problem.message.clone());
    let sentences: Vec<String> = sentences.collect();
    let code = if not_yet {
        "not_available_yet"
    } else {
        "invalid_config"
    };
    let what = "the configuration was not saved";
    ApiError::problems(code, what, &sentences, &problems)
}

#[cfg(test)]
mod tests;
