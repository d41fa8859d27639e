//! `agentyard skill repo`.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::{PATH, change, kind};
use crate::cli::admin::escaped;
use crate::cli::follow::{self, Until};
use crate::cli::kinds::OFFERED_SKILLS;
use crate::cli::output::cell::{at, cleaned, number, short, text};
use crate::cli::output::clean::clean;
use crate::cli::output::{OutputArgs, screen};
use crate::cli::pages::{self, Pages};
use crate::cli::server::Server;
use crate::cli::{Failure, Result, failed};

/// Longer than any password, token or key.
const LARGEST_SECRET: u64 = 64 * 1024;
/// Most skills of a kind that are named after a pull.
const NAMED: usize = 20;
/// The name of a credential that is the only one.
const CREDENTIAL: &str = "default";

/// Repositories that skills are installed from.
#[derive(Debug, Subcommand)]
pub enum RepoCommand {
    /// List repositories, or the skills in one
    #[command(
        after_help = "Examples:\n  agentyard skill repo list\n  agentyard skill repo list team"
    )]
    List(ListArgs),
    /// Add a repository and pull it
    #[command(
        after_help = "Examples:\n  agentyard skill repo add team https://git.example.com/team/skills.git\n  agentyard skill repo add team https://github.com/team/skills.git --ref v2 --tag --provider github --secret\n  agentyard skill repo add team git@git.example.com:team/skills.git --secret-file ~/.ssh/skills"
    )]
    Add(AddArgs),
    /// Change a repository and pull it; settings without an option stay
    #[command(
        after_help = "Examples:\n  agentyard skill repo save team --ref v3 --tag\n  agentyard skill repo save team --secret < token\n  agentyard skill repo save team --forget-host-key"
    )]
    Save(SaveArgs),
    /// Pull a repository and show the progress (Ctrl-C does not stop the pull)
    #[command(
        after_help = "Examples:\n  agentyard skill repo pull team\n  agentyard skill repo pull team --detach"
    )]
    Pull(WhichArgs),
    /// Cancel a pull; the previously pulled content stays
    #[command(after_help = "Examples:\n  agentyard skill repo cancel team")]
    Cancel {
        /// Name of the repository
        name: String,
    },
    /// Remove a repository; installed skills stay
    #[command(after_help = "Examples:\n  agentyard skill repo remove team")]
    Remove(WhichArgs),
}

/// Which list.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Repository whose skills to list [default: list all repositories]
    name: Option<String>,
    /// Filter by text
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    search: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// Which repository.
#[derive(Debug, Args)]
pub struct WhichArgs {
    /// Name of the repository
    name: String,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
}

/// A new repository.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Name of the repository
    name: String,
    /// Address: https://, http://, ssh:// or git@host:path
    url: String,
    #[command(flatten)]
    fields: FieldArgs,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
}

/// What to change of a repository.
#[derive(Debug, Args)]
pub struct SaveArgs {
    /// Name of the repository
    name: String,
    /// Address: https://, http://, ssh:// or git@host:path
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    fields: FieldArgs,
    /// Treat the ref as a branch
    #[arg(long, conflicts_with = "tag")]
    branch: bool,
    /// Remove the stored credentials
    #[arg(long, conflicts_with_all = ["username", "provider", "secret", "secret_file"])]
    public: bool,
    /// Forget the stored SSH host key and trust the next one
    #[arg(long)]
    forget_host_key: bool,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
}

/// What of it to pull, and with what.
#[derive(Debug, Args)]
pub struct FieldArgs {
    /// Branch or tag [default for a new repository: main]
    #[arg(long = "ref", value_name = "REF")]
    reference: Option<String>,
    /// Treat the ref as a tag
    #[arg(long)]
    tag: bool,
    /// User name for the Git server [default: the usual one of the provider]
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Provider of the Git server
    #[arg(long, value_name = "PROVIDER", value_parser = ["github", "gitlab", "gitee", "other"])]
    provider: Option<String>,
    /// Prompt for the password, token or private key, or read it from standard input
    #[arg(long)]
    secret: bool,
    /// Read the password, token or private key from this file
    #[arg(long, value_name = "FILE", conflicts_with = "secret")]
    secret_file: Option<PathBuf>,
}

