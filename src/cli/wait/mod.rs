//! `agentyard wait`.

mod goal;
pub mod stuck;

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::timeout;

use self::goal::Goal;
use self::stuck::Stuck;
use super::kinds::OBJECTS;
use super::output::cell::text;
use super::output::screen;
use super::server::Server;
use super::target::{Object, Thing, duration};
use super::watch::{Change, Watch};
use super::{Failure, Result, pages};

/// Time for the first read, however short the wait is.
const FIRST_READ: Duration = Duration::from_secs(10);

/// For what.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Objects, such as container/alice
    #[arg(value_name = "KIND/NAME", required = true)]
    objects: Vec<Object>,
    /// condition=TYPE[=True|False|Unknown], with TYPE Ready, Stalled or Paused; or delete
    #[arg(
        long = "for",
        value_name = "CONDITION",
        default_value = "condition=Ready"
    )]
    goal: Goal,
    /// Maximum wait, such as 90s or 10m
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// Exit 1 when manual action is needed
    #[arg(long)]
    fail_fast: bool,
}

/// Waits until all objects have reached the goal.
///
/// # Errors
/// When the time is over, no server answers, or there is no such object.
pub async fn wait(server: &Server, args: WaitArgs) -> Result {
    let mut waiting = Waiting {
        server,
        goal: args.goal,
        fail_fast: args.fail_fast,
        objects: args.objects.into_iter().map(Pending::new).collect(),
        shown: BTreeSet::new(),
    };
    let first = timeout(FIRST_READ.max(args.timeout), waiting.first_read()).await;
    let watch_id = first.map_err(|_| waiting.too_late(args.timeout))??;
    if waiting.objects.is_empty() {
        return Ok(());
    }
    match timeout(args.timeout, waiting.follow(watch_id)).await {
        Ok(result) => result,
        Err(_) => Err(waiting.too_late(args.timeout)),
    }
}

/// An object that has not reached the goal yet.
struct Pending {
    thing: Thing,
    uid: Option<String>,
    /// Its last known state, for people.
    state: String,
}

impl Pending {
    fn new(Object(thing): Object) -> Self {
        Self {
            thing,
            uid: None,
            state: "not observed".to_owned(),
        }
    }
}

struct Waiting<'a> {
    server: &'a Server,
    goal: Goal,
    fail_fast: bool,
    objects: Vec<Pending>,
    /// What was said already.
    shown: BTreeSet<String>,
}

impl Waiting<'_> {
    async fn first_read(&mut self) -> Result<Option<String>> {
        let mut watch_id = None;
        let mut index = 0;
        while let Some(pending) = self.objects.get(index) {
            let (object, id) = find(self.server, pending).await?;
            watch_id = watch_id.or(id);
            if object.is_none() && self.goal != Goal::Delete {
                let Thing { kind, name } = &pending.thing;
                return Err(pages::missing(self.server, kind, name).await);
            }
            index = self.observed(index, object)?;
        }
        Ok(watch_id)
    }

    async fn follow(&mut self, watch_id: Option<String>) -> Result {
        let server = self.server;
        let mut watch = Watch::since(server, watch_id);
        if let [only] = &self.objects[..] {
            watch = watch.of_object(&only.thing.to_string());
        }
        while !self.objects.is_empty() {
            let change = watch.next().await?;
            let mut index = 0;
            // In their place all the time: when time is up here, each is still known.
            while let Some(pending) = self.objects.get(index) {
                if let Change::Object(object) = &change
                    && !object.eq_ignore_ascii_case(&pending.thing.to_string())
                {
                    index += 1;
                    continue;
                }
                let found = watch.patiently(async || find(server, pending).await);
                let (object, _) = found.await?;
                index = self.observed(index, object)?;
            }
        }
        Ok(())
    }

    /// Takes what was read of the object at this place; gives the place of the next.
    fn observed(&mut self, index: usize, object: Option<Value>) -> Result<usize> {
        let mut pending = self.objects.remove(index);
        if self.met(&mut pending, object)? {
            return Ok(index);
        }
        self.objects.insert(index, pending);
        Ok(index + 1)
    }

    /// Whether the wait for this object is over. Says so, or what it is stuck on.
    fn met(&mut self, pending: &mut Pending, object: Option<Value>) -> Result<bool> {
        let address = pending.thing.to_string();
        let uid = object.as_ref().map(|object| text(object, "uid"));
        // A new object of the same name is not the one whose deletion is waited for.
        let replaced = pending.uid.is_some() && uid.is_some() && uid != pending.uid;
        let Some(object) = object.filter(|_| !(replaced && self.goal == Goal::Delete)) else {
            if self.goal == Goal::Delete {
                screen::print(&format!("{address} is gone\n"))?;
                return Ok(true);
            }
            return Err(Failure::Failed(format!("{address} was deleted meanwhile")));
        };
        pending.uid = uid;
        if self.goal.is_met(&object) {
            screen::print(&format!("{address} is {}\n", self.goal))?;
            return Ok(true);
        }
        let stuck = Stuck::of(&object);
        pending.state = stuck.state.clone();
        if let Some(note) = stuck.note(&address)
            && self.shown.insert(note.clone())
        {
            screen::note(&note);
        }
        if stuck.needs_action && self.fail_fast {
            return Err(Failure::Failed(format!(
                "{address} needs manual action: {}",
                stuck.state
            )));
        }
        Ok(false)
    }

    fn too_late(&self, limit: Duration) -> Failure {
        let states: Vec<String> = self
            .objects
            .iter()
            .map(|pending| format!("{}: {}", pending.thing, pending.state))
            .collect();
        let first = self.objects.first();
        let see = first.map_or_else(String::new, |pending| pending.thing.to_string());
        Failure::TimedOut(format!(
            "not {} within {}: {}; see `{} describe {see}`",
            self.goal,
            humantime::format_duration(limit),
            states.join("; "),
            self.server.command
        ))
    }
}

/// The header of one object: cheap, as nothing is observed for it.
async fn find(server: &Server, pending: &Pending) -> Result<(Option<Value>, Option<String>)> {
    pages::find(server, &OBJECTS, &pending.thing.to_string()).await
}
