//! `agentyard get`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use clap::Args;
use serde_json::{Value, json};

use super::events::EventsArgs;
use super::kinds::{self, KindInfo};
use super::output::OutputArgs;
use super::output::cell::text;
use super::output::items::{Amount, Printer};
use super::pages::{self, Pages};
use super::server::Server;
use super::target::Thing;
use super::watch::{Change, Watch};
use super::{Failure, Result, events};

/// What to list.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Kind, optionally with names; or KIND/NAME
    #[arg(value_name = "KIND[/NAME]", required = true)]
    what: String,
    /// Names of objects [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Filter by name
    #[arg(long, value_name = "TEXT", conflicts_with = "names")]
    search: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// Print objects as they change, until interrupted
    #[arg(short, long)]
    watch: bool,
    /// Only those that are not ready
    #[arg(long, conflicts_with_all = ["names", "watch"])]
    not_ready: bool,
}

/// Lists things of one kind.
///
/// # Errors
/// When no server answers, or there is nothing of that name.
pub async fn get(server: &Server, args: GetArgs) -> Result {
    let what = args.what.as_str();
    let (kind, mut names) = if what.contains('/') {
        let Thing { kind, name } = what.parse().map_err(Failure::Usage)?;
        (kind, vec![name])
    } else {
        (kinds::parse(what).map_err(Failure::Usage)?, Vec::new())
    };
    for name in args.names {
        names.push(plain_name(kind, name)?);
    }
    let search = args.search.unwrap_or_default();
    if args.not_ready && !names.is_empty() {
        let why = "--not-ready lists objects; `describe` shows whether a named one is ready";
        return Err(Failure::Usage(why.to_owned()));
    }
    if args.not_ready && !kind.is_object() && kind.singular != "object" {
        return Err(Failure::Usage(format!(
            "{} have no condition Ready, so none of them is not ready; --not-ready is for reconciled objects",
            kind.plural
        )));
    }
    if kind.singular == "event" && names.is_empty() && search.is_empty() {
        let args = EventsArgs::all(args.output, args.watch);
        return events::events(server, args).await;
    }
    let amount = match (args.watch, names.len()) {
        (true, _) => Amount::Endless,
        (false, 1) => Amount::One,
        (false, _) => Amount::List,
    };
    let mut get = Get {
        server,
        kind,
        names,
        search,
        not_ready: args.not_ready,
        printer: Printer::new(kind, args.output, amount),
        watch: args.watch,
        shown: HashMap::new(),
    };
    let watch_id = get.list().await?;
    get.printer.end()?;
    if args.watch {
        return get.follow(watch_id).await;
    }
    Ok(())
}

/// A further name may be written as `kind/name`, as `-o name` prints it.
fn plain_name(kind: &'static KindInfo, name: String) -> Result<String> {
    let Some((prefix, rest)) = name.split_once('/') else {
        return Ok(name);
    };
    match kinds::named(prefix) {
        _ if kind.singular == "object" => Ok(name),
        Some(other) if other.singular == kind.singular => Ok(rest.to_owned()),
        Some(other) => Err(Failure::Usage(format!(
            "{name:?} is of kind {}, not one of the {}; list one kind at a time",
            other.singular, kind.plural
        ))),
        None => Ok(name),
    }
}

struct Get<'a> {
    server: &'a Server,
    kind: &'static KindInfo,
    names: Vec<String>,
    search: String,
    not_ready: bool,
    printer: Printer,
    /// Whether changes are followed.
    watch: bool,
    /// What was printed last of each, as a number, if so.
    shown: HashMap<String, u64>,
}

