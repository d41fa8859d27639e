//! `agentyard config`.

mod apply;
mod value;

use clap::{Args, Subcommand};
use http::Method;
use schema::config::KEYS;
use serde_json::{Map, Value, json};

use self::value::{Assignment, Given};
use super::kinds::CONFIG_HISTORY;
use super::output::cell::plain;
use super::output::clean::clean;
use super::output::items::{Amount, Printer};
use super::output::{Format, screen};
use super::pages::Pages;
use super::server::Server;
use super::{Failure, admin, suggest};

/// The configuration in the database.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print all keys, or one; secrets are masked
    #[command(after_help = "Examples:\n  agentyard config get\n  agentyard config get image.tag")]
    Get {
        /// Which key, or group of keys
        #[arg(value_name = "KEY")]
        key: Option<String>,
    },
    /// Give keys a value; what is no text is JSON
    #[command(
        after_help = "Examples:\n  agentyard config set image.tag=v0.2.9 container.memory_limit_mb=2048\n  agentyard config set image.registry_password=-\n  agentyard config set agent=- < agent.json\n  agentyard config set container.pids_limit=256 --dry-run"
    )]
    Set {
        /// Key and value; `-` as the value asks for it, or reads it from the standard input
        #[arg(value_name = "KEY=VALUE", required = true)]
        assignments: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Return keys to their defaults
    #[command(after_help = "Examples:\n  agentyard config unset image.tag container.pids_limit")]
    Unset {
        /// Which keys
        #[arg(value_name = "KEY", required = true, value_parser = known)]
        keys: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// List who changed what, the newest first
    #[command(
        after_help = "Examples:\n  agentyard config history --search image\n  agentyard config history -o json | jq '.[0].changes'"
    )]
    History(HistoryArgs),
    /// Make everything but secrets what it was after a revision
    #[command(
        after_help = "Examples:\n  agentyard config rollback 7 --dry-run\n  agentyard config rollback 7"
    )]
    Rollback {
        /// Which revision, as `history` lists them
        #[arg(value_name = "REVISION")]
        revision: i64,
        #[command(flatten)]
        how: How,
    },
    /// Print the JSON Schema of all keys
    #[command(
        after_help = "Examples:\n  agentyard config schema | jq '.properties.image.properties.tag'"
    )]
    Schema,
    /// Bring the configuration to a user's files, or to everybody's, and show how far it is
    #[command(
        after_help = "Examples:\n  agentyard config apply alice\n  agentyard config apply\n  agentyard config apply --detach"
    )]
    Apply(apply::ApplyArgs),
}

/// How to save.
#[derive(Debug, Args)]
pub struct How {
    /// Only tell what would happen
    #[arg(long)]
    dry_run: bool,
}

/// Which changes.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Only those whose actor or keys contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    search: String,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// No line with the columns' titles
    #[arg(long)]
    no_headers: bool,
}

/// Reads or changes the configuration.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn config(server: &Server, command: ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Get { key } => get(server, key.as_deref()).await,
        ConfigCommand::Set { assignments, how } => {
            let mut given = Given::default();
            let mut document = Map::new();
            for text in &assignments {
                // Not read by the parser of the command line, which shows what it does not understand.
                let Assignment { key, text } = text.parse().map_err(Failure::Usage)?;
                let value = given.value(&key, text).await?;
                if document.insert(key.clone(), value).is_some() {
                    return Err(Failure::Usage(format!("{key} is given twice")));
                }
            }
            save(server, document, &how).await
        }
        ConfigCommand::Unset { keys, how } => {
            let document = keys.into_iter().map(|key| (key, Value::Null));
            save(server, document.collect(), &how).await
        }
        ConfigCommand::History(args) => history(server, args).await,
        ConfigCommand::Rollback { revision, how } => {
            let body = json!({ "revision": revision, "dry_run": how.dry_run });
            let answer = post(server, "/api/admin/config/rollback", &body).await?;
            tell(&answer, &how)
        }
        ConfigCommand::Schema => {
            let answer = admin::get(&server.settings, "/api/admin/config/schema").await?;
            print_json(answer.get("schema").unwrap_or(&Value::Null))
        }
        ConfigCommand::Apply(args) => apply::apply(server, &args).await,
    }
}

