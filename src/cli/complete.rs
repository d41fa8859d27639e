//! Completion of what the running server has: names of objects, groups, images, and keys of the configuration.
//!
//! A value is completed by what its help calls it (`USER`, `KIND/NAME`), so a new command gets this by itself. One request with a
//! prefix, a second at most, and no word when there is no server.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::CompleteEnv;
use schema::config::keys;
use serde_json::Value;
use tokio::time::timeout;

use super::Cli;
use super::admin::escaped;
use super::context::{self, ContextArgs};
use super::kinds::{self, KindInfo, LOCAL_IMAGES, Paging};
use super::output::cell::at;
use crate::settings::CommonArgs;

/// Variable by which a shell asks for completions.
pub(super) const VARIABLE: &str = "AGENTYARD_COMPLETE";
/// Longest time that a shell waits.
const LIMIT: Duration = Duration::from_secs(1);
/// Most candidates.
const MOST: usize = 200;

/// Answers a shell that asks for completions, and ends the process; returns if none asks.
pub fn answer_shell() {
    CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .bin("agentyard")
        .completer("agentyard")
        .complete();
}

/// The command line, with completers.
fn command() -> Command {
    with_completers(Cli::command(), "")
}

/// Adds them to a command; `group` is the one that it belongs to, as in `group delete`.
fn with_completers(command: Command, group: &str) -> Command {
    let own = command.get_name().to_owned();
    let command = command.mut_args(|arg| with_completer(arg, group));
    command.mut_subcommands(|command| with_completers(command, &own))
}

fn with_completer(arg: Arg, group: &str) -> Arg {
    let name = arg.get_value_names().and_then(|names| names.first());
    let name = name.map(|name| name.as_str());
    let complete: fn(&str) -> Vec<String> = match name {
        None | Some("NAME")
            if matches!(group, "group" | "skill" | "repo" | "user" | "superadmin") =>
        {
            match group {
                _ if arg.get_id() != "name" && arg.get_id() != "names" => return arg,
                "group" => |text| names_of("group", text),
                "skill" => |text| names_of("skill", text),
                "repo" => |text| names_of("skill-repository", text),
                "superadmin" => |text| names_of("superadmin", text),
                _ => |text| names_of("user", text),
            }
        }
        Some("KIND[,KIND|/NAME]") => |text| kinds_and_names(text, true),
        Some("KIND/NAME") => |text| kinds_and_names(text, false),
        Some("container/NAME") => |text| match text.strip_prefix("container/") {
            Some(prefix) => prefixed("container/", names_of("container", prefix)),
            None => vec!["container/".to_owned()],
        },
        Some("NAME") if arg.get_id() == "context" => |_| context::names(),
        Some("NAME") if group == "api-token" && arg.get_id() == "names" => {
            |text| names_of("api-token", text)
        }
        Some("NAME") if arg.get_id() == "names" => |text| match listed_kind() {
            Some(kind) => names(kind, text),
            None => Vec::new(),
        },
        Some("USER" | "USER…") => |text| names_of("user", text),
        Some("GROUP") => |text| names_of("group", text),
        Some("SKILL") => |text| names_of("skill", text),
        Some("REPOSITORY") => |text| names_of("skill-repository", text),
        Some("IMAGE") => images,
        Some("KEY") => |text| keys_of(text, ""),
        Some("KEY=VALUE") => |text| keys_of(text, "="),
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(move |current: &OsStr| {
        let typed = current.to_str().unwrap_or_default();
        let found = complete(typed).into_iter();
        let fitting = found.filter(|word| word.starts_with(typed));
        fitting.take(MOST).map(CompletionCandidate::new).collect()
    }))
}

/// Kinds, or names once there is a kind: `container/al`.
fn kinds_and_names(text: &str, alone: bool) -> Vec<String> {
    match text.split_once('/') {
        Some((kind, prefix)) => prefixed(&format!("{kind}/"), names_of(kind, prefix)),
        None if alone => kinds::all().map(|kind| kind.typed().to_owned()).collect(),
        None => {
            let objects = kinds::all().filter(|kind| kind.is_object());
            objects.map(|kind| format!("{}/", kind.singular)).collect()
        }
    }
}

fn prefixed(prefix: &str, words: Vec<String>) -> Vec<String> {
    let words = words.into_iter();
    words.map(|word| format!("{prefix}{word}")).collect()
}

