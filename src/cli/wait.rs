//! `agentyard wait`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use schema::condition::Reason;
use serde_json::Value;
use tokio::time::timeout;

use super::kinds::{self, KindInfo, condition};
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::target::Object;
use super::watch::{Change, Watch};
use super::{Failure, pages, suggest};

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

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Goal {
    Condition {
        of_type: &'static str,
        status: &'static str,
    },
    Delete,
}

const TYPES: [&str; 3] = ["Ready", "Stalled", "Paused"];
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("delete") {
            return Ok(Self::Delete);
        }
        let rule = "give condition=TYPE, condition=TYPE=STATUS, or delete";
        let rest = text.strip_prefix("condition=").ok_or_else(|| {
            let guess = suggest::closest(text, TYPES);
            match guess.first() {
                Some(guess) => format!("{rule}; did you mean condition={guess}?"),
                None => rule.to_owned(),
            }
        })?;
        let (of_type, status) = rest.split_once('=').unwrap_or((rest, "True"));
        Ok(Self::Condition {
            of_type: one_of("a condition's type", of_type, &TYPES)?,
            status: one_of("a condition's status", status, &STATUSES)?,
        })
    }
}

fn one_of(what: &str, given: &str, all: &[&'static str]) -> Result<&'static str, String> {
    let found = all.iter().find(|name| name.eq_ignore_ascii_case(given));
    found.copied().ok_or_else(|| {
        let guess = suggest::did_you_mean(&suggest::closest(given, all));
        format!("{what} is {}, not {given:?}{guess}", all.join(", "))
    })
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition { of_type, status } => write!(f, "{of_type}={status}"),
            Self::Delete => f.write_str("gone"),
        }
    }
}

