//! Uploads of adapter packages.

use std::sync::Arc;

use schema::adapter::store::{self, Source};
use schema::adapter::{Adapter, InvalidPackage};
use schema::config::history::SavedBy;
use schema::ids::Uid;
use serde_json::{Map, json};

use super::{InEffect, about, append_task, object_name};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, MOST_PROBLEMS, Result};
use crate::input::{FILE, Input, Nothing};
use crate::route::{Area, Failure, Route};

/// The largest adapter package that is taken, in bytes.
pub(super) const ADAPTER_LIMIT: u64 = 16 * 1024 * 1024;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "adapter_upload",
            "/api/admin/migration-rules/upload",
            upload,
        )
        .title(Area::Adapter, "Upload and activate an adapter")
        .about(
            "Any valid package is accepted, also one of an older version. It stays active \
                 when the service restarts. `if_generation` is compared with the `generation` \
                 that the GET returned.",
        )
        .upload(ADAPTER_LIMIT)
        .guarded()
        .fails(&[Failure(
            422,
            "invalid_adapter",
            "the package is not valid; see `problems`",
        )]),
    ]
}

/// Longest text of a problem, in bytes: the author of the package chooses what it quotes.
const LONGEST: usize = 500;

/// `POST /api/admin/migration-rules/upload`: the zip in `file` is in effect from now on.
///
/// # Errors
/// 400 without a file, 413 for one of more than 16 MiB, 422 `invalid_adapter` with every problem's file and place,
/// 412 for a stale `if_generation`.
async fn upload(
    Superadmin(actor): Superadmin,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<InEffect>> {
    let file = input.file.ok_or_else(|| {
        ApiError::invalid(FILE, "file is required: the zip, as multipart/form-data")
    })?;
    if file.len() as u64 > ADAPTER_LIMIT {
        return Err(ApiError::TooLarge {
            limit: ADAPTER_LIMIT,
        });
    }
    // What is read of a package takes many times its size: one at a time.
    let turn = Arc::clone(&deps.adapter_check).acquire_owned().await;
    let turn = turn.map_err(ApiError::internal)?;
    let read = tokio::task::spawn_blocking(move || {
        // Kept to the end also when the client is gone.
        let _turn = turn;
        Adapter::from_zip(&file)
    })
    .await;
    let adapter = read.map_err(ApiError::internal)?.map_err(refused)?;
    let version = adapter.index.adapter_version.to_string();
    let mut tx = input.meta.begin(&deps).await?;
    let by = SavedBy {
        actor: &actor.to_string(),
        at: deps.clock.now(),
    };
    store::object_generation(&mut tx, input.if_generation).await?;
    let activated = store::activate(&mut tx, &adapter, Source::Upload, by).await?;
    let generation = store::object_generation(&mut tx, None).await?;
    let detail = format!("version {version}, digest {}", adapter.digest);
    tx.commit(about().detail(detail)).await?;
    let message = if activated.changed {
        format!("adapter {version} is active")
    } else {
        format!("adapter {version} was already active")
    };
    let task_id = activated.rollout.as_ref().map(Uid::to_string);
    Ok(Answer::ok(
        append_task(message, task_id.as_deref()),
        InEffect {
            adapter_version: version,
            digest: adapter.digest,
            changed: activated.changed,
            object: object_name(),
            generation,
            task_id,
        },
    ))
}

fn refused(invalid: InvalidPackage) -> ApiError {
    let message = invalid.brief();
    let total = invalid.0.len();
    let mut problems = invalid.0;
    problems.truncate(MOST_PROBLEMS);
    for problem in &mut problems {
        for text in [
            &mut problem.file,
            &mut problem.pointer,
            &mut problem.message,
        ] {
            text.truncate(text.floor_char_boundary(LONGEST));
        }
    }
    let mut extra = Map::new();
    extra.insert("problems".to_owned(), json!(problems));
    extra.insert("problem_count".to_owned(), json!(total));
    ApiError::Unprocessable {
        code: "invalid_adapter",
        message,
        extra,
    }
}