/// The kind that stands before the word that is completed: `get KIND NAME…`.
fn listed_kind() -> Option<&'static KindInfo> {
    let words: Vec<String> = words().filter_map(|word| word.into_string().ok()).collect();
    let at = words.iter().position(|word| word == "get")?;
    words
        .get(at + 1..)?
        .iter()
        .find_map(|word| kinds::named(word))
}

/// The words of the line that is completed.
fn words() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip_while(|word| word != "--").skip(1)
}

/// Keys of the configuration, which this release knows itself.
fn keys_of(text: &str, end: &str) -> Vec<String> {
    let fitting = keys::KEYS.keys().filter(|key| key.starts_with(text));
    fitting.map(|key| format!("{key}{end}")).collect()
}

fn names_of(kind: &str, prefix: &str) -> Vec<String> {
    kinds::named(kind).map_or_else(Vec::new, |kind| names(kind, prefix))
}

/// Names of objects of one kind.
fn names(kind: &'static KindInfo, prefix: &str) -> Vec<String> {
    let listed = list(kind, prefix);
    listed.iter().map(|item| kind.name(item)).collect()
}

fn images(prefix: &str) -> Vec<String> {
    let listed = list(&LOCAL_IMAGES, prefix);
    let tags = listed
        .iter()
        .filter_map(|item| at(item, "repo_tags").as_array());
    let tags = tags.flatten().filter_map(Value::as_str);
    tags.map(str::to_owned).collect()
}

/// Asks the server once.
fn list(kind: &KindInfo, prefix: &str) -> Vec<Value> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return Vec::new();
    };
    let asking = async {
        let (common, context) = given();
        let server = context::choose(&common, &context).ok()?;
        let sign = if kind.path.contains('?') { '&' } else { '?' };
        let query = match kind.paging {
            Paging::Searched => format!("{sign}page_size={MOST}&search={}", escaped(prefix)),
            Paging::Pages => format!("{sign}page_size={MOST}"),
            Paging::Whole => String::new(),
        };
        let answer = server.get(&format!("{}{query}", kind.path)).await.ok()?;
        Some(at(&answer, kind.list).as_array()?.clone())
    };
    let found = runtime.block_on(async { timeout(LIMIT, asking).await });
    runtime.shutdown_background();
    found.ok().flatten().unwrap_or_default()
}

/// The settings by which the server is found: flags on the line that is completed, else the environment.
fn given() -> (CommonArgs, ContextArgs) {
    let words: Vec<OsString> = words().collect();
    let setting = |flag: &str, variable: &str| -> Option<PathBuf> {
        let typed = words.iter().enumerate().find_map(|(index, word)| {
            let text = word.to_str()?;
            match text.strip_prefix(flag)? {
                "" => words.get(index + 1).map(PathBuf::from),
                rest => rest.strip_prefix('=').map(PathBuf::from),
            }
        });
        typed.or_else(|| std::env::var_os(variable).map(PathBuf::from))
    };
    let context = setting("--context", "AGENTYARD_CONTEXT");
    let context = ContextArgs {
        context: context.map(|name| name.to_string_lossy().into_owned()),
    };
    let common = CommonArgs {
        config: setting("--config", "AGENTYARD_CONFIG"),
        data_dir: setting("--data-dir", "AGENTYARD_DATA_DIR"),
        admin_socket: setting("--admin-socket", "AGENTYARD_ADMIN_SOCKET"),
        ..CommonArgs::default()
    };
    (common, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_keys_need_no_server() {
        let kinds = kinds_and_names("", true);
        assert!(kinds.iter().any(|kind| kind == "containers"), "{kinds:?}");
        let objects = kinds_and_names("c", false);
        assert!(objects.iter().any(|kind| kind == "container/"));
        assert!(!objects.iter().any(|kind| kind == "task/"));
        let keys = keys_of("web.auth", "=");
        assert_eq!(keys, ["web.auth_mode="]);
        assert!(names_of("nothing", "").is_empty());
    }

    #[test]
    fn values_are_completed_by_their_names() {
        let of = |name: &'static str| {
            let arg = with_completer(Arg::new("x").value_name(name), "");
            arg.get::<ArgValueCompleter>().is_some()
        };
        for name in [
            "USER",
            "GROUP",
            "IMAGE",
            "KEY",
            "KEY=VALUE",
            "KIND/NAME",
            "SKILL",
        ] {
            assert!(of(name), "{name}");
        }
        assert!(!of("FILE"));
        let named = with_completer(Arg::new("name"), "group");
        assert!(named.get::<ArgValueCompleter>().is_some());
        command().debug_assert();
    }
}
