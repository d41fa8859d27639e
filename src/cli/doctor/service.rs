//! Checks of what the running server knows, and in part of what it uses.

use std::time::Duration;

use engine::EngineAddress;
use futures::join;
use reqwest::Method;
use schema::condition::Reason;
use schema::db::{Backend, Db};
use schema::error::OpenError;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::finding::Finding;
use crate::cli::output::cell::{at, text};
use crate::cli::server::Server;
use crate::cli::{Failure, Result};
use crate::settings::{Settings, SettingsError};

/// Longest time of an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Longest time of a check of the database's file.
const CHECK: Duration = Duration::from_secs(4);

/// Answers of the running server about itself.
pub(super) struct Service {
    /// `/api/admin/reconcile`.
    pub(super) overview: Value,
    /// `/readyz`.
    pub(super) ready: String,
    /// `/api/config`, secrets masked.
    pub(super) config: Value,
    /// `/api/admin/agent/model`.
    pub(super) model: Value,
    /// Details of `engine/local`.
    engine: Value,
}

impl Service {
    /// Asks the server.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) async fn read(server: &Server) -> Result<Self> {
        let get = |path: &'static str| async move {
            let request = server.request(Method::GET, path);
            server.json(request.timeout(ANSWER)).await
        };
        let request = server.request(Method::GET, "/readyz").timeout(ANSWER);
        // Asked whatever the database is like.
        let (_, ready) = server.send(request).await?;
        let (overview, config, model, engine) = join!(
            get("/api/admin/reconcile"),
            get("/api/config"),
            get("/api/admin/agent/model"),
            get("/api/admin/reconcile/objects/engine/local"),
        );
        Ok(Self {
            overview: overview.unwrap_or_default(),
            ready,
            config: config.unwrap_or_default(),
            model: model.unwrap_or_default(),
            engine: engine.unwrap_or_default(),
        })
    }

    /// The line of `/readyz` about a part.
    fn line(&self, part: &str) -> Option<&str> {
        let mut lines = self.ready.lines();
        lines.find_map(|line| line.strip_prefix(part)?.strip_prefix(": "))
    }

    /// A setting.
    pub(super) fn setting(&self, section: &str, key: &str) -> &Value {
        &self.config[section][key]
    }
}

/// The server and its parts.
pub(super) fn server(service: &Result<Service>) -> Finding {
    let service = match service {
        Ok(service) => service,
        Err(Failure::Unavailable(why)) => {
            return Finding::failed(
                why.split(';').next().unwrap_or_default(),
                "start it with `agentyard serve`, or correct --admin-socket",
            );
        }
        Err(error) => {
            let remedy = "run this command as the user that runs the server";
            return Finding::failed(error.to_string(), remedy);
        }
    };
    let parts = at(&service.overview, "health").as_array();
    let faults = parts
        .into_iter()
        .flatten()
        .filter(|part| !part["fault"].is_null());
    let mut faults: Vec<&Value> = faults.collect();
    faults.sort_by_key(|part| part["fault"]["fatal"] != true);
    let Some(part) = faults.first() else {
        return Finding::ok("ready");
    };
    let message = format!("{}: {}", text(part, "part"), text(part, "fault.message"));
    let conditions = at(&service.overview, "conditions").as_array();
    let mut remedies = conditions
        .into_iter()
        .flatten()
        .map(|one| text(one, "remedy"));
    let remedy = remedies.find(|remedy| !remedy.is_empty());
    let remedy = remedy.unwrap_or_else(|| "`agentyard events --since 1h` shows more".to_owned());
    match part["fault"]["fatal"] == true {
        true => Finding::failed(message, remedy),
        false => Finding::warning(message, remedy),
    }
}

