//! Whose tokens are in use by what stays open, so that it can be ended when they are no longer valid.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schema::ids::{Uid, UserName};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::auth::mcp_token::Bearer;

/// A token: of which user, and which of theirs.
type Token = (Uid, i64);

#[derive(Debug)]
struct InUse {
    name: UserName,
    uses: usize,
    revoked: CancellationToken,
    /// Which of all entries it is: a token that was revoked may come into use again, when its user may use it again.
    number: u64,
}

#[derive(Debug, Default)]
struct Tokens {
    all: HashMap<Token, InUse>,
    numbers: u64,
}

#[derive(Debug)]
struct Inner {
    tokens: Mutex<Tokens>,
    /// Whether there is any.
    any: watch::Sender<bool>,
}

/// The tokens that are in use. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Presence(Arc<Inner>);

impl Default for Presence {
    fn default() -> Self {
        Self(Arc::new(Inner {
            tokens: Mutex::default(),
            any: watch::Sender::new(false),
        }))
    }
}

/// A token's use by one connection; it ends when this is dropped.
#[derive(Debug)]
pub struct Present {
    presence: Presence,
    token: Token,
    number: u64,
    revoked: CancellationToken,
}

impl Present {
    /// Waits until the token is no longer valid.
    pub async fn revoked(&self) {
        self.revoked.cancelled().await;
    }
}

impl Presence {
    /// A token comes into use.
    pub(super) fn enter(&self, bearer: &Bearer) -> Present {
        let token = (bearer.account.uid.clone(), bearer.version);
        let mut tokens = self.lock();
        tokens.numbers += 1;
        let number = tokens.numbers;
        let entry = tokens.all.entry(token.clone()).or_insert_with(|| InUse {
            name: bearer.account.name.clone(),
            uses: 0,
            revoked: CancellationToken::new(),
            number,
        });
        entry.uses += 1;
        let (number, revoked) = (entry.number, entry.revoked.clone());
        drop(tokens);
        self.0.any.send_replace(true);
        Present {
            presence: self.clone(),
            token,
            number,
            revoked,
        }
    }

    /// Ends all uses of a token. It is not in use from now on, whenever they come to their ends.
    pub(super) fn revoke(&self, user: &Uid, version: i64) {
        let removed = self.lock().all.remove(&(user.clone(), version));
        if let Some(in_use) = removed {
            in_use.revoked.cancel();
        }
    }

    /// Those in use, of the users that are `wanted`, with the users' names.
    pub(super) fn all(&self, wanted: impl Fn(&Uid) -> bool) -> Vec<(Uid, i64, UserName)> {
        let tokens = self.lock();
        let all = tokens.all.iter().filter(|((uid, _), _)| wanted(uid));
        all.map(|((uid, version), in_use)| (uid.clone(), *version, in_use.name.clone()))
            .collect()
    }

    /// Waits until there is any.
    pub(super) async fn any(&self) {
        let _ = self.0.any.subscribe().wait_for(|any| *any).await;
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().all.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Tokens> {
        self.0.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut tokens = self.presence.lock();
        if let Some(in_use) = tokens.all.get_mut(&self.token)
            && in_use.number == self.number
        {
            in_use.uses -= 1;
            if in_use.uses == 0 {
                tokens.all.remove(&self.token);
            }
        }
        if tokens.all.is_empty() {
            self.presence.0.any.send_replace(false);
        }
    }
}
