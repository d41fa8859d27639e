//! An executor that connects: to this replica, or through it to the one that has its place.

use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::Present;
use crate::auth::mcp_token::Bearer;
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::executors::{self, About, Expected, Flapping, Key, Service};
use crate::limits;
use crate::replica::{Call, Entered, Place, Unsent, pipe_websocket};
use crate::reply::Reply;

/// Searches for the replica that has the place of an executor.
const SEARCHES: usize = 3;
/// Wait before the next attempt, for an executor whose place was not found.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// An executor that may be asked, whose handshake is not answered yet.
pub(crate) struct AdmittedExecutor {
    executor: Expected,
    present: Present,
    socket: limits::Place<Key>,
    place: Option<Place>,
}

/// Admits an executor to this replica.
///
/// # Errors
/// 429 for too many, and when they displace each other; 401 for a token that was revoked meanwhile.
pub(crate) fn admit_executor(
    deps: &Deps,
    bearer: &Bearer,
    key: Key,
    about: About,
    place: Option<Place>,
) -> Result<AdmittedExecutor> {
    let service = key.service;
    let socket = deps.mcp.enter_socket(&key)?;
    let present = deps.mcp.enter(bearer);
    let executor = executors::expect(deps.mcp.hub.clone(), key, about);
    let executor = executor.map_err(|Flapping(pause)| ApiError::ExecutorsDisplaced {
        what: match service {
            Service::Browser => "browser",
            Service::Computer => "desktop",
        },
        // In whole seconds, none of which is too early.
        retry_after: pause + Duration::from_secs(1),
    })?;
    // Whatever was revoked before it was expected has not ended it.
    if present.is_revoked() {
        return Err(ApiError::TokenInvalid);
    }
    if let Some(place) = &place {
        place.announce_executors();
    }
    Ok(AdmittedExecutor {
        executor,
        present,
        socket,
        place,
    })
}

impl AdmittedExecutor {
    /// Serves it to its end.
    pub(crate) fn serve_executor(self, deps: &Deps, upgrade: OnUpgrade) {
        let Self {
            executor,
            present,
            socket,
            place,
        } = self;
        deps.tasks.spawn(async move {
            match upgrade.await {
                Ok(io) => executors::serve(TokioIo::new(io), executor).await,
                Err(error) => {
                    tracing::debug!(%error, "an executor was gone before it was connected");
                }
            }
            drop((present, socket, place));
        });
    }
}

/// Connects an executor. Returns the refusal of another replica, if that has refused it.
///
/// # Errors
/// As [`admit_executor`]; 503 while its place is not found.
pub(crate) async fn connect_executor(
    deps: &Deps,
    bearer: &Bearer,
    key: Key,
    about: About,
    upgrade: OnUpgrade,
) -> Result<Option<Reply>> {
    for _ in 0..SEARCHES {
        let owner = match deps.replicas.enter_place(&key).await? {
            Entered::Here(place) => {
                let admitted = admit_executor(deps, bearer, key, about, place)?;
                admitted.serve_executor(deps, upgrade);
                return Ok(None);
            }
            Entered::At(owner) => owner,
        };
        let call = Call::Executor {
            bearer: bearer.clone(),
            service: key.service,
            about: about.clone(),
            epoch: owner.epoch,
        };
        match deps.replicas.open_websocket(&owner.replica, &call).await {
            Ok(Ok(other)) => {
                pipe_websocket(deps, upgrade, other);
                return Ok(None);
            }
            Ok(Err(refused)) if !refused.is_misdirected() => {
                if let Some(reply) = refused.reply().await {
                    return Ok(Some(reply));
                }
            }
            // It does not have the place, or does not answer.
            Ok(Err(_)) | Err(Unsent::Unreachable | Unsent::Lost) => {
                deps.replicas.take_over_place(&key, &owner).await?;
            }
        }
    }
    Err(ApiError::Busy {
        retry_after: RETRY_AFTER,
    })
}