/// Scheduled backups.
pub(super) fn backup(service: Option<&Service>) -> Finding {
    let Some(service) = service else {
        return Finding::unknown();
    };
    let warnings = at(&service.overview, "warnings").as_array();
    let mut warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
    if let Some(warning) = warnings.find(|one| one.starts_with("backup.directory ")) {
        let (problem, remedy) = warning.split_once("; ").unwrap_or((warning, ""));
        return Finding::warning(problem, remedy);
    }
    let state = at(&service.overview, "backup");
    let why = text(state, "why");
    match (state.is_null(), &*why) {
        (true, _) => Finding::ok("there is no schedule (backup.directory is not set)"),
        (false, "") => Finding::ok("scheduled"),
        (false, why) => Finding::failed(why, "`agentyard events --since 1h` shows more"),
    }
}

/// Flags of replicas that differ from those that agents have.
pub(super) fn replicas(service: Option<&Service>) -> Finding {
    let Some(service) = service else {
        return Finding::unknown();
    };
    let warnings = at(&service.overview, "warnings").as_array();
    let mut warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
    match warnings.find(|one| one.starts_with("replica ")) {
        Some(warning) => {
            let (problem, remedy) = warning.split_once("; ").unwrap_or((warning, ""));
            Finding::warning(problem, remedy)
        }
        None => Finding::ok("all have the flags that agents have"),
    }
}

/// The database: through the server, or else directly.
pub(super) async fn database(service: Option<&Service>, settings: &Settings) -> Finding {
    let remedy = match &settings.database {
        Backend::Sqlite(_) => {
            "see the server's log; check the disk and the owner of the data directory"
        }
        Backend::Postgres(_) => "start the database server, or correct --database-url",
    };
    if let Some(service) = service {
        return match service.line("database") {
            Some("ok") => Finding::ok("available"),
            Some(why) => Finding::failed(why, remedy),
            None => Finding::failed("the server does not report it", remedy),
        };
    }
    if let Backend::Sqlite(file) = &settings.database
        && !file.exists()
    {
        return Finding::warning(
            format!("{} does not exist yet", file.display()),
            "start the server with `agentyard serve`, or correct --data-dir",
        );
    }
    let failed = |error: OpenError| {
        let remedy = match error {
            OpenError::Damaged { .. } => "restore it with `agentyard restore`, see docs/backup.md",
            _ => remedy,
        };
        Finding::failed(schema::error::chain(&error), remedy)
    };
    // No server runs that would have checked it.
    let checked = timeout(CHECK, Db::check_file(&settings.database)).await;
    let found = match checked {
        Ok(Err(error)) => return failed(error),
        Ok(Ok(())) => "can be opened, and is not damaged",
        Err(_) => "can be opened; it is too large to be checked for damage here",
    };
    match Db::join(settings.database.clone()).await {
        Ok(_) => Finding::ok(found),
        Err(error) => failed(error),
    }
}

/// The container engine: through the server, or else directly.
pub(super) async fn engine(
    service: Option<&Service>,
    address: &Result<Box<dyn EngineAddress>, SettingsError>,
) -> Finding {
    let address = match address {
        Ok(address) => address,
        Err(error) => {
            let remedy = "correct the setting; `agentyard serve --help` lists all";
            return Finding::failed(error.to_string(), remedy);
        }
    };
    let remedy = address.facts().unreachable;
    let said = service.map(|service| {
        let engine = at(&service.overview, "engine");
        match (service.line("engine"), engine["available"] == true) {
            (Some("ok"), true) => Ok(text(engine, "message")),
            (Some("ok"), false) => Ok("available".to_owned()),
            (Some(why), _) => Err(why.to_owned()),
            (None, _) => Err("the server does not report it".to_owned()),
        }
    });
    let said = match said {
        Some(Err(why)) => return Finding::failed(why, remedy),
        Some(Ok(said)) if !address.checks_more_than_server() => return Finding::ok(said),
        Some(Ok(said)) => Some(said),
        None => None,
    };
    let found = match address.check().await {
        Ok(found) => found,
        Err(error) => return Finding::failed(schema::error::chain(&error), remedy),
    };
    if let Some(why) = found.info.too_old {
        return Finding::failed(why, Reason::EngineTooOld.remedy());
    }
    if let Some(fault) = found.fault {
        return Finding::failed(fault.message, fault.remedy);
    }
    let said = said.unwrap_or_else(|| format!("version {}", found.info.version));
    let parts = std::iter::once(said).chain(found.absent);
    Finding::ok(parts.collect::<Vec<_>>().join("; "))
}

