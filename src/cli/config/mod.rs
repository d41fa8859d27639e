//! `agentyard config`.

mod apply;
mod explain;
mod part;
pub(in crate::cli) mod value;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use self::part::Parts;
pub(super) use self::value::read_hidden;
use self::value::{Assignment, Given};
use super::kinds::CONFIG_HISTORY;
use super::mode_switch::{self, Consent, describe_purge, follow_purge};
use super::output::cell::{cleaned, counted, number, text};
use super::output::items::pretty;
use super::output::{Format, screen};
use super::pages::{ListArgs, Pages};
use super::server::Server;
use super::{Failure, Result, suggest};
use crate::cli::output::clean::clean;

const PATH: &str = "/api/config";

/// The service's configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print all keys, or one; secrets are masked
    #[command(
        after_help = "Examples:\n  agentyard config get\n  agentyard config get image.tag\n  agentyard config get --modified"
    )]
    Get {
        /// Key, or group of keys [default: all]
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// Print only keys that differ from their defaults
        #[arg(long)]
        modified: bool,
    },
    /// Explain a key: type, default, limits, effect of a change, current value and author
    #[command(
        after_help = "Examples:\n  agentyard config explain container.memory_limit_mb\n  agentyard config explain image"
    )]
    Explain {
        /// Key, or group of keys
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Set keys; values that are not text are JSON
    #[command(
        after_help = "A path sets a part of agent, security or mcp.policy. The part is merged into the current value: objects are merged, lists are replaced, null removes a part. The rest stays, masked secrets included.\n\nExamples:\n  agentyard config set image.tag=v0.2.9 container.memory_limit_mb=2048\n  agentyard config set image.registry_password=-\n  agentyard config set agent=- < agent.json\n  agentyard config set agent.model_list=@models.json agent.tools.web.enabled=true\n  agentyard config set container.pids_limit=256 --dry-run"
    )]
    Set {
        /// Key and value; KEY=- prompts for the value, or reads it from standard input; KEY=@FILE reads it from a file; KEY=@@TEXT is the text @TEXT
        #[arg(value_name = "KEY=VALUE", required = true)]
        assignments: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Reset keys to their defaults
    #[command(after_help = "Examples:\n  agentyard config unset image.tag container.pids_limit")]
    Unset {
        /// Keys, or parts of agent, security and mcp.policy
        #[arg(value_name = "KEY", required = true, value_parser = known_place)]
        keys: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// List changes, newest first
    #[command(
        after_help = "Examples:\n  agentyard config history --search image\n  agentyard config history -o json | jq '.[0].changes'"
    )]
    History(ListArgs),
    /// Restore all non-secret keys as of a revision
    #[command(
        after_help = "Examples:\n  agentyard config rollback 7 --dry-run\n  agentyard config rollback 7\n  agentyard config rollback 7 --yes"
    )]
    Rollback {
        /// Revision, as listed by `agentyard config history`
        #[arg(value_name = "REVISION")]
        revision: i64,
        #[command(flatten)]
        how: How,
    },
    /// Print the JSON Schema of all keys of this release; needs no server
    #[command(
        after_help = "Examples:\n  agentyard config schema | jq '.properties.image.properties.tag'"
    )]
    Schema,
    /// Write the configuration to agents' files and show the progress
    #[command(
        after_help = "Examples:\n  agentyard config apply alice\n  agentyard config apply\n  agentyard config apply --detach"
    )]
    Apply(apply::ApplyArgs),
}

/// How to save.
#[derive(Debug, Args)]
pub struct How {
    /// Preview without saving
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
}

/// Reads or changes the configuration.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn config(server: &Server, command: ConfigCommand) -> Result {
    match command {
        ConfigCommand::Get {
            key,
            modified: false,
        } => get(server, key.as_deref()).await,
        ConfigCommand::Get {
            key,
            modified: true,
        } => explain::print_modified(server, key.as_deref()).await,
        ConfigCommand::Explain { key } => explain::explain(server, &key).await,
        ConfigCommand::Set { assignments, how } => {
            let mut given = Given::default();
            let mut wanted = Wanted::default();
            for text in &assignments {
                // Not read by the parser of the command line, which shows what it does not understand.
                let Assignment { key, text } = text.parse().map_err(Failure::Usage)?;
                let value = given.value(&key, text).await?;
                wanted.add(key, value)?;
            }
            wanted.save(server, &how).await
        }
        ConfigCommand::Unset { keys, how } => {
            let mut wanted = Wanted::default();
            for key in keys {
                wanted.add(key, Value::Null)?;
            }
            wanted.save(server, &how).await
        }
        ConfigCommand::History(args) => history(server, args).await,
        ConfigCommand::Rollback { revision, how } => {
            let body = json!({ "revision": revision });
            change(server, "/api/admin/config/rollback", body, &how).await
        }
        // Known to the program: a server need not run.
        ConfigCommand::Schema => print_json(&schema::config::json_schema()),
        ConfigCommand::Apply(args) => apply::apply(server, &args).await,
    }
}

/// A key of this release, from the command line.
fn known(key: &str) -> Result<String, String> {
    if schema::config::find(key).is_some() {
        return Ok(key.to_owned());
    }
    let guess = suggest::did_you_mean(&suggest::closest_keys(key));
    Err(format!(
        "unknown key {key:?}{guess}; `agentyard config schema` lists the keys"
    ))
}

/// A key of this release, or a place in one that holds a document.
fn known_place(key: &str) -> Result<String, String> {
    match part::find_place(key) {
        Some(_) => Ok(key.to_owned()),
        None => known(key),
    }
}

