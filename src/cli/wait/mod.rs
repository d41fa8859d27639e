//! `agentyard wait`.

mod goal;
mod stuck;

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::timeout;

use self::goal::Goal;
use self::stuck::Stuck;
use super::kinds::{self, KindInfo};
use super::output::screen;
use super::server::Server;
use super::target::Object;
use super::watch::{Change, Watch};
use super::{Failure, pages};

/// Time for the first look, however short the time to wait is.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// For what.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Objects, such as container/alice
    #[arg(value_name = "KIND/NAME", required = true)]
    objects: Vec<Object>,
    /// What to wait for: condition=TYPE[=True|False|Unknown], or delete
    #[arg(long = "for", value_name = "WHAT", default_value = "condition=Ready")]
    goal: Goal,
    /// How long at most, such as 90s or 10m; exit code 124 when it is over
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// End at once, with exit code 1, when an object needs a person
    #[arg(long)]
    fail_fast: bool,
}

/// Waits until all objects are as wanted.
///
/// # Errors
/// When the time is over, no server answers, or there is no such object.
pub async fn wait(server: &Server, args: WaitArgs) -> Result<(), Failure> {
    let mut waiting = Waiting {
        server,
        goal: args.goal,
        fail_fast: args.fail_fast,
        objects: args.objects.into_iter().map(Pending::new).collect(),
        told: BTreeSet::new(),
    };
    let first = timeout(FIRST_LOOK.max(args.timeout), waiting.first_look()).await;
    let watch_id = first.map_err(|_| waiting.too_late(args.timeout))??;
    if waiting.objects.is_empty() {
        return Ok(());
    }
    match timeout(args.timeout, waiting.follow(watch_id)).await {
        Ok(result) => result,
        Err(_) => Err(waiting.too_late(args.timeout)),
    }
}

/// An object that is not yet as wanted.
struct Pending {
    kind: &'static KindInfo,
    name: String,
    uid: Option<String>,
    /// Its last known state, for people.
    state: String,
}

impl Pending {
    fn new(Object(thing): Object) -> Self {
        Self {
            kind: thing.kind,
            name: thing.name,
            uid: None,
            state: "was not seen".to_owned(),
        }
    }

    fn address(&self) -> String {
        format!("{}/{}", self.kind.singular, self.name)
    }
}

struct Waiting<'a> {
    server: &'a Server,
    goal: Goal,
    fail_fast: bool,
    objects: Vec<Pending>,
    /// What was said already.
    told: BTreeSet<String>,
}

impl Waiting<'_> {
    async fn first_look(&mut self) -> Result<Option<String>, Failure> {
        let mut watch_id = None;
        let mut index = 0;
        while let Some(pending) = self.objects.get(index) {
            let (object, id) = find(self.server, pending).await?;
            watch_id = watch_id.or(id);
            if object.is_none() && self.goal != Goal::Delete {
                return Err(pages::missing(self.server, pending.kind, &pending.name).await);
            }
            index = self.looked_at(index, object)?;
        }
        Ok(watch_id)
    }

    async fn follow(&mut self, watch_id: Option<String>) -> Result<(), Failure> {
        let server = self.server;
        let mut watch = Watch::since(server, watch_id);
        if let [only] = &self.objects[..] {
            watch = watch.of_object(&only.address());
        }
        while !self.objects.is_empty() {
            let change = watch.next().await?;
            let mut index = 0;
            // In their place all the time: when time is up here, each is still known.
            while let Some(pending) = self.objects.get(index) {
                if let Change::Object(object) = &change
                    && !object.eq_ignore_ascii_case(&pending.address())
                {
                    index += 1;
                    continue;
                }
                let found = watch.patiently(async || find(server, pending).await);
                let (object, _) = found.await?;
                index = self.looked_at(index, object)?;
            }
        }
        Ok(())
    }

    /// Takes what was seen of the object at this place; gives the place of the next.
    fn looked_at(&mut self, index: usize, object: Option<Value>) -> Result<usize, Failure> {
        let mut pending = self.objects.remove(index);
        if self.met(&mut pending, object)? {
            return Ok(index);
        }
        self.objects.insert(index, pending);
        Ok(index + 1)
    }

    /// Whether the wait for this object is over. Says so, or what it is stuck on.
    fn met(&mut self, pending: &mut Pending, object: Option<Value>) -> Result<bool, Failure> {
        let address = pending.address();
        let uid = object
            .as_ref()
            .and_then(|object| object.get("uid")?.as_str().map(str::to_owned));
        // A new object of the same name is not the one that was to go.
        let replaced = pending.uid.is_some() && uid.is_some() && uid != pending.uid;
        let Some(object) = object.filter(|_| !(replaced && self.goal == Goal::Delete)) else {
            if self.goal == Goal::Delete {
                screen::print(&format!("{address} is gone\n"))?;
                return Ok(true);
            }
            return Err(Failure::Failed(format!("{address} was removed meanwhile")));
        };
        pending.uid = uid;
        if self.goal.is_met(&object) {
            screen::print(&format!("{address} is {}\n", self.goal))?;
            return Ok(true);
        }
        let stuck = Stuck::of(&object);
        pending.state = stuck.state.clone();
        if let Some(note) = stuck.note(&address)
            && self.told.insert(note.clone())
        {
            screen::note(&note);
        }
        if stuck.needs_action && self.fail_fast {
            return Err(Failure::Failed(format!(
                "{address} needs a person: {}",
                stuck.state
            )));
        }
        Ok(false)
    }

    fn too_late(&self, limit: Duration) -> Failure {
        let states: Vec<String> = self
            .objects
            .iter()
            .map(|pending| format!("{} {}", pending.address(), pending.state))
            .collect();
        let first = self.objects.first().map(Pending::address);
        let see = first.unwrap_or_default();
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
async fn find(
    server: &Server,
    pending: &Pending,
) -> Result<(Option<Value>, Option<String>), Failure> {
    let objects = kinds::parse("objects").map_err(Failure::Failed)?;
    pages::find(server, objects, &pending.address()).await
}
