//! Conversations: their list, and their making, renaming and deletion.

use std::sync::Arc;

use schema::adapter::ChatFeature;
use schema::audit::About;
use schema::home::conversations::{ConversationId, Held, Meta};
use schema::home::workspace::Workspace;
use schema::ids::Kind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{HELD, NO_CONVERSATION, Which, no_conversation};
use crate::answer::Answer;
use crate::auth::Account;
use crate::chat::{
    Conversation, chat_of_user, close_elsewhere, held_elsewhere, is_held_elsewhere,
    rename_elsewhere,
};
use crate::deps::Deps;
use crate::dispatch::{OrdinaryUser, Session};
use crate::error::Result;
use crate::files::{Client, refused};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route};

const TOO_MANY: Failure = Failure(
    409,
    "too_many_entries",
    "the user has 500 conversations; delete one first",
);
const DISK: Failure = Failure(507, "disk_full", "the disk has no space left");

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("chat", "/api/agent/chat", show)
            .title(Area::Chat, "List my conversations")
            .about(
                "The newest used first, at most 500, and the abilities of the caller's agent. Conversations lie in the caller's \
                 workspace (`conversations/`); no administrator reads them through this interface.",
            )
            .fails(&[Failure::BUSY]),
        Route::post("chat_create", "/api/agent/chat/create", create)
            .title(Area::Chat, "Create a conversation")
            .about("It lies in the caller's workspace and counts to its quota.")
            .fails(&[TOO_MANY, Failure::BUSY, DISK]),
        Route::post("chat_rename", "/api/agent/chat/rename", rename)
            .title(Area::Chat, "Rename a conversation")
            .about("Pages that have it open get the new title.")
            .fails(&[NO_CONVERSATION, Failure::BUSY, DISK]),
        Route::post("chat_delete", "/api/agent/chat/delete", delete)
            .title(Area::Chat, "Delete a conversation")
            .about("It is removed for good, with its files. The agent keeps its own memory of it.")
            .fails(&[NO_CONVERSATION, HELD, Failure::BUSY]),
    ]
}

/// State of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ChatAvailability)]
enum Availability {
    /// It can be used.
    On,
    /// `chat.enabled` is false.
    Off,
    /// The agent's version has none.
    Unsupported,
}

/// Abilities of the caller's agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatAbilities)]
pub struct Abilities {
    state: Availability,
    /// Pictures can be sent to the model.
    pictures: bool,
    /// A turn can be stopped.
    stop: bool,
    /// A model is configured: without one the agent cannot answer.
    model_configured: bool,
}

/// Conversations.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatConversations)]
pub struct Conversations {
    chat: Abilities,
    /// The newest used first.
    conversations: Vec<Conversation>,
    /// Number of conversations beyond the 500 that are listed.
    left_out: usize,
}

/// `GET /api/agent/chat`.
///
/// # Errors
/// 503 when the disk is busy.
async fn show(
    OrdinaryUser(session): OrdinaryUser,
    _: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<Conversations>> {
    let account = &session.account;
    let (chat, model_configured) = chat_of_user(&deps, &account.uid).await?;
    let state = match (&chat, deps.settings().chat_enabled) {
        (_, false) => Availability::Off,
        (None, _) => Availability::Unsupported,
        (Some(_), true) => Availability::On,
    };
    let has = |feature| {
        chat.as_ref()
            .is_some_and(|chat| chat.features.contains(&feature))
    };
    let abilities = Abilities {
        state,
        pictures: has(ChatFeature::Pictures),
        stop: has(ChatFeature::Stop),
        model_configured,
    };
    let listed = match deps.files.find(account).await? {
        Some(workspace) => {
            // An agent may have made thousands of them.
            let listing = move |_: &Client| workspace.list_conversations();
            let listed = deps.files.run_long(account, listing).await?;
            listed.map_err(refused)?
        }
        None => Default::default(),
    };
    let conversations = listed.conversations.into_iter();
    let conversations = conversations.map(|(id, meta)| Conversation::new(id, meta));
    let conversations = Conversations {
        chat: abilities,
        conversations: conversations.collect(),
        left_out: listed.left_out,
    };
    Ok(Answer::ok("your conversations", conversations))
}

/// A conversation to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = ChatCreate)]
pub struct New {
    /// Its title; without one its first message gives it one.
    #[serde(default)]
    title: String,
}

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatConversationAnswer)]
pub struct One {
    conversation: Conversation,
}

