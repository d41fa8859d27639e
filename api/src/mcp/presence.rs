//! Whose tokens are in use by what stays open, so that it can be ended when they are no longer valid.

use std::collections::{HashMap, HashSet};
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
    /// Those that came into use and were not judged since.
    newcomers: HashSet<Token>,
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

    /// Whether it is no longer valid.
    pub fn is_revoked(&self) -> bool {
        self.revoked.is_cancelled()
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
        tokens.newcomers.insert(token.clone());
        self.0.any.send_replace(true);
        drop(tokens);
        Present {
            presence: self.clone(),
            token,
            number,
            revoked,
        }
    }

    /// Ends all uses of a token. It is not in use from now on, whenever they come to their ends.
    pub(super) fn revoke(&self, user: &Uid, version: i64) {
        let mut tokens = self.lock();
        let removed = tokens.all.remove(&(user.clone(), version));
        self.none_left(&mut tokens);
        drop(tokens);
        if let Some(in_use) = removed {
            in_use.revoked.cancel();
        }
    }

    /// Nobody is waited for who is gone.
    fn none_left(&self, tokens: &mut Tokens) {
        if tokens.all.is_empty() {
            tokens.newcomers.clear();
            self.0.any.send_replace(false);
        }
    }

    /// Those that came into use since this was last asked for: their tokens were found to be valid a moment before, and may not be any more.
    pub(super) fn newcomers(&self) -> HashSet<Uid> {
        let newcomers = std::mem::take(&mut self.lock().newcomers);
        newcomers.into_iter().map(|(user, _)| user).collect()
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
                tokens.newcomers.remove(&self.token);
            }
        }
        self.presence.none_left(&mut tokens);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::auth::{Account, Role};

    fn bearer(version: i64) -> Bearer {
        Bearer {
            account: Account {
                uid: Uid::from("a".to_owned()),
                name: "alice".parse().unwrap(),
                role: Role::User,
            },
            version,
            in_query: None,
        }
    }

    #[test]
    fn l58_nobody_is_there_once_the_last_token_is_revoked() {
        let presence = Presence::default();
        let present = presence.enter(&bearer(1));
        assert!(presence.any().now_or_never().is_some());
        presence.revoke(&Uid::from("a".to_owned()), 1);
        assert!(present.is_revoked());
        // Its connection takes its time to end.
        assert!(presence.any().now_or_never().is_none());
        let again = presence.enter(&bearer(2));
        drop(present);
        assert!(presence.any().now_or_never().is_some() && !again.is_revoked());
    }

    #[test]
    fn who_comes_is_judged_once() {
        let presence = Presence::default();
        let present = presence.enter(&bearer(1));
        assert_eq!(presence.newcomers().len(), 1);
        assert!(presence.newcomers().is_empty());
        let _again = presence.enter(&bearer(1));
        assert_eq!(presence.newcomers().len(), 1);
        drop(present);
        let gone = presence.enter(&bearer(2));
        drop(gone);
        assert!(presence.newcomers().is_empty());
    }
}