/// A key of this release, from the command line.
fn known(key: &str) -> Result<String, String> {
    if schema::config::find(key).is_some() {
        return Ok(key.to_owned());
    }
    let whole = key.split_once('.').map_or(key, |(whole, _)| whole);
    if schema::config::find(whole).is_some() {
        return Err(format!("{whole} is one key and replaced as a whole"));
    }
    let guess = suggest::closest(key, KEYS.iter().map(|def| def.key));
    Err(format!(
        "there is no key {key:?}{}",
        suggest::did_you_mean(&guess)
    ))
}

async fn get(server: &Server, key: Option<&str>) -> Result<(), Failure> {
    let document = admin::get(&server.settings, "/api/config").await?;
    let Some(key) = key else {
        return print_json(&document);
    };
    let pointer = format!("/{}", key.replace('.', "/"));
    match document.pointer(&pointer) {
        Some(Value::String(text)) => screen::print_raw(format!("{text}\n").as_bytes()),
        Some(value) => print_json(value),
        None => {
            Err(Failure::NotFound(known(key).err().unwrap_or_else(|| {
                format!("the server has no key {key:?}")
            })))
        }
    }
}

fn print_json(value: &Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Failed(e.to_string()))?;
    screen::print_raw(format!("{text}\n").as_bytes())
}

async fn save(server: &Server, document: Map<String, Value>, how: &How) -> Result<(), Failure> {
    let text = Value::Object(document).to_string();
    let body = json!({ "config": text, "dry_run": how.dry_run });
    let answer = post(server, "/api/config", &body).await?;
    tell(&answer, how)
}

async fn post(server: &Server, path: &str, body: &Value) -> Result<Value, Failure> {
    let (status, text) = admin::send(&server.settings, Method::POST, path, Some(body)).await?;
    admin::judge(status, &text).map_err(|failure| with_problems(failure, &text))
}

/// Every problem, a line each.
fn with_problems(failure: Failure, text: &str) -> Failure {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let problems = answer.get("problems").and_then(Value::as_array);
    let lines: Vec<String> = problems
        .into_iter()
        .flatten()
        .filter_map(|problem| problem.get("message").map(plain))
        .collect();
    match failure {
        Failure::Failed(_) if !lines.is_empty() => Failure::Failed(lines.join("\n")),
        other => other,
    }
}

fn tell(answer: &Value, how: &How) -> Result<(), Failure> {
    let field = |key: &str| clean(&answer.get(key).map(plain).unwrap_or_default());
    let (changed, restarts) = (field("changed"), field("restarts"));
    let text = match (changed.is_empty(), how.dry_run) {
        (true, _) => "nothing changes\n".to_owned(),
        (false, true) => {
            format!("would change: {changed}\ncontainers that would be made anew: {restarts}\n")
        }
        (false, false) => format!(
            "changed: {changed}\ncontainers that are made anew: {restarts}\nrevision: {}\n",
            field("generation")
        ),
    };
    screen::print(&text)
}

async fn history(server: &Server, args: HistoryArgs) -> Result<(), Failure> {
    let mut printer = Printer::new(&CONFIG_HISTORY, args.output, Amount::List, !args.no_headers);
    let mut pages = Pages::new(server, &CONFIG_HISTORY, &args.search);
    while let Some(revisions) = pages.next().await? {
        printer.print(&revisions)?;
    }
    printer.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked_before_a_server_is_asked() {
        assert_eq!(known("image.tag").unwrap(), "image.tag");
        let guess = known("image.tga").unwrap_err();
        assert!(guess.contains("image.tag"), "{guess}");
        let whole = known("agent.model").unwrap_err();
        assert!(whole.contains("as a whole"), "{whole}");
    }

    #[test]
    fn every_problem_of_a_refusal_is_told() {
        let text = r#"{"error":"no: 1","problems":[{"message":"a must be b"},{"message":"c"}]}"#;
        let failure = with_problems(Failure::Failed("no".to_owned()), text);
        assert_eq!(failure.to_string(), "a must be b\nc");
        let other = with_problems(Failure::Failed("no".to_owned()), "{}");
        assert_eq!(other.to_string(), "no");
    }
}