/// `POST /api/agent/chat/create`.
///
/// # Errors
/// 409 with 500 conversations, 507 without space.
async fn create(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<New>,
    deps: Deps,
) -> Result<Answer<One>> {
    let now = deps.clock.now();
    let meta = Meta {
        title: input.params.title,
        created_at: now,
        last_used_at: now,
    };
    let id = ConversationId::new();
    record_change(&session, &input.meta, &deps, &id).await?;
    let workspace = deps.files.open(&session.account).await?;
    let (made, new) = (id.clone(), meta.clone());
    let create = move |_: &Client| workspace.create_conversation(&made, &new);
    let created = deps.files.run_long(&session.account, create).await?;
    created.map_err(refused)?;
    let conversation = Conversation::new(id, meta);
    Ok(Answer::ok("conversation created", One { conversation }))
}

async fn record_change(
    session: &Session,
    meta: &crate::input::Meta,
    deps: &Deps,
    id: &ConversationId,
) -> Result<()> {
    let about =
        About::object(Kind::User, &session.account.name).detail(format!("conversation {id}"));
    Ok(meta.begin(deps).await?.commit(about).await?)
}

/// Another title of a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatRename)]
pub struct NewTitle {
    /// Its id.
    #[schema(value_type = String)]
    id: ConversationId,
    /// Its new title, at most 200 characters.
    title: String,
}

/// `POST /api/agent/chat/rename`.
///
/// # Errors
/// 404 without it, 507 without space.
async fn rename(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<NewTitle>,
    deps: Deps,
) -> Result<Answer<One>> {
    let account = &session.account;
    let NewTitle { id, title } = input.params;
    record_change(&session, &input.meta, &deps, &id).await?;
    let workspace = deps
        .files
        .find(account)
        .await?
        .ok_or_else(no_conversation)?;
    let (renamed, new) = (id.clone(), title.clone());
    let rename = move || workspace.rename_conversation(&renamed, &new);
    let meta = deps.files.run(account, rename).await?.map_err(refused)?;
    let meta = meta.ok_or_else(no_conversation)?;
    deps.chats
        .rename(&deps, account, id.clone(), meta.title.clone());
    rename_elsewhere(&deps, account, &id, meta.title.clone());
    let conversation = Conversation::new(id, meta);
    Ok(Answer::ok("conversation renamed", One { conversation }))
}

/// `POST /api/agent/chat/delete`.
///
/// # Errors
/// 404 without it.
async fn delete(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Which>,
    deps: Deps,
) -> Result<Answer> {
    let account = &session.account;
    let id = input.params.id;
    let workspace = deps
        .files
        .find(account)
        .await?
        .ok_or_else(no_conversation)?;
    record_change(&session, &input.meta, &deps, &id).await?;
    deps.chats.close(&deps, account, id.clone()).await?;
    let removed = remove_conversation(&deps, account, &workspace, &id).await;
    match removed {
        Err(held) if is_held_elsewhere(&held) && deps.replicas.has_others() => {
            close_elsewhere(&deps, account, &id).await;
            remove_conversation(&deps, account, &workspace, &id).await
        }
        removed => removed,
    }
}

async fn remove_conversation(
    deps: &Deps,
    account: &Account,
    workspace: &Arc<Workspace>,
    id: &ConversationId,
) -> Result<Answer> {
    let (workspace, id) = (Arc::clone(workspace), id.clone());
    let remove = move |_: &Client| {
        let held = workspace.hold_conversation(&id).map_err(refused)?;
        if matches!(held, Held::Elsewhere) {
            return Err(held_elsewhere());
        }
        match workspace.remove_conversation(&id).map_err(refused)? {
            true => Ok(Answer::plain("conversation deleted")),
            false => Err(no_conversation()),
        }
    };
    deps.files.run_long(account, remove).await?
}
