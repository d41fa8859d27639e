//! `agentyard retry`, `pause`, `resume`, `restart`.

use clap::Args;
use http::Method;
use serde_json::{Value, json};

use super::kinds;
use super::output::cell::plain;
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::target::{Object, Thing};
use super::{Failure, admin, pages};

/// On what: objects, one reconciler, or everything.
#[derive(Debug, Args)]
#[group(skip)]
pub struct SwitchArgs {
    /// Objects, such as container/alice
    #[arg(value_name = "KIND/NAME", required_unless_present_any = ["reconciler", "all"])]
    objects: Vec<Object>,
    /// A whole reconciler: user, container or engine
    #[arg(long, value_name = "NAME", conflicts_with = "objects", value_parser = reconciler)]
    reconciler: Option<String>,
    /// Everything; resuming it lifts the pause of everything only, not those of single reconcilers and
    /// objects
    #[arg(long, conflicts_with_all = ["objects", "reconciler"])]
    all: bool,
}

fn reconciler(name: &str) -> Result<String, String> {
    let kind = kinds::parse_object(name)?;
    Ok(kind.singular.to_owned())
}

/// What is switched.
#[derive(Debug, Clone, Copy)]
pub enum Switch {
    /// A pass at once.
    Retry,
    /// No passes.
    Pause,
    /// Passes again.
    Resume,
    /// A fresh container.
    Restart,
}

impl Switch {
    fn path(self) -> &'static str {
        match self {
            Self::Retry => "/api/admin/reconcile/retry",
            Self::Pause => "/api/admin/reconcile/pause",
            Self::Resume => "/api/admin/reconcile/resume",
            Self::Restart => "/api/admin/container/restart",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Retry => "is looked at now",
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Restart => "is restarted",
        }
    }
}

/// Switches each of them; the others, too, when one cannot be.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn switch(server: &Server, switch: Switch, args: SwitchArgs) -> Result<(), Failure> {
    if args.all {
        send(server, switch, "everything", json!({"all": true})).await?;
        return match switch {
            Switch::Resume => tell_what_stays_paused(server).await,
            Switch::Retry | Switch::Pause | Switch::Restart => Ok(()),
        };
    }
    if let Some(name) = args.reconciler {
        let what = format!("reconciler {name}");
        return send(server, switch, &what, json!({ "reconciler": name })).await;
    }
    let mut requests = Vec::new();
    for Object(thing) in &args.objects {
        let mut body = json!({ "object": thing.to_string() });
        match switch {
            Switch::Retry => {}
            // Only passes under way are waited for; what follows is for `wait`.
            Switch::Pause => body["wait"] = json!(10),
            Switch::Resume | Switch::Restart => body["wait"] = json!(0),
        }
        requests.push((thing, body));
    }
    send_each(server, switch, requests).await
}

/// Which containers.
#[derive(Debug, Args)]
pub struct RestartArgs {
    /// Containers, such as container/alice
    #[arg(value_name = "container/NAME", required = true, value_parser = container)]
    containers: Vec<Object>,
}

fn container(text: &str) -> Result<Object, String> {
    let object: Object = text.parse()?;
    match object.0.kind.singular {
        "container" => Ok(object),
        other => Err(format!(
            "only containers are restarted, not of kind {other}"
        )),
    }
}

/// Restarts containers, each with a fresh one.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn restart(server: &Server, args: RestartArgs) -> Result<(), Failure> {
    let things = args.containers.iter().map(|Object(thing)| thing);
    let requests = things.map(|thing| (thing, json!({"username": thing.name, "wait": 0})));
    send_each(server, Switch::Restart, requests.collect()).await
}

/// A pause of everything hides those of reconcilers and objects; lifting it does not lift them.
async fn tell_what_stays_paused(server: &Server) -> Result<(), Failure> {
    let overview = admin::get(&server.settings, "/api/admin/reconcile").await?;
    let reconcilers = overview.get("reconcilers").and_then(Value::as_array);
    for reconciler in reconcilers.into_iter().flatten() {
        let name = clean(&plain(reconciler.get("name").unwrap_or(&Value::Null)));
        if reconciler.get("paused") == Some(&Value::Bool(true)) {
            screen::note(&format!("reconciler {name} is still paused by itself"));
        }
        match reconciler.get("paused_objects").and_then(Value::as_u64) {
            None | Some(0) => {}
            Some(count) => screen::note(&format!(
                "{count} of kind {name} are still paused, each by itself"
            )),
        }
    }
    Ok(())
}

/// One that fails keeps nothing from the others.
async fn send_each(
    server: &Server,
    switch: Switch,
    requests: Vec<(&Thing, Value)>,
) -> Result<(), Failure> {
    let mut failed = false;
    for (thing, body) in requests {
        let what = thing.to_string();
        match send(server, switch, &what, body).await {
            Ok(()) => {}
            Err(Failure::NotFound(_)) => {
                let missing = pages::missing(server, thing.kind, &thing.name).await;
                screen::note(&format!("error: {missing}"));
                failed = true;
            }
            Err(Failure::Failed(why)) => {
                screen::note(&format!("error: {what}: {why}"));
                failed = true;
            }
            Err(other) => return Err(other),
        }
    }
    if failed {
        return Err(Failure::Reported);
    }
    Ok(())
}

async fn send(server: &Server, switch: Switch, what: &str, body: Value) -> Result<(), Failure> {
    let answer = admin::json(&server.settings, Method::POST, switch.path(), Some(&body)).await?;
    let what = clean(what);
    screen::print(&format!("{what} {}\n", switch.done()))?;
    if matches!(switch, Switch::Pause) && answer.get("state") == Some(&json!("pending")) {
        screen::note(&format!(
            "{what}: this is recorded; a pass that is under way ends first"
        ));
    }
    Ok(())
}
