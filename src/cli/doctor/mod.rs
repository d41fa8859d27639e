//! `agentyard doctor`: checks everything that the service needs, one line each with its remedy.
//!
//! Checks of the machine need no server; those of the service say so when there is none. They run at once, each for a few seconds
//! at most.

mod certificate;
mod finding;
mod machine;
mod network;
mod service;

use std::time::Duration;

use clap::{Args, ValueEnum};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use serde_json::json;
use tokio::time::timeout;

use self::finding::{Finding, Outcome};
use self::service::Service;
use super::output::cell::Cell;
use super::output::screen;
use super::output::table::Table;
use super::server::Server;
use super::{Failure, Result, failed};
use crate::settings::{CommonArgs, InitArgs, ServeArgs, Settings};
use crate::wiring::engine_address;

/// Longest time of a check.
const LIMIT: Duration = Duration::from_secs(6);

/// Settings of the server, and the form of the report.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Form,
    #[command(flatten, next_help_heading = "Options of the server")]
    serve: ServeArgs,
}

/// Form of the findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Form {
    /// One line per check
    #[default]
    Table,
    /// JSON
    Json,
}

/// Checks everything.
///
/// # Errors
/// A check failed; a setting is not valid.
pub async fn doctor(common: &CommonArgs, args: DoctorArgs) -> Result {
    let settings = Settings::resolve(common, &InitArgs::default(), &args.serve)?;
    let server = Server::resolve(common)?;
    let findings = check(&settings, &server).await;
    match args.output {
        Form::Table => {
            let titles = vec!["CHECK", "RESULT", "DETAIL"];
            let rows: Vec<_> = findings.iter().map(row).collect();
            screen::print(&Table::new(titles, true).rows(&rows))?;
        }
        Form::Json => {
            let text = serde_json::to_string_pretty(&json!({ "checks": findings }));
            screen::print_raw((text.map_err(failed)? + "\n").as_bytes())?;
        }
    }
    match findings.iter().any(|found| found.result == Outcome::Failed) {
        true => Err(Failure::Reported),
        false => Ok(()),
    }
}

fn row(found: &Finding) -> Vec<Cell> {
    vec![
        Cell::new(found.check),
        Cell::status(&found.result.to_string()),
        Cell::new(&found.sentence()),
    ]
}

/// All findings, in the order in which they are shown.
async fn check(settings: &Settings, server: &Server) -> Vec<Finding> {
    let service = timeout(LIMIT, Service::read(server)).await;
    let service = service.unwrap_or_else(|_| {
        let text = "it accepts connections, but does not answer";
        Err(Failure::Unavailable(text.to_owned()))
    });
    let reached = service.as_ref().ok();
    let engine = engine_address::read_address(settings);
    let of_engine = engine.as_ref().map(|engine| engine.certificates());
    let of_engine = of_engine.unwrap_or_default();
    let checks: Vec<(&'static str, BoxFuture<'_, Finding>)> = vec![
        ("server", async { service::server(&service) }.boxed()),
        ("database", service::database(reached, settings).boxed()),
        ("engine", service::engine(reached, &engine).boxed()),
        ("permissions", machine::permissions(settings).boxed()),
        ("disk", machine::disk(settings).boxed()),
        ("mount", machine::mount(settings).boxed()),
        ("clock", network::clock(reached, settings).boxed()),
        (
            "certificates",
            certificate::certificates(settings, of_engine).boxed(),
        ),
        (
            "host access",
            async { service::host_access(reached) }.boxed(),
        ),
        ("directory", service::directory(reached, server).boxed()),
        ("provider", service::provider(reached, server).boxed()),
        ("proxy", network::proxy(reached, settings).boxed()),
        ("model", network::model(reached).boxed()),
        ("backup", async { service::backup(reached) }.boxed()),
        ("replicas", async { service::replicas(reached) }.boxed()),
    ];
    join_all(checks.into_iter().map(|(name, check)| async move {
        let found = timeout(LIMIT, check).await;
        let found = found.unwrap_or_else(|_| {
            let text = format!("no answer within {} s", LIMIT.as_secs());
            Finding::failed(text, "see the server's log, then try again")
        });
        found.named(name)
    }))
    .await
}

#[cfg(test)]
mod tests;
