//! `agentyard model`.

use std::io::IsTerminal;

use clap::{Args, Subcommand};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::config::{note_warnings, read_hidden, report};
use super::output::cell::cleaned;
use super::output::screen;
use super::server::Server;
use super::{Failure, Result, failed};

const PATH: &str = "/api/admin/agent/model";
const TRY: &str = "/api/admin/agent/model/try";

/// The model that all agents use by default.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Show the model that agents use, and the providers to choose from
    #[command(after_help = "Examples:\n  agentyard model show")]
    Show,
    /// Choose the model that agents use
    #[command(
        after_help = "Without --key the stored key is kept if provider and address are unchanged; else it is prompted for.\n\nExamples:\n  agentyard model set openai --model gpt-5.4\n  agentyard model set compatible --address http://10.0.0.5:8000/v1 --model qwen3 --key - < key.txt\n  agentyard model set ollama --address http://10.0.0.5:11434/v1 --model qwen3:8b --dry-run"
    )]
    Set {
        #[command(flatten)]
        choice: ChoiceArgs,
        /// Preview without saving
        #[arg(long)]
        dry_run: bool,
    },
    /// Test a model: the server asks it for one token; exits 1 if it does not answer
    #[command(
        after_help = "Without PROVIDER the model in use is tested.\n\nExamples:\n  agentyard model try\n  agentyard model try openai --model gpt-5.4 --key - < key.txt"
    )]
    Try(TryArgs),
}

/// A model.
#[derive(Debug, Args)]
pub struct ChoiceArgs {
    /// Provider, as listed by `agentyard model show`
    #[arg(value_name = "PROVIDER")]
    provider: String,
    /// The provider's name of the model
    #[arg(long, value_name = "MODEL")]
    model: String,
    #[command(flatten)]
    more: MoreArgs,
}

/// A model to test.
#[derive(Debug, Args)]
pub struct TryArgs {
    /// Provider; default: that of the model in use
    #[arg(value_name = "PROVIDER", requires = "model")]
    provider: Option<String>,
    /// The provider's name of the model; default: that of the model in use
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    #[command(flatten)]
    more: MoreArgs,
}

/// Where a model is, and what it asks for.
#[derive(Debug, Args)]
pub struct MoreArgs {
    /// Address of the provider [default: its usual one]
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// `-` prompts for the key, or reads it from standard input
    #[arg(long, value_name = "-", allow_hyphen_values = true)]
    key: Option<Hidden>,
}

/// The value given for a key, which may be one by mistake: it cannot be printed.
#[derive(Clone)]
pub struct Hidden(SecretString);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden")
    }
}

