//! Whose tokens are in use by what stays open, so that it can be ended when they are no longer valid.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schema::ids::{Uid, UserName};
use tokio::sync::watch;

use crate::auth::mcp_token::Bearer;

/// A token: of which user, and which of theirs.
type Token = (Uid, i64);

#[derive(Debug)]
struct Inner {
    tokens: Mutex<HashMap<Token, (UserName, usize)>>,
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
}

impl Presence {
    /// A token comes into use.
    pub(super) fn enter(&self, bearer: &Bearer) -> Present {
        let token = (bearer.account.uid.clone(), bearer.version);
        let mut tokens = self.lock();
        let entry = tokens.entry(token.clone());
        entry.or_insert_with(|| (bearer.account.name.clone(), 0)).1 += 1;
        drop(tokens);
        self.0.any.send_replace(true);
        Present {
            presence: self.clone(),
            token,
        }
    }

    /// Those in use, of the users that are `wanted`, with the users' names.
    pub(super) fn all(&self, wanted: impl Fn(&Uid) -> bool) -> Vec<(Uid, i64, UserName)> {
        let tokens = self.lock();
        let all = tokens.iter().filter(|((uid, _), _)| wanted(uid));
        all.map(|((uid, version), (name, _))| (uid.clone(), *version, name.clone()))
            .collect()
    }

    /// Waits until there is any.
    pub(super) async fn any(&self) {
        let _ = self.0.any.subscribe().wait_for(|any| *any).await;
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Token, (UserName, usize)>> {
        self.0.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut tokens = self.presence.lock();
        if let Some((_, uses)) = tokens.get_mut(&self.token) {
            *uses -= 1;
            if *uses == 0 {
                tokens.remove(&self.token);
            }
        }
        if tokens.is_empty() {
            self.presence.0.any.send_replace(false);
        }
    }
}
