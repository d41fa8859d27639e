//! `agentyard adapter`.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::{Args, Subcommand};
use http::Method;
use schema::adapter::Adapter;
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::output::cell::plain;
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::{Failure, admin};

const RULES: &str = "/api/admin/migration-rules";
/// A line between the parts of an upload that stands in no zip by chance.
const BOUNDARY: &str = "agentyard-7c1f0e5b9d2a4e6f8a3b";

/// The package that says how agents are run and configured.
#[derive(Debug, Subcommand)]
pub enum AdapterCommand {
    /// Show the adapter in effect, and those that are kept
    #[command(after_help = "Examples:\n  agentyard adapter show")]
    Show,
    /// Put a package into effect; it stays when the service is started again
    #[command(
        after_help = "Examples:\n  agentyard adapter upload picoclaw-1.4.zip\n  agentyard adapter upload ./my-adapter"
    )]
    Upload(UploadArgs),
    /// Ask the configured source for a newer package
    #[command(after_help = "Examples:\n  agentyard adapter refresh")]
    Refresh,
    /// Go back to the adapter that was in effect before
    #[command(after_help = "Examples:\n  agentyard adapter rollback")]
    Rollback,
}

/// Which package.
#[derive(Debug, Args)]
pub struct UploadArgs {
    /// A zip, or a folder, which is packed
    #[arg(value_name = "ZIP|FOLDER")]
    package: PathBuf,
}

/// Shows, uploads, refreshes or goes back.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn adapter(server: &Server, command: AdapterCommand) -> Result<(), Failure> {
    match command {
        AdapterCommand::Show => show(server).await,
        AdapterCommand::Upload(args) => upload(server, &args.package).await,
        AdapterCommand::Refresh => tell(server, "refresh").await,
        AdapterCommand::Rollback => tell(server, "rollback").await,
    }
}

fn field(of: &Value, name: &str) -> String {
    clean(&of.get(name).map(plain).unwrap_or_default())
}

async fn show(server: &Server) -> Result<(), Failure> {
    let answer = admin::get(&server.settings, RULES).await?;
    let kept = admin::get(&server.settings, "/api/admin/adapters").await?;
    let rules = &answer["rules"];
    let mut text = format!(
        "agent:    {}\nversion:  {}\nsource:   {}\ndigest:   {}\nsince:    {}\n",
        field(rules, "agent"),
        field(rules, "adapter_version"),
        field(rules, "source"),
        field(rules, "digest"),
        field(rules, "updated_at"),
    );
    for version in rules["versions"].as_array().into_iter().flatten() {
        text.push_str(&format!(
            "declares: agent {} with configuration version {}\n",
            field(version, "version"),
            field(version, "config_version"),
        ));
    }
    for adapter in kept["adapters"].as_array().into_iter().flatten() {
        let role = match (&adapter["active"], &adapter["previous"]) {
            (Value::Bool(true), _) => "in effect",
            (_, Value::Bool(true)) => "the one before",
            _ => "what the service was started with",
        };
        text.push_str(&format!(
            "kept:     {} ({}), {role}\n",
            field(adapter, "version"),
            field(adapter, "source"),
        ));
    }
    screen::print(&text)
}

async fn tell(server: &Server, what: &str) -> Result<(), Failure> {
    let path = format!("{RULES}/{what}");
    let answer = admin::json(&server.settings, Method::POST, &path, Some(&json!({}))).await?;
    screen::print(&format!("{}\n", field(&answer, "message")))
}

async fn upload(server: &Server, package: &Path) -> Result<(), Failure> {
    let wanted = package.to_owned();
    let read = tokio::task::spawn_blocking(move || read(&wanted)).await;
    let zip = read.map_err(|error| Failure::Failed(error.to_string()))??;
    let (status, text) = admin::upload(
        &server.settings,
        &format!("{RULES}/upload"),
        &format!("multipart/form-data; boundary={BOUNDARY}"),
        body(&zip),
    )
    .await?;
    let answer = admin::judge(status, &text).map_err(|failure| named(failure, &text))?;
    screen::print(&format!("{}\n", field(&answer, "message")))
}

/// The zip, or the folder as one. A folder is checked here already: what lies in it beside a package would be left
/// out in silence otherwise.
fn read(package: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::Failed(format!("{} cannot be read: {error}", package.display()))
    };
    if !package.is_dir() {
        return std::fs::read(package).map_err(|error| failed(&error));
    }
    let adapter =
        Adapter::from_folder(package).map_err(|invalid| Failure::Failed(invalid.to_string()))?;
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in adapter.files() {
        zip.start_file(path, SimpleFileOptions::default())
            .map_err(|error| failed(&error))?;
        zip.write_all(text.as_bytes())
            .map_err(|error| failed(&error))?;
    }
    let packed = zip.finish().map_err(|error| failed(&error))?;
    Ok(packed.into_inner())
}

fn body(zip: &[u8]) -> Bytes {
    let mut body = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"adapter.zip\"\r\n\
         Content-Type: application/zip\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(zip);
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    body.into()
}

/// What is wrong with the package, a line each.
fn named(failure: Failure, text: &str) -> Failure {
    let Failure::Failed(said) = failure else {
        return failure;
    };
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let problems = answer["problems"].as_array().into_iter().flatten();
    let lines: Vec<String> = problems
        .map(|problem| {
            let (file, pointer) = (field(problem, "file"), field(problem, "pointer"));
            let place = match pointer.as_str() {
                "" => file,
                pointer => format!("{file}#{pointer}"),
            };
            let told = format!("{place} {}", field(problem, "message"));
            format!("\n{}", told.trim_start())
        })
        .collect();
    if lines.is_empty() {
        return Failure::Failed(said);
    }
    Failure::Failed(format!("the package is not valid{}", lines.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_refused_package_is_told_with_files_and_places() {
        let text = r#"{"error":"no","problems":[{"file":"a.json","pointer":"/b","message":"is bad"},{"file":"hash","pointer":"","message":"is missing"}]}"#;
        let told = named(Failure::Failed("no".to_owned()), text).to_string();
        assert_eq!(
            told,
            "the package is not valid\na.json#/b is bad\nhash is missing"
        );
        let other = named(Failure::Failed("no".to_owned()), "no JSON");
        assert_eq!(other.to_string(), "no");
    }
}
