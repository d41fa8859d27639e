//! `agentyard adapter`.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use schema::adapter::Adapter;
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::output::cell::{cleaned, counted, number};
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::{Result, failed};

const RULES: &str = "/api/admin/migration-rules";
/// Adapter packages.
#[derive(Debug, Subcommand)]
pub enum AdapterCommand {
    /// Show the active and the retained adapters
    #[command(after_help = "Examples:\n  agentyard adapter show")]
    Show,
    /// Activate a package; it stays active when the server restarts
    #[command(
        after_help = "Affected containers are recreated in batches (container.max_unavailable).\n\nExamples:\n  agentyard adapter upload picoclaw-1.4.zip --dry-run\n  agentyard adapter upload picoclaw-1.4.zip\n  agentyard adapter upload ./my-adapter"
    )]
    Upload(UploadArgs),
    /// Fetch the package from adapter.source_url and activate it
    #[command(
        after_help = "Affected containers are recreated in batches (container.max_unavailable).\n\nExamples:\n  agentyard adapter refresh"
    )]
    Refresh,
    /// Reactivate the previous adapter
    #[command(
        after_help = "Affected containers are recreated in batches (container.max_unavailable).\n\nExamples:\n  agentyard adapter rollback"
    )]
    Rollback,
}

/// Which package.
#[derive(Debug, Args)]
pub struct UploadArgs {
    /// ZIP file, or folder to pack
    #[arg(value_name = "ZIP|FOLDER")]
    package: PathBuf,
    /// Check the package and show what it would change, without activating it
    #[arg(long)]
    dry_run: bool,
}

/// Runs a command on adapter packages.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn adapter(server: &Server, command: AdapterCommand) -> Result {
    match command {
        AdapterCommand::Show => show(server).await,
        AdapterCommand::Upload(args) => upload(server, &args).await,
        AdapterCommand::Refresh => post(server, "refresh").await,
        AdapterCommand::Rollback => post(server, "rollback").await,
    }
}

async fn show(server: &Server) -> Result {
    let answer = server.get(RULES).await?;
    let kept = server.get("/api/admin/adapters").await?;
    let rules = &answer["rules"];
    let mut text = format!(
        "agent:    {}\nversion:  {}\nsource:   {}\ndigest:   {}\nsince:    {}\n",
        cleaned(rules, "agent"),
        cleaned(rules, "adapter_version"),
        cleaned(rules, "source"),
        cleaned(rules, "digest"),
        cleaned(rules, "updated_at"),
    );
    for version in rules["versions"].as_array().into_iter().flatten() {
        text.push_str(&format!(
            "declares: agent {} with configuration version {}\n",
            cleaned(version, "version"),
            cleaned(version, "config_version"),
        ));
    }
    for adapter in kept["adapters"].as_array().into_iter().flatten() {
        let role = match (&adapter["active"], &adapter["previous"]) {
            (Value::Bool(true), _) => "active",
            (_, Value::Bool(true)) => "previous",
            _ => "initial",
        };
        text.push_str(&format!(
            "retained: {} ({}), {role}\n",
            cleaned(adapter, "version"),
            cleaned(adapter, "source"),
        ));
    }
    screen::print(&text)
}

async fn post(server: &Server, what: &str) -> Result {
    let path = format!("{RULES}/{what}");
    let answer = server.post(&path, &json!({})).await?;
    screen::print(&format!("{}\n", cleaned(&answer, "message")))
}

async fn upload(server: &Server, args: &UploadArgs) -> Result {
    let path = args.package.clone();
    let read = tokio::task::spawn_blocking(move || read(&path)).await;
    let zip = read.map_err(failed)??;
    let part = Part::bytes(zip).file_name("adapter.zip");
    let mut form = Form::new();
    if args.dry_run {
        form = form.text("dry_run", "true");
    }
    let form = form.part("file", part);
    let request = server.request(Method::POST, &format!("{RULES}/upload"));
    let answer = server.json(request.multipart(form)).await?;
    screen::print(&format!("{}\n", cleaned(&answer, "message")))?;
    match args.dry_run {
        true => screen::print(&describe_preview(&answer)),
        false => Ok(()),
    }
}

/// Effects of a package for agents.
fn describe_preview(answer: &Value) -> String {
    let containers = counted(number(answer, "restarts"), "container");
    let users = cleaned(answer, "restarted_users");
    let users = match users.is_empty() {
        true => String::new(),
        false => format!(" ({users})"),
    };
    let changes = cleaned(answer, "changes");
    let mut text = format!("changes: {changes}\nwould recreate: {containers}{users}\n");
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    for warning in warnings.filter_map(Value::as_str) {
        text.push_str(&format!("warning: {}\n", clean(warning)));
    }
    text
}

/// The zip, or the folder as one. A folder is checked here already: what lies in it beside a package would be left
/// out in silence otherwise.
fn read(package: &Path) -> Result<Vec<u8>> {
    if !package.is_dir() {
        return std::fs::read(package)
            .map_err(|error| failed(format!("cannot read {}: {error}", package.display())));
    }
    let adapter = Adapter::from_folder(package).map_err(failed)?;
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in adapter.files() {
        zip.start_file(path, SimpleFileOptions::default())
            .map_err(failed)?;
        zip.write_all(text.as_bytes()).map_err(failed)?;
    }
    Ok(zip.finish().map_err(failed)?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preview_names_changes_and_users() {
        let answer = json!({
            "changes": "command", "restarts": 1, "restarted_users": ["alice"], "warnings": ["older"],
        });
        let expected = "changes: command\nwould recreate: 1 container (alice)\nwarning: older\n";
        assert_eq!(describe_preview(&answer), expected);
    }

    #[test]
    fn a_folder_is_packed_to_the_same_package() {
        let dir = tempfile::tempdir().unwrap();
        let echo = Adapter::builtin("echo").unwrap().unwrap();
        for (path, text) in echo.files() {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let zip = read(dir.path()).unwrap();
        assert_eq!(Adapter::from_zip(&zip).unwrap(), echo);
        std::fs::write(dir.path().join("notes.txt"), "x").unwrap();
        let refused = read(dir.path()).unwrap_err();
        assert!(refused.to_string().contains("notes.txt"), "{refused}");
        assert!(read(&dir.path().join("nowhere")).is_err());
    }
}
