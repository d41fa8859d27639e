//! The token with which a user's desktop client and agent reach the MCP endpoint.

use schema::user;
use secrecy::ExposeSecret;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Route};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("mcp_token", "/api/mcp/token", show)
            .title(Area::Account, "Get my MCP token")
            .about(
                "The same at every call and after restarts; a later account of the same name gets \
                 a different one. It is not stored.",
            ),
    ]
}

/// An MCP token. It is a secret.
#[derive(Serialize, ToSchema)]
pub struct McpToken {
    /// `<username>:<64 hexadecimal digits>`, the same at every call.
    #[schema(
        format = Password,
        example = "alice:4717dab8e9e3aac44ae989f497927e4c24782fc23d4d8bce92760844bc12c886"
    )]
    token: String,
}

/// `GET /api/mcp/token`: derived from the service's key and the account itself, so that it stays the same over
/// restarts, is stored nowhere, and is another one for another account of the same name.
///
/// # Errors
/// 401 when the account has gone meanwhile.
async fn show(
    OrdinaryUser(session): OrdinaryUser,
    _: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<McpToken>> {
    let account = &session.account;
    let mut connection = deps.db.read().await?;
    let user = user::find(&mut connection, &account.name)
        .await?
        .filter(|user| user.uid == account.uid)
        .ok_or(ApiError::NotSignedIn)?;
    let secret = deps.master_key.mcp_token(&user.uid, user.mcp_token_version);
    let token = format!("{}:{}", user.name, secret.expose_secret());
    Ok(Answer::ok("your MCP token", McpToken { token }))
}

#[cfg(test)]
mod tests {
    use schema::ids::Uid;
    use serde_json::Value;

    use crate::routes::yard::{Yard, yard};

    const PATH: &str = "/api/mcp/token";

    async fn token(yard: &Yard, name: &str) -> String {
        let cookie = yard.sign_in(name).await;
        let answer = yard.get(PATH).with(name, &cookie).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body["token"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn the_token_is_the_same_at_every_call_and_of_the_agreed_shape() {
        let yard = yard().await;
        let first = token(&yard, "alice").await;
        assert_eq!(token(&yard, "alice").await, first);
        let (name, secret) = first.split_once(':').unwrap();
        assert_eq!((name, secret.len()), ("alice", 64));
        assert!(
            secret
                .bytes()
                .all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
        );
        assert_ne!(token(&yard, "bob").await.split_once(':').unwrap().1, secret);
        // What the renderer writes into the agent's files.
        let uid: Uid = yard.find("alice").await.unwrap().uid;
        let derived = yard.world.deps.master_key.mcp_token(&uid, 1);
        assert_eq!(secrecy::ExposeSecret::expose_secret(&derived), secret);
    }

    #[tokio::test]
    async fn l6_l8_another_account_of_the_same_name_has_another_token() {
        let yard = yard().await;
        let first = token(&yard, "alice").await;
        let uid = yard.find("alice").await.unwrap().uid;
        let mut tx = yard.tx().await;
        schema::user::delete(&mut tx, &uid, crate::testing::NOW)
            .await
            .unwrap();
        assert!(schema::container::purge(&mut tx, &uid).await.unwrap());
        assert!(schema::user::purge(&mut tx, &uid).await.unwrap());
        tx.commit().await.unwrap();
        yard.create_user("alice").await;
        assert_ne!(token(&yard, "alice").await, first);
    }

    #[tokio::test]
    async fn superadmins_and_strangers_have_none() {
        let yard = yard().await;
        let cookie = yard.sign_in("root").await;
        let answer = yard.get(PATH).with("root", &cookie).send().await;
        assert_eq!(answer.verdict(), (403, "wrong_role"));
        assert_eq!(
            yard.get(PATH).send().await.verdict(),
            (401, "not_signed_in")
        );
        let cookie = yard.sign_in("alice").await;
        let uid = yard.find("alice").await.unwrap().uid;
        let mut tx = yard.tx().await;
        schema::user::set_disabled(&mut tx, &uid, true, None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let answer = yard.get(PATH).with("alice", &cookie).send().await;
        assert_eq!(answer.verdict(), (401, "not_signed_in"));
        assert_eq!(answer.body.get("token"), None::<&Value>);
    }
}
