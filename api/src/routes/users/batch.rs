//! Creating many users at once.

use http::StatusCode;
use schema::audit::About;
use schema::db::Tx;
use schema::error::DbError;
use schema::group::{self, Group};
use schema::ids::{Kind, PlainName, Timestamp, UserName};
use schema::operation::{self, Progress};
use schema::reader::Connection;
use schema::user::{self, Template};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::NO_GROUP;
use super::{checked_tag, create_local, template};
use crate::answer::{self, Answer, Partly};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta};
use crate::route::{Area, Route, Tokens};
use crate::routes::groups;
use crate::routes::params::{NewPassword, names};
use crate::wait::{self, Change, State};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "users_batch_create",
            "/api/admin/users/batch-create",
            batch_create,
        )
.tokens(Tokens::Admin)
        .title(Area::Users, "Create several local users")
        .about(
            "Each name succeeds or fails by itself, as its result shows. If some fail, `success` is false and `error` names them, with \
                 status 200. The containers of all users created are one task.",
        )
        .local_only()
        .waits_for_task()
        .fails(&[NO_GROUP]),
    ]
}

/// Most names of one request: each costs a hash of some 20 ms.
const MAX_NAMES: usize = 500;
/// How often a place in the line for hashing is asked for, with the pool's own pause in between.
const HASH_ATTEMPTS: u32 = 10;

/// Most names that the sentence about failures says.
const NAMED: usize = 10;

/// The users to create.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Names {
    /// A list, or a text separated by commas or line breaks; at most 500.
    #[schema(example = json!(["alice", "bob"]))]
    usernames: Vec<String>,
    /// A password for each of them, in their order: a list, or a text separated by line breaks; an empty one is random. Default: all
    /// are random.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["correct horse battery", ""]))]
    passwords: Vec<SecretString>,
    /// A tag of the configured image for all; default: the configured tag.
    #[schema(example = "1.2.3")]
    image_tag: Option<String>,
    /// Groups that all of them become members of.
    #[serde(default)]
    #[schema(example = json!(["engineering"]))]
    groups: Vec<String>,
}

impl Names {
    /// A password for each of `count` names; `None`: random.
    fn passwords(&self, count: usize) -> Result<Vec<Option<SecretString>>> {
        let given: Vec<&str> = match self.passwords.as_slice() {
            [] => return Ok(vec![None; count]),
            [one] if count > 1 => one.expose_secret().lines().collect(),
            several => several.iter().map(SecretString::expose_secret).collect(),
        };
        if given.len() != count {
            let rule = format!(
                "passwords holds one for each of usernames, which are {count}; an empty one is random"
            );
            return Err(ApiError::invalid("passwords", rule));
        }
        let password = |text: &str| (!text.is_empty()).then(|| SecretString::from(text));
        Ok(given.into_iter().map(password).collect())
    }
}