/// Checks that containers reach what they must of the host, and no more.
pub(super) fn host_access(service: Option<&Service>) -> Finding {
    let Some(service) = service else {
        return Finding::unknown();
    };
    let wanted = service.setting("container", "host_access");
    let wanted = wanted.as_str().unwrap_or("service");
    let conditions = at(&service.engine, "conditions").as_array();
    let mut conditions = conditions.into_iter().flatten();
    let Some(found) = conditions.find(|one| one["type"] == "HostRestricted") else {
        return match wanted {
            "open" => {
                Finding::ok("open: agents reach all services of the host (container.host_access)")
            }
            _ => Finding::ok(format!(
                "{wanted}: rules are made before an agent needs them"
            )),
        };
    };
    let (message, remedy) = (text(found, "message"), text(found, "remedy"));
    let remedy = match remedy.as_str() {
        "" => "`agentyard describe engine/local` shows more".to_owned(),
        remedy => remedy.to_owned(),
    };
    match (text(found, "status").as_str(), wanted) {
        ("True", _) => Finding::ok(message),
        ("False", "enforce") => Finding::failed(message, remedy),
        ("False", _) if text(found, "reason") == "IsolationNotEnforced" => {
            Finding::failed(message, remedy)
        }
        _ => Finding::warning(message, remedy),
    }
}

/// The directory, if users come from one.
pub(super) async fn directory(service: Option<&Service>, server: &Server) -> Finding {
    let path = "/api/admin/auth/test-ldap";
    tested(service, server, "ldap", path).await
}

/// The identity provider, if users come from one.
pub(super) async fn provider(service: Option<&Service>, server: &Server) -> Finding {
    let path = "/api/admin/auth/test-oidc";
    tested(service, server, "oidc", path).await
}

async fn tested(service: Option<&Service>, server: &Server, mode: &str, path: &str) -> Finding {
    let Some(service) = service else {
        return Finding::unknown();
    };
    let used = service
        .setting("web", "auth_mode")
        .as_str()
        .unwrap_or("local");
    if used != mode {
        return Finding::ok(format!("not in use (web.auth_mode={used})"));
    }
    let remedy = format!(
        "`agentyard auth test` shows each step; correct {mode}.* with `agentyard config set`"
    );
    let request = server.request(Method::POST, path).json(&json!({}));
    match server.json(request.timeout(ANSWER)).await {
        Ok(answer) => steps(&answer, &remedy),
        Err(error) => Finding::failed(error.to_string(), remedy),
    }
}

/// Finding from the steps of a test.
pub(super) fn steps(answer: &Value, remedy: &str) -> Finding {
    let steps = at(answer, "steps").as_array();
    let mut wrong = steps
        .into_iter()
        .flatten()
        .filter(|step| step["ok"] != true);
    match wrong.next() {
        Some(step) => {
            let message = format!("{}: {}", text(step, "name"), text(step, "detail"));
            Finding::failed(message, remedy)
        }
        None => Finding::ok("all steps of its test succeed"),
    }
}

#[cfg(test)]
impl Service {
    /// A service of which only this is known.
    pub(super) fn of(known: Value) -> Self {
        Self {
            overview: known["overview"].clone(),
            ready: known["ready"].as_str().unwrap_or_default().to_owned(),
            config: known["config"].clone(),
            model: known["model"].clone(),
            engine: known["engine"].clone(),
        }
    }
}
