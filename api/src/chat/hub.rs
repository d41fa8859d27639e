//! The users whose conversations are in use, and the bounds for all of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::home::conversations::ConversationId;
use schema::ids::Uid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::keeper::{Command, Keeper};
use super::protocol::{PageFrame, RefusalCode};
use super::room::Room;
use crate::auth::Account;
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::limits::{
    CHAT_COMMANDS, CHAT_FRAMES, CHAT_KEPT, CHAT_SENDING, CHAT_SOCKETS, KeyedCounter, Memory,
    PerOwner, Place,
};

/// Wait before the next attempt, for a client that was turned away.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Shortest time between two warnings about the chat of one user.
const WARN_EVERY: Duration = Duration::from_secs(10 * 60);

const BUSY: ApiError = ApiError::Busy {
    retry_after: RETRY_AFTER,
};

type Users = HashMap<Uid, (u64, mpsc::Sender<Command>)>;

/// Conversations in use. Clones share them.
#[derive(Clone)]
pub struct Chats {
    users: Arc<Mutex<Users>>,
    sockets: Arc<Semaphore>,
    sockets_of_users: KeyedCounter<Uid>,
    numbers: Arc<AtomicU64>,
    /// Memory of messages on their way from and to agents, and from pages.
    pub(super) frames: Memory<Uid>,
    /// Memory of conversations in use, and of frames to pages.
    pub(super) kept: Memory<Uid>,
    /// The right to send a message with pictures.
    pub(super) sending: PerOwner<Uid>,
    /// Times of the newest warnings about users' chats, by user and subject.
    warned: Arc<Mutex<HashMap<(Uid, Subject), Instant>>>,
}

/// Subject of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// The agent's chat does not answer.
    Agent,
    /// A conversation cannot be written.
    Disk,
}

impl std::fmt::Debug for Chats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chats").finish_non_exhaustive()
    }
}

impl Default for Chats {
    fn default() -> Self {
        Self {
            users: Arc::default(),
            sockets: CHAT_SOCKETS.semaphore(),
            sockets_of_users: KeyedCounter::new(&CHAT_SOCKETS),
            numbers: Arc::default(),
            frames: Memory::new(&CHAT_FRAMES),
            kept: Memory::new(&CHAT_KEPT),
            sending: PerOwner::new(CHAT_SENDING.each()),
            warned: Arc::default(),
        }
    }
}

/// A page's place in a conversation; given back when dropped.
pub(crate) struct Opened {
    pub(super) room: Arc<Room>,
    id: ConversationId,
    account: Account,
    deps: Deps,
    _place: Place<Uid>,
    _permit: OwnedSemaphorePermit,
}

impl Opened {
    /// Returns the account whose page it is.
    pub(super) fn user(&self) -> &Uid {
        &self.account.uid
    }

    /// Returns the conversations in use.
    pub(super) fn chats(&self) -> &Chats {
        &self.deps.chats
    }

    /// Gives the task of the user a frame of the page. `Err`: cause and sentence of a refusal.
    pub(super) async fn send_frame(&self, frame: PageFrame) -> Result<(), (RefusalCode, String)> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Frame {
            id: self.id.clone(),
            frame,
            reply,
        };
        let busy = || {
            let text = "the service is busy; send it again in a moment";
            (RefusalCode::TooFast, text.to_owned())
        };
        let chats = &self.deps.chats;
        chats
            .post_command(&self.deps, &self.account, command)
            .map_err(|_| busy())?;
        answer.await.unwrap_or_else(|_| Err(busy()))
    }
}

impl Chats {
    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true when the log may have a warning about a user's chat: one in ten minutes for each subject.
    pub(super) fn may_warn(&self, uid: &Uid, subject: Subject) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        warned.retain(|_, at| at.elapsed() < WARN_EVERY);
        let key = (uid.clone(), subject);
        let is_first = !warned.contains_key(&key);
        if is_first {
            warned.insert(key, Instant::now());
        }
        is_first
    }

    /// Gives a user's task a command; a task is begun when there is none.
    fn post_command(&self, deps: &Deps, account: &Account, command: Command) -> Result<()> {
        let mut users = self.users();
        let known = users.get(&account.uid).map(|(_, sender)| sender);
        if let Some(sender) = known.filter(|sender| !sender.is_closed()) {
            return sender.try_send(command).map_err(|_| BUSY);
        }
        let (sender, receiver) = CHAT_COMMANDS.queue();
        sender.try_send(command).map_err(|_| BUSY)?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        users.insert(account.uid.clone(), (number, sender));
        let keeper = Keeper::new(Arc::clone(deps), account.clone(), receiver, number);
        deps.tasks.spawn(keeper.run());
        Ok(())
    }

    /// Ends a user's task unless a command waits for it.
    pub(super) fn leave(&self, uid: &Uid, number: u64, commands: &mpsc::Receiver<Command>) -> bool {
        let mut users = self.users();
        let own = users.get(uid).is_some_and(|(known, _)| *known == number);
        if !own || !commands.is_empty() {
            return !own;
        }
        users.remove(uid);
        true
    }

    /// Opens a conversation for a page.
    ///
    /// # Errors
    /// 404 without it, 409 `held_elsewhere`, 429 for one too many pages, 503 when the service is busy.
    pub(crate) async fn open(
        &self,
        deps: &Deps,
        account: &Account,
        id: ConversationId,
    ) -> Result<Opened> {
        let place = self.sockets_of_users.enter(&account.uid);
        let place = place.ok_or(ApiError::TooManyStreams {
            most: CHAT_SOCKETS.each(),
            retry_after: RETRY_AFTER,
        })?;
        let permit = Arc::clone(&self.sockets).try_acquire_owned();
        let permit = permit.map_err(|_| BUSY)?;
        let (reply, answer) = oneshot::channel();
        let command = Command::Open {
            id: id.clone(),
            reply,
        };
        self.post_command(deps, account, command)?;
        let room = answer.await.map_err(|_| BUSY)??;
        Ok(Opened {
            room,
            id,
            account: account.clone(),
            deps: Arc::clone(deps),
            _place: place,
            _permit: permit,
        })
    }

    /// Gives a conversation that is open here another title.
    pub(crate) fn rename(&self, deps: &Deps, account: &Account, id: ConversationId, title: String) {
        let known = self.users().contains_key(&account.uid);
        if known {
            let _ = self.post_command(deps, account, Command::Rename { id, title });
        }
    }

    /// Closes a conversation that is to be deleted.
    ///
    /// # Errors
    /// 503 when the service is busy.
    pub(crate) async fn close(
        &self,
        deps: &Deps,
        account: &Account,
        id: ConversationId,
    ) -> Result<()> {
        if !self.users().contains_key(&account.uid) {
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        self.post_command(deps, account, Command::Close { id, reply })?;
        answer.await.map_err(|_| BUSY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn warning_about_a_user_is_rare() {
        let chats = Chats::default();
        let [alice, bob] = ["a", "b"].map(|one| Uid::from(one.repeat(32)));
        assert!(chats.may_warn(&alice, Subject::Agent));
        assert!(!chats.may_warn(&alice, Subject::Agent));
        assert!(chats.may_warn(&alice, Subject::Disk));
        assert!(chats.may_warn(&bob, Subject::Agent));
        tokio::time::advance(WARN_EVERY).await;
        assert!(chats.may_warn(&alice, Subject::Agent));
    }
}