async fn get(server: &Server, key: Option<&str>) -> Result {
    let document = server.get(PATH).await?;
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

fn print_json(value: &Value) -> Result {
    screen::print_raw(format!("{}\n", pretty(value)?).as_bytes())
}

/// Values that a command sets: whole keys, and parts of keys.
#[derive(Default)]
struct Wanted {
    document: Map<String, Value>,
    parts: Parts,
}

impl Wanted {
    fn add(&mut self, key: String, value: Value) -> Result {
        if let Some((whole, names)) = part::find_place(&key) {
            return self.parts.add(whole, &names, value);
        }
        match self.document.insert(key.clone(), value) {
            None => Ok(()),
            Some(_) => Err(Failure::Usage(format!("{key} is set twice"))),
        }
    }

    async fn save(self, server: &Server, how: &How) -> Result {
        let Self {
            mut document,
            parts,
        } = self;
        if let Some(key) = parts.keys().find(|key| document.contains_key(*key)) {
            return Err(Failure::Usage(format!(
                "{key} is set as a whole and in parts; set one or the other"
            )));
        }
        let mut body = json!({});
        if !parts.is_empty() {
            // Compared with what the parts were merged into: a change meanwhile is not overwritten.
            let (present, generation) = part::read_document(server).await?;
            document.append(&mut parts.merge_into(&present)?);
            body["if_generation"] = json!(generation);
        }
        let is_planned = how.dry_run || document.contains_key(mode_switch::KEY);
        body["config"] = json!(Value::Object(document).to_string());
        match is_planned {
            true => change(server, PATH, body, how).await,
            false => report(server, &server.post(PATH, &body).await?, how.dry_run),
        }
    }
}

/// Makes a change that may be one of the authentication mode, or reports what it would do.
async fn change(server: &Server, path: &str, body: Value, how: &How) -> Result {
    let plan = how.consent.plan(server, path, &body).await?;
    if how.dry_run {
        return report(server, &plan, true);
    }
    let answer = how.consent.make(server, path, body, &plan).await?;
    report(server, &answer, false)?;
    follow_purge(server, &answer).await
}

/// The containers that a change recreates, with the first of their users.
fn describe_recreated(answer: &Value) -> String {
    let count = number(answer, "restarts");
    let users = cleaned(answer, "restarted_users");
    match users.is_empty() {
        true => counted(count, "container"),
        false => format!("{} ({users})", counted(count, "container")),
    }
}

/// Shows what a change does, or would do.
///
/// # Errors
/// An output that cannot be written.
pub(super) fn report(server: &Server, answer: &Value, dry_run: bool) -> Result {
    let changed = cleaned(answer, "changed");
    let containers = describe_recreated(answer);
    let text = match (changed.is_empty(), dry_run) {
        (true, _) => "no changes\n".to_owned(),
        (false, true) => match &answer["purge"] {
            Value::Null => format!("would change: {changed}\nwould recreate: {containers}\n"),
            purge => format!("would change: {changed}\n{}", describe_purge(purge)),
        },
        (false, false) => {
            let effect = match &answer["purge"] {
                Value::Null => format!("recreating: {containers}"),
                purge => format!(
                    "removing: {}",
                    counted(number(purge, "containers"), "container")
                ),
            };
            let revision = cleaned(answer, "generation");
            format!("changed: {changed}\n{effect}\nrevision: {revision}\n")
        }
    };
    screen::print(&text)?;
    if let Some(task) = answer["task_id"].as_str().map(clean) {
        let before = number(answer, "generation").saturating_sub(1);
        screen::note(&format!(
            "agents get it in steps: `{0} rollout status {task} --watch` follows them, `{0} config rollback {before}` takes it back",
            server.command
        ));
    }
    note_warnings(answer);
    Ok(())
}

/// Shows the warnings of an answer.
pub(super) fn note_warnings(answer: &Value) {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    for warning in warnings.filter_map(Value::as_str) {
        screen::note(&format!("warning: {}", clean(warning)));
    }
}

async fn history(server: &Server, args: ListArgs) -> Result {
    let pages = Pages::new(server, &CONFIG_HISTORY, &args.search);
    let is_table = matches!(args.output.format, Format::Table | Format::Wide);
    let adapt = |revision: &mut Value| {
        if is_table {
            revision["changes"] = brief(&revision["changes"]).into();
        }
    };
    pages.print(args.output, adapt).await
}

/// `key: old → new` of each change; long values are cut here and complete in JSON.
fn brief(changes: &Value) -> String {
    const LONGEST: usize = 40;
    let short = |value: &Value| {
        let text = match value {
            Value::Null => "default".to_owned(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    };
    let changes = changes.as_array().into_iter().flatten().map(|change| {
        let (old, new) = (short(&change["old"]), short(&change["new"]));
        format!("{}: {old} → {new}", text(change, "key"))
    });
    changes.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked_before_a_server_is_asked() {
        assert_eq!(known("image.tag").unwrap(), "image.tag");
        let guess = known("image.tga").unwrap_err();
        assert!(guess.contains("image.tag"), "{guess}");
        assert_eq!(known_place("agent.model").unwrap(), "agent.model");
        assert!(known_place("image.tag.x").is_err());
    }

    #[test]
    fn changes_are_shown_in_brief() {
        let changes = json!([{"key": "a.b", "old": null, "new": "x".repeat(50)}, {"key": "c", "old": 1, "new": false}]);
        let expected = format!("a.b: default → {}…, c: 1 → false", "x".repeat(40));
        assert_eq!(brief(&changes), expected);
    }
}
