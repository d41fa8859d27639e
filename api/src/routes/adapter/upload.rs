//! Uploads of adapter packages.

use std::collections::BTreeSet;
use std::sync::Arc;

use schema::adapter::store::{self, Source};
use schema::adapter::{Adapter, InvalidPackage};
use schema::config::history::SavedBy;
use schema::db::Tx;
use schema::ids::Uid;
use schema::rollout::held::{self, Affected};
use schema::under_way::track_call;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use utoipa::ToSchema;

use super::{InEffect, about, append_task, object_name};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, MOST_PROBLEMS, Result};
use crate::input::{FILE, Input};
use crate::route::{Area, Failure, Route, Tokens};

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
.tokens(Tokens::Admin)
        .title(Area::Adapter, "Upload and activate an adapter")
        .about(
            "Any valid package is accepted, also one of an older version. It stays active \
                 when the service restarts. `if_generation` is compared with the `generation` \
                 that the GET returned. With `dry_run` the package is checked, and nothing changes.",
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

/// Request for a package to be checked, or put into effect.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AdapterUpload)]
pub struct UploadForm {
    /// Check the package and report what it would change, without activating it.
    #[serde(default)]
    dry_run: bool,
}

/// Effects of an uploaded package.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdapterPreview)]
pub struct Preview {
    /// Differences for agents from the active package, in words.
    #[schema(example = "configuration versions (1, 2 to 1, 2, 3)")]
    changes: String,
    /// Number of running agents whose files are made anew; those whose files come out unchanged keep running.
    #[schema(example = 0)]
    restarts: i64,
    /// Their users, the first 100.
    #[schema(example = json!([]))]
    restarted_users: Vec<String>,
    /// Facts to consider before the upload.
    warnings: Vec<String>,
}

/// The active adapter after an upload, or as it would be with `dry_run`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdapterUploaded)]
pub struct Uploaded {
    #[serde(flatten)]
    in_effect: InEffect,
    /// Effects of the package; absent without `dry_run`.
    #[serde(flatten)]
    preview: Option<Preview>,
}

/// Most users that a preview names.
const NAMED: i64 = 100;

/// Longest text of a problem, in bytes: the author of the package chooses what it quotes.
const LONGEST: usize = 500;

/// `POST /api/admin/migration-rules/upload`: the zip in `file` is in effect from now on.
///
/// # Errors
/// 400 without a file, 413 for one of more than 16 MiB, 422 `invalid_adapter` with every problem's file and place,
/// 412 for a stale `if_generation`.
async fn upload(
    Superadmin(actor): Superadmin,
    input: Input<UploadForm>,
    deps: Deps,
) -> Result<Answer<Uploaded>> {
    let file = input.file.ok_or_else(|| {
        ApiError::invalid(FILE, "file is required: the zip, as multipart/form-data")
    })?;
    if file.len() as u64 > ADAPTER_LIMIT {
        return Err(ApiError::TooLarge {
            limit: ADAPTER_LIMIT,
        });
    }
    // What is read of a package takes many times its size: one at a time.
    let turn = Arc::clone(&deps.turns.adapter_check).acquire_owned().await;
    let turn = turn.map_err(ApiError::internal)?;
    let read = track_call("an adapter package", move || {
        // Kept to the end also when the client is gone.
        let _turn = turn;
        Adapter::from_zip(&file)
    });
    let read = tokio::task::spawn_blocking(read).await;
    let adapter = read.map_err(ApiError::internal)?.map_err(refused)?;
    let version = adapter.index.adapter_version.to_string();
    let mut tx = input.meta.begin(&deps).await?;
    let by = SavedBy {
        actor: &actor.to_string(),
        at: deps.clock.now(),
    };
    store::object_generation(&mut tx, input.if_generation).await?;
    if input.params.dry_run {
        // Never committed.
        return preview(&mut tx, &deps, &adapter).await;
    }
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
        Uploaded {
            in_effect: InEffect {
                adapter_version: version,
                digest: adapter.digest,
                changed: activated.changed,
                object: object_name(),
                generation,
                task_id,
            },
            preview: None,
        },
    ))
}

/// Says what the package would change for agents.
async fn preview(tx: &mut Tx, deps: &Deps, adapter: &Adapter) -> Result<Answer<Uploaded>> {
    let active = deps.adapter.current_in(tx).await?;
    let generation = store::object_generation(tx, None).await?;
    let changed = active.digest != adapter.digest;
    let (version, before) = (
        &adapter.index.adapter_version,
        &active.index.adapter_version,
    );
    let mut warnings = Vec::new();
    if version < before {
        warnings.push(format!(
            "adapter {version} is older than the active one, {before}"
        ));
    }
    let known = |adapter: &Adapter| -> BTreeSet<String> {
        let versions = adapter.index.agent_versions.iter();
        versions
            .map(|version| version.version.to_string())
            .collect()
    };
    let lost: Vec<String> = known(&active)
        .difference(&known(adapter))
        .cloned()
        .collect();
    if !lost.is_empty() {
        let lost = lost.join(", ");
        warnings.push(format!(
            "versions of the agent that it does not know any more: {lost}"
        ));
    }
    let (restarts, restarted_users) = match changed {
        true => (
            held::count_affected(tx, Affected::ALL).await?,
            held::name_affected(tx, Affected::ALL, NAMED).await?,
        ),
        false => (0, Vec::new()),
    };
    let message = match changed {
        true => format!("nothing was changed; adapter {version} would replace {before}"),
        false => format!("nothing was changed; adapter {version} is active already"),
    };
    let preview = Preview {
        changes: active.changes(adapter),
        restarts,
        restarted_users,
        warnings,
    };
    let in_effect = InEffect {
        adapter_version: version.to_string(),
        digest: adapter.digest.clone(),
        changed,
        object: object_name(),
        generation,
        task_id: None,
    };
    let uploaded = Uploaded {
        in_effect,
        preview: Some(preview),
    };
    Ok(Answer::ok(message, uploaded))
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