/// Runs a command on repositories.
///
/// # Errors
/// When no server answers, it refuses, or a pull needs manual action.
pub async fn repo(server: &Server, command: RepoCommand) -> Result {
    match command {
        RepoCommand::List(args) => list(server, args).await,
        RepoCommand::Add(args) => add(server, args).await,
        RepoCommand::Save(args) => save(server, args).await,
        RepoCommand::Pull(args) => {
            let before = find(server, &args.name).await?;
            let body = json!({ "name": args.name, "wait": 0 });
            let answer = server.post(&path("pull"), &body).await?;
            pulled(
                server,
                &answer,
                "pull requested",
                Some(&before),
                args.detach,
            )
            .await
        }
        RepoCommand::Cancel { name } => {
            let answer = server
                .post(&path("cancel"), &json!({ "name": name }))
                .await?;
            screen::print(&format!("{}\n", cleaned(&answer, "message")))
        }
        RepoCommand::Remove(args) => remove(server, &args).await,
    }
}

fn path(verb: &str) -> String {
    format!("{PATH}/repos/{verb}")
}

/// A repository as it is listed.
async fn find(server: &Server, name: &str) -> Result<Value> {
    let kind = kind("skill-repository")?;
    match pages::find(server, kind, name).await?.0 {
        Some(found) => Ok(found),
        None => Err(pages::missing(server, kind, name).await),
    }
}

async fn list(server: &Server, args: ListArgs) -> Result {
    let pages = match &args.name {
        Some(name) => {
            let pages = Pages::new(server, &OFFERED_SKILLS, &args.search);
            pages.with(format!("name={}", escaped(name)))
        }
        None => Pages::new(server, kind("skill-repository")?, &args.search),
    };
    // An unknown repository is no unknown list.
    if let Some(name) = &args.name {
        find(server, name).await?;
    }
    pages.print(args.output, |_| {}).await
}

async fn add(server: &Server, args: AddArgs) -> Result {
    let mut document = args.fields.document(&args.name)?;
    document.insert("url".to_owned(), json!(args.url));
    if let Some(credential) = args.fields.credential(None).await? {
        if credential.get("secret").is_none() {
            let text = "--username and --provider need --secret or --secret-file";
            return Err(Failure::Usage(text.to_owned()));
        }
        document.insert("credentials".to_owned(), json!([credential]));
    }
    let answer = send(server, "add", document).await?;
    pulled(server, &answer, "added", None, args.detach).await
}

async fn save(server: &Server, args: SaveArgs) -> Result {
    let before = find(server, &args.name).await?;
    let mut document = args.fields.document(&args.name)?;
    if let Some(url) = &args.url {
        document.insert("url".to_owned(), json!(url));
    }
    if args.branch {
        document.insert("ref_type".to_owned(), json!("branch"));
    }
    if args.public {
        document.insert("credentials".to_owned(), json!([]));
    }
    document.insert("forget_host_key".to_owned(), json!(args.forget_host_key));
    let stored = at(&before, "credentials").as_array();
    let stored = stored.map(Vec::as_slice).unwrap_or_default();
    if let Some(credential) = args.fields.credential(stored.first()).await? {
        if stored.len() > 1 {
            return Err(Failure::Failed(format!(
                "repository {} has {} credentials; change them with POST {}",
                args.name,
                stored.len(),
                path("save")
            )));
        }
        document.insert("credentials".to_owned(), json!([credential]));
    }
    let answer = send(server, "save", document).await?;
    pulled(server, &answer, "saved", Some(&before), args.detach).await
}

async fn send(server: &Server, verb: &str, document: Map<String, Value>) -> Result<Value> {
    let text = Value::Object(document).to_string();
    let body = json!({ "repo": text, "wait": 0 });
    server.post(&path(verb), &body).await
}

impl FieldArgs {
    /// What was given of the repository itself.
    fn document(&self, name: &str) -> Result<Map<String, Value>> {
        let mut document = Map::new();
        document.insert("name".to_owned(), json!(name));
        if let Some(reference) = &self.reference {
            document.insert("ref".to_owned(), json!(reference));
        }
        if self.tag {
            document.insert("ref_type".to_owned(), json!("tag"));
        }
        Ok(document)
    }