/// The result of one name.
#[derive(Serialize, ToSchema)]
#[schema(as = BatchOutcome)]
pub struct Outcome {
    /// The name as it was given.
    #[schema(example = "alice")]
    username: String,
    /// The user was created.
    success: bool,
    /// Returned only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    /// Why not, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Why not, stable for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

impl Outcome {
    fn refused(username: &str, error: &ApiError) -> Self {
        Self {
            // A name that breaks the rule may be of any length.
            username: username.chars().take(64).collect(),
            success: false,
            password: None,
            error: Some(error.to_string()),
            code: Some(error.code().to_owned()),
        }
    }
}

/// The results.
#[derive(Serialize, ToSchema)]
pub struct BatchCreated {
    /// One result per name, in the order given.
    results: Vec<Outcome>,
    /// The task of their containers; null when no user was created.
    task_id: Option<String>,
    /// How many were created.
    total: usize,
    /// How far the task is.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// How many containers are in which state.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

/// One name on its way.
enum Candidate {
    Refused(Outcome),
    Ready {
        name: UserName,
        password: NewPassword,
        hash: SecretString,
    },
}

/// `POST /api/admin/users/batch-create`: each name by itself; the containers of all that were
/// created are one operation.
///
/// # Errors
/// 400 without names, with more than 500, or with another number of passwords; 404 without such a group; what fails for one name is in
/// its result.
async fn batch_create(
    Superadmin(actor): Superadmin,
    input: Input<Names>,
    deps: Deps,
) -> Result<Partly<BatchCreated>> {
    let names = names(&input.params.usernames);
    if names.is_empty() || names.len() > MAX_NAMES {
        let rule = format!("usernames holds 1 to {MAX_NAMES} names");
        return Err(ApiError::invalid("usernames", rule));
    }
    let image_tag = checked_tag(input.params.image_tag.clone())?;
    let passwords = input.params.passwords(names.len())?;
    check_groups(&deps, &input.params.groups).await?;
    let mut candidates = Vec::with_capacity(names.len());
    for (name, password) in names.into_iter().zip(passwords) {
        candidates.push(candidate(&deps, name, password).await?);
    }
    let common = Common {
        image_tag,
        groups: &input.params.groups,
        actor: actor.to_string(),
    };
    let (results, task) = record(&deps, &input.meta, candidates, &common).await?;
    let created = results.iter().filter(|result| result.success).count();
    let message = format!("{created} of {} created", answer::users(results.len()));
    let progress = match &task {
        None => None,
        Some(task) => Some(wait::settle_operation(&deps, task, input.wait).await),
    };
    let (state, status) = progress.map(wait::state_of).unzip();
    let failure = describe_failures(&results);
    let batch = BatchCreated {
        results,
        task_id: task,
        total: created,
        state,
        progress,
    };
    let answer = Answer::ok(message, batch).status(status.unwrap_or(StatusCode::OK));
    Ok(answer.partly(failure))
}

/// A sentence about the names that failed, if any did.
fn describe_failures(results: &[Outcome]) -> Option<String> {
    let failed: Vec<&Outcome> = results.iter().filter(|result| !result.success).collect();
    let named = failed.iter().take(NAMED).map(|result| {
        let why = result.error.as_deref().unwrap_or_default();
        format!("{}: {why}", result.username)
    });
    let mut sentences: Vec<String> = named.collect();
    if failed.len() > NAMED {
        sentences.push(format!("{} more, see results", failed.len() - NAMED));
    }
    (!failed.is_empty()).then(|| {
        format!(
            "{} of {} not created; {}",
            failed.len(),
            answer::users(results.len()),
            sentences.join("; ")
        )
    })
}

/// Values for all users of a request.
struct Common<'a> {
    image_tag: Option<String>,
    groups: &'a [String],
    actor: String,
}

/// Finds the groups before passwords are hashed; they are found once more when the users are recorded.
async fn check_groups(deps: &Deps, names: &[String]) -> Result<()> {
    find_groups(&mut *deps.db.read().await?, names)
        .await
        .map(drop)
}

async fn find_groups(connection: &mut Connection, texts: &[String]) -> Result<Vec<Group>> {
    let mut found = Vec::new();
    for name in names(texts) {
        let name: PlainName = name
            .parse()
            .map_err(|rule| ApiError::invalid("groups", format!("groups: {rule}")))?;
        found.push(groups::own(groups::find(connection, &name).await?)?);
    }
    Ok(found)
}

/// Checks a name and hashes its password. Only a failing service is an error.
async fn candidate(deps: &Deps, text: &str, password: Option<SecretString>) -> Result<Candidate> {
    let refused = |error: &ApiError| Ok(Candidate::Refused(Outcome::refused(text, error)));
    let name: UserName = match text.parse() {
        Ok(name) => name,
        Err(rule) => return refused(&ApiError::invalid("usernames", format!("{rule}"))),
    };
    // Decided once more when it is recorded; here it only saves a hash.
    if is_taken(deps, &name).await? {
        return refused(&already_exists(&name));
    }
    let password = match NewPassword::read(password) {
        Ok(new) => new,
        Err(broken @ ApiError::InvalidParameter { .. }) => return refused(&broken),
        Err(error) => return Err(error),
    };
    match hash(deps, &password.password).await {
        Ok(hash) => Ok(Candidate::Ready {
            name,
            password,
            hash,
        }),
        Err(busy @ ApiError::Busy { .. }) => refused(&busy),
        Err(error) => Err(error),
    }
}

async fn is_taken(deps: &Deps, name: &UserName) -> Result<bool, DbError> {
    let mut connection = deps.db.read().await?;
    let holder = user::find(&mut connection, name).await?;
    Ok(holder.is_some_and(|holder| holder.deleted_at.is_none()))
}

fn already_exists(name: &UserName) -> ApiError {
    ApiError::AlreadyExists {
        what: format!("user {name}"),
    }
}

/// Hashes a password; sign-ins go first, so a full line is waited for.
async fn hash(deps: &Deps, password: &SecretString) -> Result<SecretString> {
    for _ in 1..HASH_ATTEMPTS {
        match deps.passwords.hash(password).await {
            Err(ApiError::Busy { retry_after }) => tokio::time::sleep(retry_after).await,
            other => return other,
        }
    }
    deps.passwords.hash(password).await
}

/// Records all users and the operation in one transaction. Returns the results in the order of the
/// names, and the operation's id unless nobody was created.
async fn record(
    deps: &Deps,
    meta: &Meta,
    candidates: Vec<Candidate>,
    common: &Common<'_>,
) -> Result<(Vec<Outcome>, Option<String>)> {
    let now = deps.clock.now();
    let mut tx = meta.begin(deps).await?;
    if !common.groups.is_empty() {
        group::lock(&mut tx).await?;
    }
    let groups = find_groups(&mut tx, common.groups).await?;
    let template = template(&mut tx, deps, common.image_tag.as_deref()).await?;
    let (mut results, mut objects) = (Vec::with_capacity(candidates.len()), Vec::new());
    for candidate in candidates {
        let (outcome, change) = record_one(&mut tx, &template, candidate, now).await?;
        results.push(outcome);
        objects.extend(change.map(|c| (c.kind, c.uid, c.name, c.generation)));
    }
    let mut created = objects.iter().map(|(_, _, name, _)| name);
    let Some(first) = created.next() else {
        return Ok((results, None));
    };
    let about = created.fold(About::object(Kind::User, first), |about, name| {
        about.and(Kind::User, name)
    });
    let mut about = about;
    for group in groups {
        let uids = objects.iter().map(|(_, uid, _, _)| uid.clone()).collect();
        group::add_members(&mut tx, &group.uid, uids).await?;
        about = about.and("group", group.name.as_str());
    }
    let actor = &common.actor;
    let task = operation::create(&mut tx, "batch_create", actor, &objects, now).await?;
    tx.commit(about.detail(format!("task {task}"))).await?;
    Ok((results, Some(task)))
}

async fn record_one(
    tx: &mut Tx,
    template: &Template,
    candidate: Candidate,
    now: Timestamp,
) -> Result<(Outcome, Option<Change>), DbError> {
    let (name, password, hash) = match candidate {
        Candidate::Refused(outcome) => return Ok((outcome, None)),
        Candidate::Ready {
            name,
            password,
            hash,
        } => (name, password, hash),
    };
    let refused = match create_local(tx, template, &name, hash, now).await {
        Ok(change) => return Ok((created(&name, password), Some(change))),
        Err(DbError::NameTaken) => already_exists(&name),
        Err(DbError::NameBeingRemoved) => ApiError::NameBeingRemoved,
        Err(error) => return Err(error),
    };
    Ok((Outcome::refused(name.as_str(), &refused), None))
}

fn created(name: &UserName, password: NewPassword) -> Outcome {
    Outcome {
        username: name.to_string(),
        success: true,
        password: password.reveal_random(),
        error: None,
        code: None,
    }
}