impl Get<'_> {
    /// Prints everything, and gives the id to watch from.
    async fn list(&mut self) -> Result<Option<String>> {
        let mut gone: Vec<String> = self.shown.keys().cloned().collect();
        let watch_id = if self.names.is_empty() {
            let mut pages = Pages::new(self.server, self.kind, &self.search);
            if self.not_ready && self.kind.lists_unready() {
                pages = pages.with("not_ready=true");
            }
            while let Some(mut items) = pages.next().await? {
                if self.not_ready && !self.kind.lists_unready() {
                    items.retain(|item| text(item, "conditions.Ready.status") != "True");
                }
                gone.retain(|name| !items.iter().any(|item| self.kind.name(item) == *name));
                self.print(&items)?;
            }
            pages.watch_id
        } else {
            let mut first_id = None;
            let mut missing = None;
            for name in self.names.clone() {
                let (item, watch_id) = pages::find(self.server, self.kind, &name).await?;
                first_id = first_id.or(watch_id);
                match item {
                    Some(item) => {
                        gone.retain(|name| *name != self.kind.name(&item));
                        self.print(std::slice::from_ref(&item))?;
                    }
                    None if gone.contains(&name) => {}
                    None => missing = missing.or(Some(name)),
                }
            }
            // Those that are there were printed first.
            if let Some(name) = missing.filter(|_| self.shown.is_empty()) {
                self.printer.close()?;
                return Err(pages::missing(self.server, self.kind, &name).await);
            }
            first_id
        };
        for name in gone {
            self.print_gone(&name)?;
        }
        Ok(watch_id)
    }

    /// Prints what is new or has changed.
    fn print(&mut self, items: &[Value]) -> Result {
        if !self.watch {
            return self.printer.print(items);
        }
        let changed: Vec<Value> = items
            .iter()
            .filter(|item| {
                let hash = hash(item);
                self.shown.insert(self.kind.name(item), hash) != Some(hash)
            })
            .cloned()
            .collect();
        self.printer.print(&changed)
    }

    fn print_gone(&mut self, name: &str) -> Result {
        if self.shown.remove(name).is_none() {
            return Ok(());
        }
        self.printer.print(&[self.kind.tombstone(name)])
    }

    async fn follow(mut self, watch_id: Option<String>) -> Result {
        let watch = Watch::since(self.server, watch_id);
        let mut watch = match self.kind.watched[..] {
            [] => Watch::polling(self.server),
            [only] => watch.of_kind(only.as_str()),
            _ => watch,
        };
        loop {
            match watch.next().await? {
                Change::Everything => {
                    watch.patiently(async || self.list().await).await?;
                }
                Change::Object(object) => {
                    let Some(name) = self.concerned(&object) else {
                        continue;
                    };
                    watch.patiently(async || self.refresh(&name).await).await?;
                }
            }
        }
    }

    /// The name of the line that may have changed.
    fn concerned(&self, object: &str) -> Option<String> {
        let (kind, name) = object.split_once('/')?;
        let own = if self.kind.singular == "object" {
            object
        } else {
            name
        };
        let named =
            self.names.is_empty() || self.names.iter().any(|name| name.eq_ignore_ascii_case(own));
        let found = name.to_lowercase().contains(&self.search.to_lowercase());
        let watched = kind
            .parse()
            .is_ok_and(|kind| self.kind.watched.contains(&kind));
        (watched && named && found).then(|| own.to_owned())
    }

    async fn refresh(&mut self, name: &str) -> Result {
        match pages::find(self.server, self.kind, name).await?.0 {
            Some(item) => self.print(std::slice::from_ref(&item)),
            None => self.print_gone(name),
        }
    }
}

impl KindInfo {
    /// What is printed of one that is gone.
    fn tombstone(&self, name: &str) -> Value {
        let gone = json!({"type": "Ready", "status": "-", "reason": "Gone", "message": "the object was deleted"});
        json!({(self.id): name, "status": "gone", "health": gone, "conditions": [gone]})
    }
}

/// The same for what is shown the same: the time of the next reconciliation changes all the time.
fn hash(item: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (key, value) in item.as_object().into_iter().flatten() {
        if !["next", "next_look_at"].contains(&key.as_str()) {
            (key, value.to_string()).hash(&mut hasher);
        }
    }
    hasher.finish()
}