    /// The credential, if anything was given of it; the rest is as stored.
    async fn credential(&self, stored: Option<&Value>) -> Result<Option<Map<String, Value>>> {
        let secret = self.read_secret().await?;
        if secret.is_none() && self.username.is_none() && self.provider.is_none() {
            return Ok(None);
        }
        let mut credential = Map::new();
        for key in ["name", "provider", "username"] {
            if let Some(value) = stored.and_then(|stored| stored.get(key)) {
                credential.insert(key.to_owned(), value.clone());
            }
        }
        credential.entry("name").or_insert(json!(CREDENTIAL));
        if let Some(provider) = &self.provider {
            credential.insert("provider".to_owned(), json!(provider));
        }
        if let Some(username) = &self.username {
            credential.insert("username".to_owned(), json!(username));
        }
        if let Some(secret) = secret {
            credential.insert("secret".to_owned(), json!(secret.expose_secret()));
        }
        Ok(Some(credential))
    }

    async fn read_secret(&self) -> Result<Option<SecretString>> {
        let file = self.secret_file.clone();
        if !self.secret && file.is_none() {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || match file {
            Some(file) => from_file(&file),
            None => typed().map_err(|error| failed(format!("cannot read the secret: {error}"))),
        });
        let secret = read.await.map_err(failed)??;
        if secret.expose_secret().is_empty() {
            return Err(Failure::Failed("the secret is empty".to_owned()));
        }
        Ok(Some(secret))
    }
}

