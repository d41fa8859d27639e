//! `agentyard reset-password`.

use std::sync::Arc;

use schema::audit::{About, Author, Writer};
use schema::clock::SystemClock;
use schema::db::{Backend, Db};
use schema::ids::UserName;
use schema::secrets::MasterKey;
use schema::user::{self, Source};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::server::Server;
use super::{Failure, Result, failed, init};
use crate::prepare::say;
use crate::settings::Settings;

/// Gives an account a new password: through a running server, else directly in the database.
///
/// # Errors
/// When there is no such account, when its password is kept elsewhere, or when the new one breaks the
/// rules.
pub async fn reset_password(settings: Settings, username: &str, random: bool) -> Result {
    let name: UserName = username.parse().map_err(failed)?;
    let password = if random {
        schema::secrets::random_password().map_err(failed)?
    } else {
        ask().await?
    };
    let server = Server::new(&settings)?;
    if server.runs().await? {
        let body = json!({"username": name.as_str(), "password": password.expose_secret()});
        through_server(&server, &body).await?;
    } else {
        directly(&settings, &name, &password).await?;
    }
    if random {
        say(&format!("password: {}", password.expose_secret()));
    } else {
        say(&format!(
            "password of {name} changed; its sessions have ended"
        ));
    }
    Ok(())
}

/// The server knows which kind of account it is: superadmins first, since users can be reset in local
/// mode only and the refusal would hide that there is no such user.
async fn through_server(server: &Server, body: &serde_json::Value) -> Result {
    let answer = match server.post("/api/admin/superadmins/reset", body).await {
        Err(Failure::NotFound(_)) => server.post("/api/admin/users/reset-password", body).await,
        answer => answer,
    };
    answer.map(drop)
}

async fn directly(settings: &Settings, name: &UserName, password: &SecretString) -> Result {
    let _lock = match &settings.database {
        Backend::Sqlite(path) if !path.exists() => {
            return Err(Failure::Failed(format!(
                "no database at {}; set the data directory with --data-dir",
                path.display()
            )));
        }
        Backend::Sqlite(_) | Backend::Postgres(_) => init::lock(settings)?,
    };
    api::auth::password::check_rules("password", password).map_err(failed)?;
    let db =
        Db::open(settings.database.clone())
            .await
            .map_err(|error| match error.is_refusal() {
                true => Failure::Refused(error.to_string()),
                false => Failure::Unavailable(reconcilers::runtime::supervise::chain(&error)),
            })?;
    let key = MasterKey::load(&settings.data_dir).map_err(|e| Failure::Refused(e.to_string()))?;
    let writer = Writer::new(db.clone(), &key, Arc::new(SystemClock));
    let author = Author::local(rustix::process::getuid().as_raw(), "reset_password");
    let mut tx = writer.begin(author).await.map_err(failed)?;
    let account = user::find(&mut tx, name)
        .await
        .map_err(failed)?
        .filter(|account| account.deleted_at.is_none())
        .ok_or_else(|| Failure::Failed(format!("account {name} not found")))?;
    if account.source != Source::Local {
        return Err(Failure::Failed(format!(
            "the password of {name} is kept by the directory or identity provider; change it there"
        )));
    }
    let clear = password.clone();
    let hash = tokio::task::spawn_blocking(move || {
        api::auth::password::hash_blocking(&clear).map_err(|e| e.to_string())
    })
    .await
    .map_err(failed)?
    .map_err(Failure::Failed)?;
    user::set_password(&mut tx, &account.uid, &SecretString::from(hash), None)
        .await
        .map_err(failed)?;
    let about = About::object(account.role, &account.name);
    tx.commit(about).await.map_err(failed)?;
    db.close().await;
    Ok(())
}

/// Prompts twice, without showing what is typed.
async fn ask() -> Result<SecretString> {
    let typed = tokio::task::spawn_blocking(|| {
        let first = rpassword::prompt_password("New password: ")?;
        let second = rpassword::prompt_password("Repeat: ")?;
        Ok::<_, std::io::Error>((SecretString::from(first), SecretString::from(second)))
    })
    .await
    .map_err(failed)?;
    let (first, second) = typed.map_err(|error| {
        Failure::Failed(format!(
            "cannot prompt for the password ({error}); use --random where there is no terminal"
        ))
    })?;
    if first.expose_secret() != second.expose_secret() {
        return Err(Failure::Failed("the passwords differ".to_owned()));
    }
    Ok(first)
}
