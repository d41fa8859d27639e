//! The count of a user's messages in the audit trail. Their texts are not in it.

use schema::audit::{About, Author};
use schema::ids::Kind;

use crate::auth::Account;
use crate::deps::Deps;

/// Action of the entry.
const ACTION: &str = "chat_messages";

/// Records how many messages a user has sent since the last entry; true when it is recorded.
pub(super) async fn record_messages(deps: &Deps, account: &Account, count: u64) -> bool {
    let author = Author {
        actor: account.name.to_string(),
        address: String::new(),
        action: ACTION.to_owned(),
        request_id: String::new(),
    };
    let noun = if count == 1 { "message" } else { "messages" };
    let about = About::object(Kind::User, &account.name)
        .detail(format!("{count} {noun} sent to the agent"));
    let recorded = async {
        deps.writer.begin(author).await?.commit(about).await?;
        // The workspace is measured again.
        deps.writer.workspace_changed(&account.uid).await
    };
    match recorded.await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(%error, "the count of chat messages is not recorded; it is tried again");
            false
        }
    }
}
