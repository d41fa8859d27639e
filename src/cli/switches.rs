//! `agentyard retry`, `pause`, `resume`.

use clap::Args;
use http::Method;
use schema::ids::Kind;
use serde_json::{Value, json};

use super::kinds;
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::target::Object;
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
    /// Everything
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
            Self::Retry => "is looked at now",
            Self::Pause => "paused",
            Self::Resume => "resumed",
        }
    }
}

/// Switches each of them; the others, too, when one cannot be.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn switch(server: &Server, switch: Switch, args: SwitchArgs) -> Result<(), Failure> {
    if args.all {
        return send(server, switch, "everything", json!({"all": true})).await;
    }
    if let Some(name) = args.reconciler {
        let what = format!("reconciler {name}");
        return send(server, switch, &what, json!({ "reconciler": name })).await;
    }
    let mut failed = None;
    for Object(thing) in &args.objects {
        let what = thing.to_string();
        // What follows is for `wait`; only passes under way are waited for.
        let wait = if matches!(switch, Switch::Pause) {
            10
        } else {
            0
        };
        let mut body = json!({ "object": what });
        if !matches!(switch, Switch::Retry) {
            body["wait"] = json!(wait);
        }
        match send(server, switch, &what, body).await {
            Ok(()) => {}
            Err(Failure::NotFound(_)) => {
                let missing = pages::missing(server, object_kind(thing.kind)?, &thing.name).await;
                screen::note(&format!("error: {missing}"));
                failed = Some(Failure::Reported);
            }
            Err(Failure::Failed(why)) => {
                screen::note(&format!("error: {what}: {why}"));
                failed = Some(Failure::Reported);
            }
            Err(other) => return Err(other),
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The kind as objects are listed: users are listed with their containers' status otherwise.
fn object_kind(kind: &'static kinds::KindInfo) -> Result<&'static kinds::KindInfo, Failure> {
    let known: Result<Kind, _> = kind.singular.parse();
    known.map_err(|_| Failure::Usage(format!("{} are not reconciled", kind.plural)))?;
    Ok(kind)
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
