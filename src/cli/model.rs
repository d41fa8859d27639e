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
        after_help = "Without --key, the stored key is kept if provider and address are unchanged. Otherwise it is removed, and a terminal prompts for the new one.\n\nExamples:\n  agentyard model set openai --model gpt-5.4\n  agentyard model set compatible --address http://10.0.0.5:8000/v1 --model qwen3 --key - < key.txt\n  agentyard model set ollama --address http://10.0.0.5:11434/v1 --model qwen3:8b --dry-run"
    )]
    Set {
        #[command(flatten)]
        choice: ChoiceArgs,
        /// Preview without saving
        #[arg(long)]
        dry_run: bool,
    },
    /// Test a model with a request for one token; exits 1 if it does not answer
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
    /// Model, as the provider names it
    #[arg(long, value_name = "MODEL")]
    model: String,
    #[command(flatten)]
    more: MoreArgs,
}

/// A model to test.
#[derive(Debug, Args)]
pub struct TryArgs {
    /// Provider [default: provider of the model in use]
    #[arg(value_name = "PROVIDER", requires = "model")]
    provider: Option<String>,
    /// Model, as the provider names it [default: the model in use]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    #[command(flatten)]
    more: MoreArgs,
}

/// Where a model is, and what it asks for.
#[derive(Debug, Args)]
pub struct MoreArgs {
    /// Address of the provider [default: the stored address if the provider is unchanged, else the provider's usual one]
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// API key of the provider: `-` prompts for it, or reads it from standard input
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

impl Hidden {
    /// Returns true for `-`, which names standard input.
    pub fn is_stdin(&self) -> bool {
        self.0.expose_secret() == "-"
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
            report(server, &server.post(PATH, &body).await?, dry_run)?;
            match dry_run {
                true => Ok(()),
                false => screen::print(&describe_use(&server.get(PATH).await?)),
            }
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
        text += &format!("key: {}\n", describe_key(current));
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

/// Says which model agents use, and whether with a key.
fn describe_use(current: &Value) -> String {
    let of = |name: &str| cleaned(current, name);
    format!(
        "agents use {} of {} at {}; key: {}\n",
        of("model"),
        of("provider"),
        of("address"),
        describe_key(current)
    )
}

fn describe_key(current: &Value) -> &'static str {
    match current["key_set"] == true {
        true => "set",
        false => "not set",
    }
}

async fn try_model(server: &Server, args: TryArgs) -> Result {
    let current = server.get(PATH).await?;
    let stored = |key: &str| current[key].as_str().map(str::to_owned);
    let missing = || {
        let why = "no provider was chosen for the model in use; name PROVIDER and --model";
        Failure::Usage(why.to_owned())
    };
    let provider = args.provider.or_else(|| stored("provider"));
    let provider = provider.ok_or_else(missing)?;
    let model = args.model.or_else(|| stored("model")).ok_or_else(missing)?;
    let body = body(&current, &provider, &model, args.more).await?;
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
    let address = more.address.or_else(|| stored_address(current, provider));
    if let Some(address) = &address {
        body["address"] = json!(address);
    }
    let is_terminal = std::io::stdin().is_terminal();
    let need = find_need(current, provider, address.as_deref());
    let is_wanted = match &more.key {
        Some(key) if !key.is_stdin() => {
            let why = "--key takes only `-`, because other users of this machine can see arguments: \
                       it prompts for the key, or reads it from standard input";
            return Err(Failure::Usage(why.to_owned()));
        }
        Some(_) => true,
        None if need == Need::Required && !is_terminal => {
            let why = format!("{provider} needs a key; `--key -` reads it from standard input");
            return Err(Failure::Usage(why));
        }
        None => need != Need::None && is_terminal,
    };
    if is_wanted {
        let label = match need {
            Need::Optional => "key, empty for none",
            Need::None | Need::Required => "key",
        };
        let typed = tokio::task::spawn_blocking(move || read_hidden(label)).await;
        let typed = typed.map_err(failed)?;
        let typed =
            typed.map_err(|error| Failure::Failed(format!("the key cannot be read: {error}")))?;
        body["key"] = json!(typed.expose_secret());
    }
    Ok(body)
}

/// The stored address, if it is that of this provider.
fn stored_address(current: &Value, provider: &str) -> Option<String> {
    let address = current["address"].as_str();
    let address = address.filter(|_| current["provider"] == provider);
    address.map(str::to_owned)
}

/// Need of a key that is given now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The provider takes none, or the stored choice is for this address.
    None,
    /// The provider may want one.
    Optional,
    /// The provider wants one.
    Required,
}

fn find_need(current: &Value, provider: &str, address: Option<&str>) -> Need {
    let mut listed = current["providers"].as_array().into_iter().flatten();
    let Some(listed) = listed.find(|one| one["id"] == provider) else {
        return Need::None;
    };
    let address = address.or(listed["address"].as_str());
    let is_stored = current["provider"] == provider && current["address"].as_str() == address;
    match listed["key"].as_str() {
        Some("required") if !is_stored || current["key_set"] != true => Need::Required,
        Some("optional") if !is_stored => Need::Optional,
        _ => Need::None,
    }
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
            ("openai", None, Need::None),
            ("openai", Some("https://a/v1"), Need::None),
            ("openai", Some("https://b/v1"), Need::Required),
            ("ollama", Some("https://b/v1"), Need::Optional),
            ("unknown", None, Need::None),
        ] {
            let need = find_need(&current, provider, address);
            assert_eq!(need, expected, "{provider} {address:?}");
        }
        let mut none = current;
        none["key_set"] = json!(false);
        assert_eq!(find_need(&none, "openai", None), Need::Required);
        (none["provider"], none["address"]) = (json!("ollama"), json!("http://c/v1"));
        assert_eq!(find_need(&none, "ollama", Some("http://c/v1")), Need::None);
    }

    #[test]
    fn stored_address_stays_with_its_provider() {
        let current = json!({"provider": "ollama", "address": "http://c/v1", "model": "m-1", "key_set": true});
        let stored = stored_address(&current, "ollama");
        assert_eq!(stored.as_deref(), Some("http://c/v1"));
        assert_eq!(stored_address(&current, "openai"), None);
        assert_eq!(
            describe_use(&current),
            "agents use m-1 of ollama at http://c/v1; key: set\n"
        );
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
