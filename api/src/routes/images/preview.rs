//! Effects of a rollout that is not started.

use schema::container::Desired;
use schema::image;
use schema::reader::Connection;
use schema::rollout;
use schema::user::UserListing;

use super::start::{Plan, Started, no_users};
use super::users::differs;
use crate::answer::{self, Answer};
use crate::error::Result;
use crate::routes::users::Skipped;

/// Most users that a preview names.
const NAMED: usize = 100;

const HAS_IMAGE: (&str, &str) = (
    "has_image",
    "the user has this image already, unless the registry has a newer one by this name",
);
const BEING_REMOVED: (&str, &str) = ("name_being_removed", "the user is being removed");

fn skip(username: String, (code, reason): (&'static str, &'static str)) -> Skipped {
    Skipped {
        username,
        code,
        reason,
    }
}

/// Says whom a rollout would move. Nothing is written.
///
/// # Errors
/// As the start: 409 `in_rollout`, 422 `no_users`.
pub(super) async fn preview(connection: &mut Connection, plan: Plan) -> Result<Answer<Started>> {
    if plan.selection.users.is_empty() {
        return Err(no_users());
    }
    rollout::check_free(connection, &plan.uids()).await?;
    let target = &plan.new.reference;
    let pulled = image::find(connection, target).await?;
    let pulled = pulled.and_then(|image| image.facts.image_id);
    let has_image = |user: &UserListing| {
        pulled.is_some() && user.image_id == pulled && !differs(user, target, pulled.as_deref())
    };
    let total = plan.selection.users.len();
    let (stay, move_on): (Vec<_>, Vec<_>) = plan.selection.users.into_iter().partition(has_image);
    let is_to_run = |user: &&UserListing| user.desired == Some(Desired::Running) && !user.disabled;
    let restarts = move_on.iter().filter(is_to_run).count();
    let moves = move_on.len();
    let stay = stay.into_iter().map(|user| skip(user.name, HAS_IMAGE));
    let leaving = plan.selection.leaving.into_iter();
    let mut skipped: Vec<Skipped> = stay
        .chain(leaving.map(|name| skip(name, BEING_REMOVED)))
        .collect();
    let skipped_total = skipped.len();
    skipped.truncate(NAMED);
    let message = format!(
        "nothing was started; the rollout would move {}",
        answer::users(moves)
    );
    let warned = plan.warnings.iter().map(String::as_str);
    let sentences: Vec<&str> = std::iter::once(&*message).chain(warned).collect();
    let started = Started {
        task_id: None,
        total,
        state: None,
        progress: None,
        moves: Some(moves),
        users: Some(
            move_on
                .into_iter()
                .take(NAMED)
                .map(|user| user.name)
                .collect(),
        ),
        restarts: Some(restarts),
        skipped: Some(skipped),
        skipped_total: Some(skipped_total),
        warnings: plan.warnings.clone(),
    };
    Ok(Answer::ok(sentences.join("; "), started))
}
