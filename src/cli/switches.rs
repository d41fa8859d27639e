//! `agentyard retry`, `pause`, `resume`, `restart`.

use clap::Args;
use serde_json::{Value, json};

use super::output::cell::{at, cleaned, number};
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::target::{Object, Thing};
use super::{Failure, kinds, pages};

/// On what: objects, one reconciler, or everything.
#[derive(Debug, Args)]
#[group(skip)]
pub struct SwitchArgs {
    /// Objects, such as container/alice
    #[arg(value_name = "KIND/NAME", required_unless_present_any = ["reconciler", "all"])]
    objects: Vec<Object>,
    /// All objects of a reconciler, such as container
    #[arg(long, value_name = "NAME", conflicts_with = "objects", value_parser = reconciler)]
    reconciler: Option<String>,
    /// All objects; what is paused by itself stays paused when all are resumed
    #[arg(long, conflicts_with_all = ["objects", "reconciler"])]
    all: bool,
}

fn reconciler(name: &str) -> Result<String, String> {
    let kind = kinds::parse_object(name)?;
    Ok(kind.singular.to_owned())
}

/// What is requested.
#[derive(Debug, Clone, Copy)]
pub enum Switch {
    /// A reconciliation now.
    Retry,
    /// No reconciliation.
    Pause,
    /// Reconciliation again.
    Resume,
}

impl Switch {
    fn path(self) -> &'static str {
        match self {
            Self::Retry => "/api/admin/reconcile/retry",
            Self::Pause => "/api/admin/reconcile/pause",
            Self::Resume => "/api/admin/reconcile/resume",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Retry => "reconciliation requested",
            Self::Pause => "paused",
            Self::Resume => "resumed",
        }
    }
}

/// Sends the request for each object; for the others, too, when one fails.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn switch(server: &Server, switch: Switch, args: SwitchArgs) -> Result<(), Failure> {
    let whole = match &args.reconciler {
        Some(name) => Some((format!("reconciler {name}"), json!({ "reconciler": name }))),
        None if args.all => Some(("all objects".to_owned(), json!({"all": true}))),
        None => None,
    };
    if let Some((what, body)) = whole {
        send(server, switch.path(), switch.done(), &what, body).await?;
        return match switch {
            Switch::Resume if args.all => note_paused(server).await,
            _ => Ok(()),
        };
    }
    let requests = args.objects.iter().map(|Object(thing)| {
        let mut body = json!({ "object": thing.to_string() });
        match switch {
            Switch::Retry => {}
            // Only a reconciliation in progress is waited for; what follows is for `wait`.
            Switch::Pause => body["wait"] = json!(10),
            Switch::Resume => body["wait"] = json!(0),
        }
        (thing, body)
    });
    send_each(server, switch.path(), switch.done(), requests).await
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
        other => Err(format!("a {other} cannot be restarted; use container/NAME")),
    }
}

/// Has containers recreated.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn restart(server: &Server, args: RestartArgs) -> Result<(), Failure> {
    let things = args.containers.iter().map(|Object(thing)| thing);
    let requests = things.map(|thing| (thing, json!({"username": thing.name, "wait": 0})));
    let path = "/api/admin/container/restart";
    send_each(server, path, "restart requested", requests).await
}

/// Resuming all objects lifts no pause of a single reconciler or object.
async fn note_paused(server: &Server) -> Result<(), Failure> {
    let overview = server.get("/api/admin/reconcile").await?;
    let reconcilers = at(&overview, "reconcilers").as_array();
    for reconciler in reconcilers.into_iter().flatten() {
        let name = cleaned(reconciler, "name");
        if at(reconciler, "paused") == true {
            screen::note(&format!("still paused: reconciler {name}"));
        }
        match number(reconciler, "paused_objects") {
            0 => {}
            count => screen::note(&format!(
                "still paused individually: {count} of kind {name}"
            )),
        }
    }
    Ok(())
}

/// One that fails keeps nothing from the others.
async fn send_each<'a>(
    server: &Server,
    path: &str,
    done: &str,
    requests: impl Iterator<Item = (&'a Thing, Value)>,
) -> Result<(), Failure> {
    let mut failed = false;
    for (thing, body) in requests {
        let what = thing.to_string();
        let error = match send(server, path, done, &what, body).await {
            Ok(()) => continue,
            Err(Failure::NotFound(_)) => pages::missing(server, thing.kind, &thing.name)
                .await
                .to_string(),
            Err(Failure::Failed(why)) => format!("{what}: {why}"),
            Err(other) => return Err(other),
        };
        screen::note(&format!("error: {error}"));
        failed = true;
    }
    if failed {
        return Err(Failure::Reported);
    }
    Ok(())
}

async fn send(
    server: &Server,
    path: &str,
    done: &str,
    what: &str,
    body: Value,
) -> Result<(), Failure> {
    let answer = server.post(path, &body).await?;
    let what = clean(what);
    screen::print(&format!("{what} {done}\n"))?;
    if done == Switch::Pause.done() && at(&answer, "state") == "pending" {
        screen::note(&format!(
            "{what}: the pause is recorded; a reconciliation in progress ends first"
        ));
    }
    Ok(())
}
