//! Conversations that another replica has open: pages are piped to it.

use bytes::Bytes;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use schema::home::conversations::ConversationId;

use super::hub::Opened;
use super::socket::serve;
use crate::auth::Account;
use crate::deps::Deps;
use crate::dispatch::{Actor, Session};
use crate::error::ApiError;
use crate::replica::Call;
use crate::reply::Reply;
use crate::routes::live;

/// Longest epoch that a page may go on with, in bytes: no conversation has a longer one.
const LONGEST_EPOCH: usize = 64;

/// Returns true for the refusal of a conversation that another process has.
pub(crate) fn is_held_elsewhere(error: &ApiError) -> bool {
    error.code() == super::store::HELD
}

/// Finds the replica that has a conversation and opens it there: the connection, or its refusal. `None` when no other replica has it.
pub(crate) async fn open_elsewhere(
    deps: &Deps,
    session: &Session,
    id: &ConversationId,
    resumes: Option<(String, u64)>,
) -> Option<Result<Upgraded, Reply>> {
    let resumes = resumes.filter(|(epoch, _)| epoch.len() <= LONGEST_EPOCH);
    let call = Call::Page {
        session: session.clone(),
        conversation: id.clone(),
        resumes,
    };
    for other in deps.replicas.list_others().await {
        match deps.replicas.open_websocket(&other, &call).await {
            Ok(Ok(io)) => return Some(Ok(io)),
            // The lock of the folder decides: a replica that is asked takes a free one.
            Ok(Err(refused)) if refused.is_misdirected() => {}
            Ok(Err(refused)) => return refused.reply().await.map(Err),
            Err(_) => {}
        }
    }
    None
}

/// Serves a page of a conversation that is open here.
pub(crate) fn serve_page(
    deps: &Deps,
    session: Session,
    opened: Opened,
    resumes: Option<(String, u64)>,
    upgrade: OnUpgrade,
) {
    let shutdown = deps.shutdown.clone();
    let dead = live::death(deps.clone(), Actor::Session(session));
    deps.tasks.spawn(async move {
        match upgrade.await {
            Ok(io) => serve(TokioIo::new(io), opened, resumes, dead, shutdown).await,
            Err(error) => tracing::debug!(%error, "a page was gone before it was connected"),
        }
    });
}

/// Gives a conversation another title for its pages at other replicas.
pub(crate) fn rename_elsewhere(deps: &Deps, account: &Account, id: &ConversationId, title: String) {
    let call = about(account, id, Some(title));
    deps.replicas.tell_all(call, Bytes::new());
}

/// Closes a conversation at other replicas, since it is to be deleted.
pub(crate) async fn close_elsewhere(deps: &Deps, account: &Account, id: &ConversationId) {
    let call = about(account, id, None);
    deps.replicas.ask_all(&call, Bytes::new()).await;
}

fn about(account: &Account, id: &ConversationId, title: Option<String>) -> Call {
    Call::Conversation {
        account: account.clone(),
        conversation: id.clone(),
        title,
    }
}
