//! `agentyard reset-password`.

use std::sync::Arc;

use clap::Args;
use schema::audit::{About, Author, Writer};
use schema::clock::SystemClock;
use schema::db::{Backend, Db};
use schema::ids::UserName;
use schema::secrets::MasterKey;
use schema::user::{self, Role, Source};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::new_password::{PasswordArgs, prompt_twice};
use super::server::Server;
use super::{Failure, Result, failed, init};
use crate::prepare::say;
use crate::settings::Settings;

const USER_PATH: &str = "/api/admin/users/reset-password";
const SUPERADMIN_PATH: &str = "/api/admin/superadmins/reset";

/// Account and its new password.
#[derive(Debug, Args)]
pub struct ResetArgs {
    /// Name of the account
    #[arg(value_name = "NAME")]
    username: UserName,
    /// Generate and print a random password instead of prompting for one
    #[arg(long, conflicts_with = "password")]
    random: bool,
    #[command(flatten)]
    password: PasswordArgs,
}

impl ResetArgs {
    async fn read_password(&self) -> Result<SecretString> {
        match self.password.read().await? {
            Some(password) => Ok(password),
            None if self.random => schema::secrets::random_password().map_err(failed),
            None => prompt_twice().await,
        }
    }

    fn report(&self, password: &SecretString) {
        match self.random {
            true => say(&format!("password: {}", password.expose_secret())),
            false => say(&format!(
                "password of {} changed; its sessions have ended",
                self.username
            )),
        }
    }

    fn body(&self, password: &SecretString) -> serde_json::Value {
        json!({"username": self.username.as_str(), "password": password.expose_secret()})
    }
}

/// Gives an account a new password: through a running server, else directly in the database.
///
/// # Errors
/// When there is no such account, when its password is kept elsewhere, or when the new one breaks the
/// rules.
pub async fn reset_password(settings: Settings, args: ResetArgs) -> Result {
    let password = args.read_password().await?;
    let server = Server::new(&settings)?;
    if server.runs().await? {
        through_server(&server, &args.body(&password)).await?;
    } else {
        directly(&settings, &args.username, &password).await?;
    }
    args.report(&password);
    Ok(())
}

/// Gives an account of this role a new password through the server.
///
/// # Errors
/// As [`reset_password`], and when no server answers.
pub async fn reset_by_server(server: &Server, args: ResetArgs, role: Role) -> Result {
    let password = args.read_password().await?;
    let path = match role {
        Role::Superadmin => SUPERADMIN_PATH,
        Role::User => USER_PATH,
    };
    server.post(path, &args.body(&password)).await?;
    args.report(&password);
    Ok(())
}

/// The server knows which kind of account it is: superadmins first, since users can be reset in local
/// mode only and the refusal would hide that there is no such user.
async fn through_server(server: &Server, body: &serde_json::Value) -> Result {
    let answer = match server.post(SUPERADMIN_PATH, body).await {
        Err(Failure::NotFound(_)) => server.post(USER_PATH, body).await,
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
