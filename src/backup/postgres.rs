//! The tools of a PostgreSQL server. The address of the server goes to them in their environment: a list of processes shows the
//! arguments of all of them to every user.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;

use percent_encoding::percent_decode_str;
use tokio::process::Command;
use url::Url;

/// Most seconds that a tool waits for its connection; libpq has no limit of its own.
const CONNECT_SECONDS: &str = "10";
/// Most bytes of a complaint that are told.
const LONGEST_COMPLAINT: usize = 2000;

/// A tool of the database server failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not installed.
    #[error(
        "{0} is not installed; install the client programs of PostgreSQL in the version of the server (Debian: apt-get install postgresql-client)"
    )]
    Missing(&'static str),
    /// It could not be started.
    #[error("{0} cannot be started")]
    NotStarted(&'static str, #[source] std::io::Error),
    /// It has ended with an error.
    #[error("{tool} failed: {complaint}")]
    Failed {
        /// Which.
        tool: &'static str,
        /// Its output.
        complaint: String,
    },
}

/// Dumps a database into a new file.
///
/// # Errors
/// When the tool is missing or fails.
pub async fn dump(url: &str, to: &Path) -> Result<(), ToolError> {
    let mut command = tool("pg_dump", Some(url));
    command
        .args([
            "--format=custom",
            "--no-owner",
            "--no-privileges",
            "--no-password",
            "--file",
        ])
        .arg(to);
    run("pg_dump", command).await
}

/// Restores a dump into an empty database, in one transaction.
///
/// # Errors
/// When the tool is missing or fails; then the database is as it was.
pub async fn restore(url: &str, from: &Path) -> Result<(), ToolError> {
    let mut command = tool("pg_restore", Some(url));
    command
        .args([
            "--no-owner",
            "--no-privileges",
            "--no-password",
            "--exit-on-error",
            "--single-transaction",
            "--dbname",
        ])
        .arg(database_of(url))
        .arg(from);
    run("pg_restore", command).await
}

/// Reads the list of what is in a dump.
///
/// # Errors
/// When the tool is missing, or it is no dump.
pub async fn check(dump: &Path) -> Result<(), ToolError> {
    let mut command = tool("pg_restore", None);
    command.arg("--list").arg(dump);
    run("pg_restore", command).await
}

fn tool(name: &'static str, url: Option<&str>) -> Command {
    let mut command = Command::new(name);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(url) = url {
        command
            .env("PGCONNECT_TIMEOUT", CONNECT_SECONDS)
            .envs(environment(url));
    }
    command
}

async fn run(name: &'static str, mut command: Command) -> Result<(), ToolError> {
    let output = command.output().await.map_err(|error| match error.kind() {
        ErrorKind::NotFound => ToolError::Missing(name),
        _ => ToolError::NotStarted(name, error),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = output
        .stderr
        .get(..LONGEST_COMPLAINT)
        .unwrap_or(&output.stderr);
    let said = String::from_utf8_lossy(said);
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Err(ToolError::Failed {
        tool: name,
        complaint: match lines.is_empty() {
            true => output.status.to_string(),
            false => lines.join("; "),
        },
    })
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn database_of(url: &str) -> String {
    let variables = environment(url);
    let given = variables.iter().find(|(name, _)| *name == "PGDATABASE");
    let user = variables.iter().find(|(name, _)| *name == "PGUSER");
    given
        .or(user)
        .map(|(_, value)| value.clone())
        .unwrap_or_default()
}

/// The address of a server as variables of PostgreSQL's programs.
fn environment(url: &str) -> Vec<(&'static str, String)> {
    let Ok(url) = Url::parse(url) else {
        return Vec::new();
    };
    let mut variables: Vec<(&'static str, String)> = Vec::new();
    let mut add = |name, value: String| {
        if !value.is_empty() {
            variables.push((name, value));
        }
    };
    let host = url.host_str().unwrap_or_default();
    add(
        "PGHOST",
        decoded(host.trim_start_matches('[').trim_end_matches(']')),
    );
    add(
        "PGPORT",
        url.port().map(|port| port.to_string()).unwrap_or_default(),
    );
    add("PGUSER", decoded(url.username()));
    add(
        "PGPASSWORD",
        url.password().map(decoded).unwrap_or_default(),
    );
    add("PGDATABASE", decoded(url.path().trim_start_matches('/')));
    for (name, value) in url.query_pairs() {
        let variable = match &*name {
            "host" | "hostaddr" => "PGHOST",
            "port" => "PGPORT",
            "user" => "PGUSER",
            "password" => "PGPASSWORD",
            "dbname" => "PGDATABASE",
            "sslmode" | "ssl-mode" => "PGSSLMODE",
            "sslrootcert" | "ssl-root-cert" | "ssl-ca" => "PGSSLROOTCERT",
            "sslcert" | "ssl-cert" => "PGSSLCERT",
            "sslkey" | "ssl-key" => "PGSSLKEY",
            "options" => "PGOPTIONS",
            "connect_timeout" => "PGCONNECT_TIMEOUT",
            _ => continue,
        };
        add(variable, value.into_owned());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_becomes_variables() {
        let all =
            environment("postgres://app:p%40ss@[::1]:5433/yard%201?sslmode=require&host=/run/pg");
        let value = |name| {
            all.iter()
                .rev()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| &**value)
        };
        assert_eq!(value("PGUSER"), Some("app"));
        assert_eq!(value("PGPASSWORD"), Some("p@ss"));
        assert_eq!(value("PGHOST"), Some("/run/pg"));
        assert_eq!(value("PGPORT"), Some("5433"));
        assert_eq!(value("PGSSLMODE"), Some("require"));
        assert_eq!(database_of("postgres://app@h/yard"), "yard");
        assert_eq!(database_of("postgres://app@h"), "app");
        assert_eq!(environment("postgres://h/d").len(), 2);
        let own = environment("postgres://h/d?connect_timeout=3");
        assert!(own.contains(&("PGCONNECT_TIMEOUT", "3".to_owned())));
    }

    #[tokio::test]
    async fn missing_tool_names_the_package() {
        let error = run("pg_dump", Command::new("/nowhere/pg_dump"))
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("apt-get install postgresql-client"),
            "{error}"
        );
    }
}
