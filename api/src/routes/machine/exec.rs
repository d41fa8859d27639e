//! `GET /api/machine/users/{username}/exec`: runs a program in a user's container.

use hyper_util::rt::TokioIo;
use serde::Deserialize;
use utoipa::ToSchema;

use super::find_account;
use crate::deps::Deps;
use crate::dispatch::OnMachine;
use crate::error::{ApiError, Result};
use crate::exec::{Caller, serve};
use crate::input::Input;
use crate::route::{Area, Route};
use crate::routes::websocket::{Switching, accept_websocket};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("exec", "/api/machine/users/{username}/exec", exec)
            .title(Area::Containers, "Run a program in a user's container")
            .about("A WebSocket, on the admin socket only."),
    ]
}

/// Names the user in whose container the program runs.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ExecParams)]
pub struct Which {
    /// The user's name.
    username: schema::ids::UserName,
}

/// `GET /api/machine/users/{username}/exec`. The program and its arguments come as the first message: the path ends up in logs.
///
/// # Errors
/// 404 without such a user; 409 `not_running` without a running container; 503 when the engine is unavailable.
async fn exec(_: OnMachine, input: Input<Which>, deps: Deps) -> Result<Switching> {
    let account = find_account(&deps, &input.params.username).await?;
    if !deps.exec.is_running(&account.uid).await? {
        let name = &account.name;
        let text = format!(
            "container/{name} is not running; `agentyard describe container/{name}` says why"
        );
        return Err(ApiError::conflict("not_running", text));
    }
    let place = deps.viewers.begin(None)?;
    let (upgrade, switching) = accept_websocket(&input.meta.headers, input.upgrade)?;
    let (tasks, meta) = (deps.tasks.clone(), input.meta);
    let caller = Caller {
        deps,
        meta,
        account,
    };
    tasks.spawn(async move {
        let _place = place;
        match upgrade.await {
            Ok(io) => serve(TokioIo::new(io), caller).await,
            Err(error) => tracing::debug!(%error, "a client was gone before it was connected"),
        }
    });
    Ok(switching)
}
