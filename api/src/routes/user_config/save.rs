//! Saving what a user has set for one channel.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schema::adapter::{CheckedValues, FieldChanges, FieldProblem, Section};
use schema::audit::About;
use schema::container::Desired;
use schema::ids::{Generation, Kind};
use schema::{agent_config, config, container, object};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::fields::value_of;
use super::forms::{Forms, present};
use crate::answer::Answer;
use crate::auth::Account;
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::input::Meta;
use crate::routes::params;
use crate::wait::{self, Change, Noted};

/// What is to change of one channel.
pub(super) struct Draft {
    /// Its name; `None` = the one behind the chat-app routes.
    pub(super) channel: Option<String>,
    pub(super) values: Map<String, Value>,
    /// The configuration version whose forms are meant.
    pub(super) config_version: Option<u32>,
}

/// Checks and merges what is given into what the user has set, gives the container a new restart token, and
/// waits for files and container.
///
/// # Errors
/// 403, 404, 412, 422; what files or container fail with.
pub(super) async fn save_channel(
    deps: &Deps,
    account: &Account,
    meta: &Meta,
    draft: Draft,
    (expected, wait): (Option<Generation>, Option<Duration>),
) -> Result<Answer<Noted>> {
    let (uid, key) = (&account.uid, &deps.master_key);
    let adapter = deps.adapter.current().await?;
    let mut tx = meta.begin(deps).await?;
    let user = params::present_user(&mut tx, &account.name).await?;
    // A second save waits here and then reads what this one has written. The container comes first wherever
    // both are changed, or two transactions could wait for each other.
    let token = Uuid::new_v4().to_string();
    let (restarted, desired) = container::request_fresh(&mut tx, uid, &token, None).await?;
    let saved = object::bump(&mut tx, Kind::AgentConfig, uid, expected).await?;

    let row = present(agent_config::get(&mut tx, uid).await?)?;
    let (stored, _) = config::query::load(&mut tx, key).await?;
    let image = row.image_ref.as_deref();
    let forms = Forms::of(adapter, image, stored, draft.config_version)?;
    let section = forms.channel(draft.channel.as_deref().unwrap_or(forms.chatapp()))?;
    let mut values = agent_config::channel_values(&mut tx, key, uid, &section.key).await?;
    let CheckedValues { changes, warnings } = section
        .check_values(&draft.values, &present_keys(section, &values))
        .map_err(|problems| refused(&problems))?;
    let detail = described(section, &changes);
    merge(&mut values, changes);
    let now = deps.clock.now();
    agent_config::set_channel_values(&mut tx, key, uid, &section.key, &values, now).await?;
    let about = About::object(Kind::AgentConfig, &user.name);
    tx.commit(about.detail(&detail)).await?;

    let change = Change::of_config(&user, saved);
    if desired == Desired::Stopped {
        // An administrator stopped the container: nothing of it has to become true.
        let done = "saved; takes effect when an administrator starts your container";
        let answer = wait::answer(deps, &change, wait, done).await?;
        return Ok(answer.map(|saved| saved.noting(warnings)));
    }
    let container = Change::of_container(&user, restarted);
    let done = "saved, and in the agent's files";
    let answer = wait::answer_all(deps, &[change, container], wait, done).await?;
    Ok(answer.map(|saved| saved.noting(warnings)))
}

/// The fields that have a value already.
fn present_keys(section: &Section, values: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let fields = section.fields.iter();
    fields
        .filter(|field| value_of(field, values.get(&field.key)).is_some())
        .map(|field| field.key.clone())
        .collect()
}

fn merge(values: &mut BTreeMap<String, Value>, changes: FieldChanges) {
    for (key, change) in changes {
        match change {
            Some(value) => values.insert(key, value),
            None => values.remove(&key),
        };
    }
}

/// Names of fields only: a value may be a secret.
fn described(section: &Section, changes: &FieldChanges) -> String {
    let keys: Vec<&str> = changes.keys().map(String::as_str).collect();
    match &*keys {
        [] => format!("channel {}: nothing changed", section.key),
        keys => format!("channel {}: {}", section.key, keys.join(", ")),
    }
}

fn refused(problems: &[FieldProblem]) -> ApiError {
    let sentences = problems.iter();
    let sentences = sentences.map(|problem| format!("{} {}", problem.key, problem.message));
    let sentences: Vec<String> = sentences.collect();
    let what = "the values were not saved";
    ApiError::problems("invalid_values", what, &sentences, problems)
}