fn from_file(path: &Path) -> Result<SecretString> {
    let cannot = |error: std::io::Error| failed(format!("cannot read {}: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(cannot)?;
    read(file).map_err(cannot)
}

/// Without showing what is typed.
fn typed() -> std::io::Result<SecretString> {
    if std::io::stdin().is_terminal() {
        return rpassword::prompt_password("Password, token or private key: ")
            .map(SecretString::from);
    }
    read(std::io::stdin().lock())
}

/// The line break behind a token is none of it; a key needs its last.
fn read(from: impl Read) -> std::io::Result<SecretString> {
    let mut text = String::new();
    from.take(LARGEST_SECRET).read_to_string(&mut text)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    Ok(SecretString::from(match line.contains('\n') {
        true => text,
        false => line.to_owned(),
    }))
}

/// Shows a pull to its end, and what it brought.
async fn pulled(
    server: &Server,
    answer: &Value,
    done: &str,
    before: Option<&Value>,
    detach: bool,
) -> Result {
    let object = text(answer, "object");
    let shown = clean(&object);
    screen::print(&format!("{shown} {done}\n"))?;
    if detach {
        let command = &server.command;
        screen::note(&format!("`{command} wait {shown}` waits for the pull"));
        return Ok(());
    }
    follow::object(server, &object, Until::Ready(number(answer, "generation"))).await?;
    let name = object.split_once('/').map_or("", |(_, name)| name);
    let after = find(server, name).await?;
    change::warn(&after);
    let pages = Pages::new(server, &OFFERED_SKILLS, "");
    let mut pages = pages.with(format!("name={}", escaped(name)));
    let mut offered = Vec::new();
    while let Some(skills) = pages.next().await? {
        offered.extend(skills);
    }
    screen::print(&outcome(before, &after, &offered, &server.command))
}

/// What a pull brought.
fn outcome(before: Option<&Value>, after: &Value, offered: &[Value], command: &str) -> String {
    let name = cleaned(after, "name");
    let commit = cleaned(after, "commit");
    let reference = cleaned(after, "ref");
    let news = match before.map(|before| cleaned(before, "commit")) {
        Some(before) if before == commit => ", unchanged".to_owned(),
        Some(before) if !before.is_empty() => format!(", before {}", short(&before)),
        _ => String::new(),
    };
    let mut lines = format!("{reference} is at {}{news}\n", short(&commit));
    let named = |wanted: &dyn Fn(&Value) -> bool| -> Vec<String> {
        let skills = offered.iter().filter(|skill| wanted(skill));
        let skills = skills.map(|skill| cleaned(skill, "name"));
        skills.filter(|name| !name.is_empty()).collect()
    };
    let list = |names: &[String]| {
        let (shown, rest) = names.split_at(names.len().min(NAMED));
        let rest = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more (`{command} skill repo list {name}`)"),
        };
        shown.join(", ") + &rest
    };
    let updates = named(&|skill| skill["update_available"] == true);
    let others = named(&|skill| skill["installed"] != true);
    if !updates.is_empty() {
        lines += &format!("updates available: {}\n", list(&updates));
    }
    if !others.is_empty() {
        lines += &format!("not installed: {}\n", list(&others));
    }
    if !(updates.is_empty() && others.is_empty()) {
        lines += &format!("`{command} skill install {name} SKILL` installs or updates one\n");
    }
    lines
}

async fn remove(server: &Server, args: &WhichArgs) -> Result {
    let mut body = json!({ "name": args.name });
    if args.detach {
        body["wait"] = json!(0);
    }
    let answer = server.post(&path("remove"), &body).await?;
    let object = text(&answer, "object");
    match (text(&answer, "state").as_str(), args.detach) {
        ("pending", true) => screen::print(&format!("{} removal requested\n", clean(&object))),
        ("pending", false) => {
            follow::object(server, &object, Until::Gone).await?;
            screen::print(&format!("{} is gone\n", clean(&object)))
        }
        _ => screen::print(&format!("{}\n", cleaned(&answer, "message"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_no_line_break_and_a_key_keeps_its_last() {
        let read = |text: &str| read(text.as_bytes()).unwrap();
        for (text, secret) in [
            ("token\n", "token"),
            ("token\r\n", "token"),
            ("token", "token"),
            ("-----BEGIN\nkey\n", "-----BEGIN\nkey\n"),
            ("\n", ""),
        ] {
            assert_eq!(read(text).expose_secret(), secret, "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_stored_credential_keeps_what_is_not_given() {
        let fields = |username: Option<&str>| FieldArgs {
            reference: None,
            tag: false,
            username: username.map(str::to_owned),
            provider: None,
            secret: false,
            secret_file: None,
        };
        let stored =
            json!({"name": "bot", "provider": "gitlab", "username": "a", "secret_set": true});
        assert!(
            fields(None)
                .credential(Some(&stored))
                .await
                .unwrap()
                .is_none()
        );
        let changed = fields(Some("b")).credential(Some(&stored)).await.unwrap();
        let expected = json!({"name": "bot", "provider": "gitlab", "username": "b"});
        assert_eq!(Value::Object(changed.unwrap()), expected);
        let new = fields(Some("b")).credential(None).await.unwrap();
        assert_eq!(new.unwrap()["name"], "default");
    }

    #[test]
    fn a_pull_says_what_is_new() {
        let at = |commit: &str| json!({"name": "team", "ref": "main", "commit": commit.repeat(40)});
        let offered = [
            json!({"name": "pdf", "installed": true, "update_available": true}),
            json!({"name": "odt", "installed": false, "update_available": false}),
            json!({"name": null, "installed": false, "update_available": false}),
        ];
        let (old, new) = (at("a"), at("b"));
        let text = outcome(Some(&old), &new, &offered, "agentyard");
        let expected = "main is at bbbbbbbbbbbb, before aaaaaaaaaaaa\nupdates available: pdf\nnot installed: odt\n\
                        `agentyard skill install team SKILL` installs or updates one\n";
        assert_eq!(text, expected);
        let many: Vec<Value> = (0..3000)
            .map(|number| json!({"name": format!("s{number}"), "installed": false}))
            .collect();
        let text = outcome(Some(&new), &new, &many, "agentyard");
        assert!(
            text.contains("s19 and 2980 more (`agentyard skill repo list team`)\n"),
            "{text}"
        );
        let text = outcome(Some(&new), &new, &[], "agentyard");
        assert_eq!(text, "main is at bbbbbbbbbbbb, unchanged\n");
        let text = outcome(None, &new, &[], "agentyard");
        assert_eq!(text, "main is at bbbbbbbbbbbb\n");
    }
}
