//! `agentyard retry`, `pause`, `resume`, `restart`, `start`, `stop`, `debug`.

use clap::Args;
use serde_json::{Value, json};

use super::bulk::Action;
use super::output::cell::{at, cleaned, number};
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::target::{Object, Thing};
use super::{Failure, Result, kinds, pages};

/// On what: objects, one reconciler, or everything.
#[derive(Debug, Args)]
#[group(skip)]
pub struct SwitchArgs {
    /// Objects, such as container/alice
    #[arg(value_name = "KIND/NAME", required_unless_present_any = ["reconciler", "all"])]
    objects: Vec<Object>,
    /// Select all objects of a reconciler, such as container
    #[arg(long, value_name = "NAME", conflicts_with = "objects", value_parser = reconciler)]
    reconciler: Option<String>,
    /// Select all objects of all reconcilers
    #[arg(long, conflicts_with_all = ["objects", "reconciler"])]
    all: bool,
}

fn reconciler(name: &str) -> Result<String, String> {
    let kind = kinds::parse_object(name)?;
    Ok(kind.singular.to_owned())
}

/// A request about objects.
#[derive(Debug)]
pub struct Verb {
    path: &'static str,
    done: &'static str,
    /// How long the answer is held back, in seconds; the rest is for `wait`.
    wait: Option<u64>,
}

/// A reconciliation now.
pub const RETRY: Verb = Verb {
    path: "/api/admin/reconcile/retry",
    done: "reconciliation requested",
    wait: None,
};
/// No reconciliation; one in progress is waited for.
pub const PAUSE: Verb = Verb {
    path: "/api/admin/reconcile/pause",
    done: "paused",
    wait: Some(10),
};
/// Reconciliation again.
pub const RESUME: Verb = Verb {
    path: "/api/admin/reconcile/resume",
    done: "resumed",
    wait: Some(0),
};
const RESTART: Verb = Verb {
    path: "/api/admin/container/restart",
    done: "restart requested",
    wait: Some(0),
};

const DEBUG: Verb = Verb {
    path: "/api/admin/container/debug",
    done: "debug mode requested",
    wait: Some(0),
};
const START: Action = Action {
    name: "start",
    kind: "container",
    done: "started",
    requested: "start requested",
};
const STOP: Action = Action {
    name: "stop",
    kind: "container",
    done: "stopped",
    requested: "stop requested",
};

/// Sends the request for each object; for the others, too, when one fails.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn switch(server: &Server, verb: &Verb, args: SwitchArgs) -> Result {
    if let Some(name) = &args.reconciler {
        let body = json!({ "reconciler": name });
        return send(server, verb, &format!("reconciler {name}"), body).await;
    }
    if args.all {
        send(server, verb, "all objects", json!({"all": true})).await?;
        return match verb.path == RESUME.path {
            true => note_paused(server).await,
            false => Ok(()),
        };
    }
    send_each(server, verb, &args.objects, |thing| {
        ("object", thing.to_string())
    })
    .await
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
        _ => Err("only containers are started and stopped; use container/NAME".to_owned()),
    }
}

/// Has containers recreated.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn restart(server: &Server, args: RestartArgs) -> Result {
    let body = |thing: &Thing| ("username", thing.name.clone());
    send_each(server, &RESTART, &args.containers, body).await
}

/// Has containers started.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn start(server: &Server, args: RestartArgs) -> Result {
    START.apply(server, &names(&args.containers), true).await
}

/// Has containers stopped.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn stop(server: &Server, args: RestartArgs) -> Result {
    STOP.apply(server, &names(&args.containers), true).await
}

fn names(containers: &[Object]) -> Vec<String> {
    let names = containers.iter().map(|object| object.0.name.clone());
    names.collect()
}

/// Containers whose debug mode begins or ends.
#[derive(Debug, Args)]
pub struct DebugArgs {
    #[command(flatten)]
    which: RestartArgs,
    /// End debug mode
    #[arg(long)]
    off: bool,
}

/// Begins or ends the debug mode of containers.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn debug(server: &Server, args: DebugArgs) -> Result {
    if args.off {
        return start(server, args.which).await;
    }
    let body = |thing: &Thing| ("username", thing.name.clone());
    send_each(server, &DEBUG, &args.which.containers, body).await
}

/// Resuming all objects lifts no pause of a single reconciler or object.
async fn note_paused(server: &Server) -> Result {
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

/// Sends a request for each object, named by a field of the body; one that fails does not keep it from the others.
async fn send_each(
    server: &Server,
    verb: &Verb,
    objects: &[Object],
    field: fn(&Thing) -> (&'static str, String),
) -> Result {
    let mut failed = false;
    for Object(thing) in objects {
        let (key, name) = field(thing);
        let mut body = json!({ key: name });
        if let Some(wait) = verb.wait {
            body["wait"] = json!(wait);
        }
        let what = thing.to_string();
        let error = match send(server, verb, &what, body).await {
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

async fn send(server: &Server, verb: &Verb, what: &str, body: Value) -> Result {
    let answer = server.post(verb.path, &body).await?;
    let what = clean(what);
    screen::print(&format!("{what} {}\n", verb.done))?;
    if verb.path == PAUSE.path && at(&answer, "state") == "pending" {
        screen::note(&format!(
            "{what}: the pause is recorded; a reconciliation in progress ends first"
        ));
    }
    Ok(())
}
