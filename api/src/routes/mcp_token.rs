//! The token with which a user's desktop client and agent reach the MCP endpoint.

use schema::audit::{About, Audited};
use schema::ids::Kind;
use schema::user::{self, User};
use secrecy::ExposeSecret;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::{OrdinaryUser, Superadmin};
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::params::{Who, own_user, present_user};
use crate::wait::{self, Change, Converging};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("mcp_token", "/api/mcp/token", show)
            .title(Area::Account, "Get my MCP token")
            .about(
                "The same at every call and after restarts; a later account of the same name gets \
                 a different one. It is not stored.",
            ),
        Route::post("mcp_token_rotate", "/api/mcp/token/rotate", rotate)
            .title(Area::Account, "Rotate my MCP token")
            .about(
                "The current token is revoked at once, and all connections opened with it are closed. The agent's files get \
                 the new one, and the agent restarts; programs elsewhere need to be given it.",
            )
            .waits()
            .guarded()
            .fails(&[Failure::NO_ACCOUNT, Failure::REMOVED]),
        Route::post(
            "users_rotate_mcp_token",
            "/api/admin/users/mcp-token/rotate",
            rotate_of_user,
        )
.tokens(Tokens::Admin)
        .title(Area::Users, "Rotate a user's MCP token")
        .about(
            "The current token is revoked at once, and all connections opened with it are closed. The agent's files get the \
             new one, which no administrator sees, and the agent restarts.",
        )
        .waits()
        .guarded()
        .fails(&[Failure::NO_USER, Failure::REMOVED]),
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

/// `POST /api/mcp/token/rotate`: gives the caller another token.
///
/// # Errors
/// 401 when the account has gone meanwhile.
async fn rotate(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<Converging>> {
    let mut tx = input.meta.begin(&deps).await?;
    let user = own_user(&mut tx, &session.account).await?;
    rotate_of(tx, &user, &input, &deps).await
}

/// `POST /api/admin/users/mcp-token/rotate`: gives a user another token.
///
/// # Errors
/// 404 without such a user.
async fn rotate_of_user(
    _: Superadmin,
    input: Input<Who>,
    deps: Deps,
) -> Result<Answer<Converging>> {
    let mut tx = input.meta.begin(&deps).await?;
    let user = present_user(&mut tx, &input.params.username).await?;
    rotate_of(tx, &user, &input, &deps).await
}

async fn rotate_of<T>(
    mut tx: Audited,
    user: &User,
    input: &Input<T>,
    deps: &Deps,
) -> Result<Answer<Converging>> {
    let name = &user.name;
    let generation = user::rotate_mcp_token(&mut tx, &user.uid, input.if_generation).await?;
    tx.commit(About::object(Kind::User, &user.name)).await?;
    let change = Change::of_config(user, generation);
    let done = format!("MCP token of {name} rotated, and in the agent's files");
    wait::answer(deps, &change, input.wait, done).await
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

    #[tokio::test]
    async fn what_would_be_a_superadmins_token_opens_nothing() {
        let yard = yard().await;
        let uid = yard.find("root").await.unwrap().uid;
        let secret = yard.world.deps.master_key.mcp_token(&uid, 1);
        let token = format!(
            "Bearer root:{}",
            secrecy::ExposeSecret::expose_secret(&secret)
        );
        for path in ["/api/mcp/sse/browser", "/api/computer/ws"] {
            let request = yard.get(path).header("authorization", &token);
            assert_eq!(request.send().await.status, 403, "{path}");
        }
    }
}
