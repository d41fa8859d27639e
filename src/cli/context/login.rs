//! `agentyard login`, `agentyard logout`.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;

use clap::Args;
use reqwest::header::SET_COOKIE;
use reqwest::{Method, Response};
use schema::api_token::PREFIX;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::task::spawn_blocking;
use url::Url;

use super::choice::read_ca;
use super::no_context;
use super::remote::{Credential, Remote};
use super::store::{Store, check_name, read_secret};
use crate::cli::config::value::read_hidden;
use crate::cli::output::cell::text;
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::{Failure, Result, failed};

/// Longer than any token.
const LONGEST_TOKEN: u64 = 4096;

/// Where to sign in, and as whom.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// Address of the server, such as https://agents.example.com
    url: String,
    /// Superadmin to sign in as
    #[arg(long, value_name = "NAME", conflicts_with_all = ["token", "token_file"])]
    username: Option<String>,
    /// CA certificates (PEM) to trust instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Use an API token instead of a session: `-` prompts for it, or reads it from standard input
    #[arg(long, value_name = "-", conflicts_with = "token_file")]
    token: Option<String>,
    /// Use the API token in this file, which only its owner may read
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Name of the context [default: host of the server]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// Signs in to a server, and makes it the one that commands are for.
///
/// # Errors
/// When the server refuses, does not answer, or the context cannot be written.
pub async fn login(args: LoginArgs) -> Result {
    if args.token.as_deref().is_some_and(|token| token != "-") {
        return Err(Failure::Usage(
            "other users of this machine can see the token on the command line; revoke it, and use `--token -` or --token-file"
                .to_owned(),
        ));
    }
    let store = Store::of_user()?;
    let ca = args.ca_file.as_deref().map(read_ca).transpose()?;
    let mut remote = Remote::new(None, &args.url, ca)?;
    let name = match args.name {
        Some(name) => name,
        None => host_of(&remote.url),
    };
    check_name(&name)?;
    if let Ok(present) = store.load(&name)
        && present.url != remote.url
    {
        return Err(Failure::Usage(format!(
            "context {name} is for {}; choose another name with --name, or `agentyard logout {name}` first",
            present.url
        )));
    }
    remote.name = Some(name.clone());
    let token = match (&args.token, args.token_file) {
        (None, None) => None,
        (Some(_), _) => Some(blocking(|| read_token().map_err(failed)).await?),
        (None, Some(file)) => Some(
            blocking(move || {
                let token = read_secret(&file).map_err(|error| error.into_failure(&file))?;
                Ok(SecretString::from(token.trim()))
            })
            .await?,
        ),
    };
    let identity = match token {
        Some(token) => {
            use_token(&mut remote, token).await?;
            "with the API token".to_owned()
        }
        None => format!("as {}", sign_in(&mut remote, args.username).await?),
    };
    store.save(&name, &remote)?;
    store.set_current(&name)?;
    screen::print(&format!(
        "signed in to {} {identity}; context {name} is current\n",
        remote.url
    ))
}

fn host_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    host.trim_matches(['[', ']']).to_owned()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    spawn_blocking(work).await.map_err(failed)?
}

fn read_token() -> std::io::Result<SecretString> {
    if std::io::stdin().is_terminal() {
        return rpassword::prompt_password("API token: ").map(SecretString::from);
    }
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(LONGEST_TOKEN)
        .read_to_string(&mut text)?;
    Ok(SecretString::from(text.trim()))
}

/// Tries a token.
async fn use_token(remote: &mut Remote, token: SecretString) -> Result {
    if !token.expose_secret().starts_with(PREFIX) {
        return Err(Failure::Failed(format!(
            "not an API token: API tokens begin with {PREFIX}; `agentyard api-token create` creates one"
        )));
    }
    remote.credential = Some(Credential::Token(token));
    let server = Server::remote(remote.clone(), "agentyard".to_owned())?;
    server
        .get("/api/admin/superadmins?page_size=1")
        .await
        .map(drop)
}

/// Signs a superadmin in. Returns the name.
async fn sign_in(remote: &mut Remote, username: Option<String>) -> Result<String> {
    let username = match username {
        Some(username) => username,
        None => blocking(ask_username).await?,
    };
    let password = blocking(|| {
        read_hidden("Password")
            .map_err(|error| Failure::Failed(format!("the password cannot be read: {error}")))
    });
    let password = password.await?;
    let server = Server::remote(remote.clone(), "agentyard".to_owned())?;
    let body = json!({
        "username": username, "password": password.expose_secret(), "client": "web",
    });
    let request = server.request(Method::POST, "/api/login").json(&body);
    let answer = server.open(request).await?;
    let cookie = session_of(&answer);
    let answer = server.read(answer).await?;
    let cookie = cookie.ok_or_else(|| {
        Failure::Failed(format!(
            "{} did not open a session; check that this is the address of an Agentyard server",
            remote.url
        ))
    })?;
    let username = clean(&text(&answer, "username"));
    let is_superadmin = text(&answer, "role") == "superadmin";
    remote.credential = Some(Credential::Session {
        username: username.clone(),
        cookie,
    });
    if !is_superadmin {
        sign_out(remote).await?;
        return Err(Failure::Failed(format!(
            "{username} is an ordinary user; the command line is for superadmins"
        )));
    }
    Ok(username)
}

fn ask_username() -> Result<String> {
    if !std::io::stdin().is_terminal() {
        let rule = "no terminal to prompt for the name; use --username";
        return Err(Failure::Usage(rule.to_owned()));
    }
    let mut screen = std::io::stderr();
    let shown = screen
        .write_all(b"Username: ")
        .and_then(|()| screen.flush());
    shown.map_err(failed)?;
    let mut name = String::new();
    std::io::stdin().read_line(&mut name).map_err(failed)?;
    Ok(name.trim().to_owned())
}

fn session_of(answer: &Response) -> Option<SecretString> {
    let cookies = answer.headers().get_all(SET_COOKIE).iter();
    let mut sessions = cookies.filter_map(|cookie| {
        let pair = cookie.to_str().ok()?.split(';').next()?;
        pair.trim().strip_prefix("session=")
    });
    sessions.next().map(SecretString::from)
}

async fn sign_out(remote: &Remote) -> Result {
    let server = Server::remote(remote.clone(), "agentyard".to_owned())?;
    server.post("/api/logout", &json!({})).await.map(drop)
}

/// Ends the session on the server, and forgets the context.
///
/// # Errors
/// When there is no such context, or its session cannot be ended: it is forgotten all the same.
pub async fn logout(given: Option<String>) -> Result {
    let store = Store::of_user()?;
    let name = match given {
        Some(name) => name,
        None => store.current()?.ok_or_else(|| {
            let why = "no context is current; give one of `agentyard context list`";
            Failure::Usage(why.to_owned())
        })?,
    };
    if !store.names()?.contains(&name) {
        return Err(no_context(&name));
    }
    let remote = store.load(&name);
    store.remove(&name)?;
    let remote = remote?;
    match &remote.credential {
        Some(Credential::Session { .. }) => {
            sign_out(&remote).await.map_err(|failure| {
                Failure::Failed(format!(
                    "context {name} was removed, but its session could not be ended: {failure}; it expires within 24 hours"
                ))
            })?;
            screen::print(&format!("signed out of {}\n", remote.url))
        }
        Some(Credential::Token(_)) => screen::print(&format!(
            "context {name} removed; its API token stays valid until it is revoked (`agentyard api-token revoke`)\n"
        )),
        None => screen::print(&format!("context {name} removed\n")),
    }
}