impl From<&str> for Hidden {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// Runs a command on the model of all agents.
///
/// # Errors
/// No server answers, it refuses, or a test fails.
pub async fn model(server: &Server, command: ModelCommand) -> Result {
    match command {
        ModelCommand::Show => show(&server.get(PATH).await?),
        ModelCommand::Set { choice, dry_run } => {
            let current = server.get(PATH).await?;
            let ChoiceArgs {
                provider,
                model,
                more,
            } = choice;
            let mut body = body(&current, &provider, &model, more).await?;
            body["dry_run"] = json!(dry_run);
            report(server, &server.post(PATH, &body).await?, dry_run)
        }
        ModelCommand::Try(args) => try_model(server, args).await,
    }
}

fn show(current: &Value) -> Result {
    let mut text = match current["configured"] == true {
        false => format!("{}\n", cleaned(current, "message")),
        true => String::new(),
    };
    for (name, key) in [
        ("provider", "provider"),
        ("address", "address"),
        ("model", "model"),
    ] {
        if !current[key].is_null() {
            text += &format!("{name}: {}\n", cleaned(current, key));
        }
    }
    if !current["model"].is_null() {
        let key = if current["key_set"] == true {
            "set"
        } else {
            "not set"
        };
        text += &format!("key: {key}\n");
    }
    text += "providers:\n";
    for provider in current["providers"].as_array().into_iter().flatten() {
        let address = match provider["address"].is_null() {
            true => "--address URL".to_owned(),
            false => cleaned(provider, "address"),
        };
        text += &format!(
            "  {} ({}): {address}, key {}\n",
            cleaned(provider, "id"),
            cleaned(provider, "title"),
            cleaned(provider, "key")
        );
    }
    screen::print(&text)
}

async fn try_model(server: &Server, args: TryArgs) -> Result {
    let current = server.get(PATH).await?;
    let stored = |key: &str| current[key].as_str().map(str::to_owned);
    let missing = || {
        let why = "no provider was chosen for the model in use; name PROVIDER and --model";
        Failure::Usage(why.to_owned())
    };
    let is_other = args.provider.is_some();
    let provider = args.provider.or_else(|| stored("provider"));
    let provider = provider.ok_or_else(missing)?;
    let model = args.model.or_else(|| stored("model")).ok_or_else(missing)?;
    let mut more = args.more;
    if !is_other && more.address.is_none() {
        more.address = stored("address");
    }
    let body = body(&current, &provider, &model, more).await?;
    let answer = server.post(TRY, &body).await?;
    let message = cleaned(&answer, "message");
    let is_ok = answer["ok"] == true;
    let (reason, remedy) = (cleaned(&answer, "reason"), cleaned(&answer, "remedy"));
    screen::print(&match is_ok {
        true => format!("ok: {message}\n"),
        false => format!("failed ({reason}): {message}\n{remedy}\n"),
    })?;
    note_warnings(&answer);
    match is_ok {
        true => Ok(()),
        false => Err(Failure::Reported),
    }
}

/// The form of a choice, with a key if one is given or needed.
async fn body(current: &Value, provider: &str, model: &str, more: MoreArgs) -> Result<Value> {
    let mut body = json!({ "provider": provider, "model": model });
    if let Some(address) = &more.address {
        body["address"] = json!(address);
    }
    let is_wanted = match &more.key {
        Some(Hidden(text)) if text.expose_secret() != "-" => {
            let why = "--key takes only `-`, because other users of this machine can see arguments: \
                       it prompts for the key, or reads it from standard input";
            return Err(Failure::Usage(why.to_owned()));
        }
        Some(_) => true,
        None => needs_key(current, provider, more.address.as_deref()),
    };
    if more.key.is_none() && is_wanted && !std::io::stdin().is_terminal() {
        let why = format!("{provider} needs a key; `--key -` reads it from standard input");
        return Err(Failure::Usage(why));
    }
    if is_wanted {
        let typed = tokio::task::spawn_blocking(|| read_hidden("key")).await;
        let typed = typed.map_err(failed)?;
        let typed =
            typed.map_err(|error| Failure::Failed(format!("the key cannot be read: {error}")))?;
        body["key"] = json!(typed.expose_secret());
    }
    Ok(body)
}

/// Returns true when a provider takes a key that the server has not for this address.
fn needs_key(current: &Value, provider: &str, address: Option<&str>) -> bool {
    let mut listed = current["providers"].as_array().into_iter().flatten();
    let Some(listed) = listed.find(|one| one["id"] == provider) else {
        return false;
    };
    let address = address.or(listed["address"].as_str());
    let is_stored = current["key_set"] == true
        && current["provider"] == provider
        && current["address"].as_str() == address;
    listed["key"] == "required" && !is_stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_needed_unless_it_is_stored_for_the_address() {
        let current = json!({
            "providers": [
                {"id": "openai", "address": "https://a/v1", "key": "required"},
                {"id": "ollama", "address": null, "key": "optional"}
            ],
            "provider": "openai", "address": "https://a/v1", "key_set": true,
        });
        for (provider, address, expected) in [
            ("openai", None, false),
            ("openai", Some("https://a/v1"), false),
            ("openai", Some("https://b/v1"), true),
            ("ollama", Some("https://b/v1"), false),
            ("unknown", None, false),
        ] {
            let needed = needs_key(&current, provider, address);
            assert_eq!(needed, expected, "{provider} {address:?}");
        }
        let mut none = current;
        none["key_set"] = json!(false);
        assert!(needs_key(&none, "openai", None));
    }

    #[tokio::test]
    async fn key_in_the_arguments_is_refused_and_not_shown() {
        let more = MoreArgs {
            address: None,
            key: Some(Hidden::from("sk-hunter2")),
        };
        assert!(!format!("{more:?}").contains("hunter2"));
        let refused = body(&json!({}), "openai", "m", more).await.unwrap_err();
        let text = refused.to_string();
        assert!(
            matches!(refused, Failure::Usage(_)) && !text.contains("hunter2"),
            "{text}"
        );
    }
}