impl Goal {
    /// Whether an object is as it was waited for. What was observed of an older generation is not.
    fn is_met(&self, object: &Value) -> bool {
        let Self::Condition { of_type, status } = self else {
            return false;
        };
        let number = |key: &str| object.get(key).and_then(Value::as_i64);
        let current = number("observed_generation") >= number("generation");
        let found = condition(object, of_type).and_then(|condition| condition.get("status"));
        let found = match found.and_then(Value::as_str) {
            Some(found) => found,
            // Nothing is said of what does not trouble, but nobody knows Ready before a look.
            None if *of_type == "Ready" => "Unknown",
            None => "False",
        };
        found == *status && (current || *status == "Unknown")
    }
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
        for mut pending in std::mem::take(&mut self.objects) {
            let (object, id) = find(self.server, &pending).await?;
            watch_id = watch_id.or(id);
            if object.is_none() && self.goal != Goal::Delete {
                return Err(pages::missing(self.server, pending.kind, &pending.name).await);
            }
            if !self.met(&mut pending, object)? {
                self.objects.push(pending);
            }
        }
        Ok(watch_id)
    }

    async fn follow(&mut self, watch_id: Option<String>) -> Result<(), Failure> {
        let mut watch = Watch::since(self.server, watch_id);
        if let [only] = &self.objects[..] {
            watch = watch.of_object(&only.address());
        }
        while !self.objects.is_empty() {
            let change = watch.next().await?;
            let all = std::mem::take(&mut self.objects);
            let (looked_at, mut others): (Vec<Pending>, Vec<Pending>) =
                all.into_iter().partition(|pending| match &change {
                    Change::Everything => true,
                    Change::Object(object) => object.eq_ignore_ascii_case(&pending.address()),
                });
            for mut pending in looked_at {
                let server = self.server;
                let (object, _) = watch
                    .patiently(async || find(server, &pending).await)
                    .await?;
                if !self.met(&mut pending, object)? {
                    others.push(pending);
                }
            }
            self.objects = others;
        }
        Ok(())
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
        if stuck.needs_person && self.fail_fast {
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

/// Why an object is not ready.
struct Stuck {
    state: String,
    remedy: String,
    needs_person: bool,
}

impl Stuck {
    fn of(object: &Value) -> Self {
        let text = |condition: &Value, key: &str| {
            condition
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let troubles = TYPES.iter().filter_map(|of_type| {
            let found = condition(object, of_type)?;
            let fine = if *of_type == "Ready" { "True" } else { "False" };
            (text(found, "status") != fine).then_some(found)
        });
        let mut worst: Option<&Value> = None;
        let needs_person = |found: &Value| {
            let reason: Option<Reason> = text(found, "reason").parse().ok();
            reason.is_some_and(Reason::needs_person)
        };
        for trouble in troubles {
            if worst.is_none_or(|worst| !needs_person(worst) && needs_person(trouble)) {
                worst = Some(trouble);
            }
        }
        let Some(worst) = worst else {
            return Self {
                state: "was not observed yet in this generation".to_owned(),
                remedy: String::new(),
                needs_person: false,
            };
        };
        Self {
            state: format!(
                "is {}={} ({}): {}",
                text(worst, "type"),
                text(worst, "status"),
                text(worst, "reason"),
                text(worst, "message")
            ),
            remedy: text(worst, "remedy"),
            needs_person: needs_person(worst),
        }
    }

    /// What to say when it does not just take its time.
    fn note(&self, address: &str) -> Option<String> {
        if self.remedy.is_empty() || self.remedy.starts_with("Wait") {
            return None;
        }
        let who = if self.needs_person {
            "needs a person"
        } else {
            "waits"
        };
        Some(format!(
            "{address} {who}: it {}\n  {}",
            clean(&self.state),
            clean(&self.remedy)
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn goals_are_read_and_slips_are_named() {
        let ready = |status| Goal::Condition {
            of_type: "Ready",
            status,
        };
        assert_eq!("condition=Ready".parse(), Ok(ready("True")));
        assert_eq!("condition=ready=unknown".parse(), Ok(ready("Unknown")));
        assert_eq!("delete".parse(), Ok(Goal::Delete));
        for (text, part) in [
            ("ready", "did you mean condition=Ready?"),
            ("condition=Redy", "did you mean \"Ready\""),
            ("condition=Ready=yes", "True, False, Unknown"),
            ("", "condition=TYPE"),
        ] {
            let error = text.parse::<Goal>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn l59_an_older_generation_does_not_count() {
        let object = |generation: i64, status: &str| {
            json!({"generation": generation, "observed_generation": 2,
                   "conditions": [{"type": "Ready", "status": status}]})
        };
        let ready: Goal = "condition=Ready".parse().unwrap();
        assert!(ready.is_met(&object(2, "True")));
        assert!(!ready.is_met(&object(3, "True")));
        assert!(!ready.is_met(&object(2, "False")));
        let paused: Goal = "condition=Paused=False".parse().unwrap();
        assert!(paused.is_met(&object(2, "True")), "nothing is said of it");
        let unknown: Goal = "condition=Ready=Unknown".parse().unwrap();
        let new = json!({"generation": 1, "observed_generation": 0, "conditions": []});
        assert!(unknown.is_met(&new));
        assert!(!ready.is_met(&new));
    }

    #[test]
    fn what_needs_a_person_is_said_with_its_remedy() {
        let missing = json!({"conditions": [
            {"type": "Ready", "status": "False", "reason": "ImageMissing",
             "message": "no\x1b image", "remedy": "Pull it."}]});
        let stuck = Stuck::of(&missing);
        assert!(stuck.needs_person);
        let note = stuck.note("container/a").unwrap();
        assert_eq!(
            note,
            "container/a needs a person: it is Ready=False (ImageMissing): no\\u{1b} image\n  Pull it."
        );
        let starting = json!({"conditions": [
            {"type": "Ready", "status": "False", "reason": "Progressing",
             "message": "x", "remedy": "Wait; the next pass continues by itself."}]});
        assert!(Stuck::of(&starting).note("container/a").is_none());
    }
}
