//! `agentyard get`.

mod filter;
mod sort;
mod what;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use clap::Args;
use serde_json::{Value, json};

use self::filter::{Filter, Selector};
use self::sort::Order;
use self::what::Wanted;
use super::audit::AuditListArgs;
use super::events::EventsArgs;
use super::kinds::KindInfo;
use super::output::OutputArgs;
use super::output::items::{Amount, Printer};
use super::pages::{self, Pages};
use super::server::Server;
use super::watch::{Change, Watch};
use super::{Failure, Result, audit, events};

/// Objects to list, and the form.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Kinds separated by commas, or one kind with names; or KIND/NAME
    #[arg(value_name = "KIND[,KIND|/NAME]", required = true)]
    what: String,
    /// Names of objects, or KIND/NAME [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Filter by name
    #[arg(long, value_name = "TEXT", conflicts_with = "names")]
    search: Option<String>,
    /// Select by labels: users by group, image, state, reason, source, disabled; other objects by state
    #[arg(short = 'l', long, value_name = "LABEL=VALUE,…", conflicts_with_all = ["names", "watch"])]
    selector: Option<Selector>,
    /// Sort by a column, or by a field such as .health.since; -COLUMN: in descending order
    #[arg(
        long,
        value_name = "COLUMN",
        allow_hyphen_values = true,
        conflicts_with = "watch"
    )]
    sort_by: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// Print objects as they change, until interrupted
    #[arg(short, long)]
    watch: bool,
    /// List only objects that are not ready
    #[arg(long, conflicts_with_all = ["names", "watch"])]
    not_ready: bool,
}

/// Lists things of one kind or of several.
///
/// # Errors
/// When no server answers, or there is nothing of that name.
pub async fn get(server: &Server, args: GetArgs) -> Result {
    let all = what::read(&args.what, args.names)?;
    let search = args.search.unwrap_or_default();
    let selects = args.not_ready || args.selector.is_some();
    if selects && all.iter().any(|wanted| !wanted.names.is_empty()) {
        let why = "--not-ready and -l list objects; `agentyard describe KIND/NAME` shows whether a named one is ready";
        return Err(Failure::Usage(why.to_owned()));
    }
    let is_mixed = all.len() > 1;
    if is_mixed && args.watch {
        let why = "--watch follows one kind; `agentyard get objects --watch` follows all of them";
        return Err(Failure::Usage(why.to_owned()));
    }
    // All of it is understood before anything is printed.
    let selector = args.selector.unwrap_or_default();
    let mut gets = Vec::with_capacity(all.len());
    for Wanted { kind, names } in all {
        let filter = Filter::new(kind, &selector, args.not_ready)?;
        let order = args.sort_by.as_deref().map(|by| Order::new(kind, by));
        gets.push(Get {
            server,
            kind,
            names,
            search: search.clone(),
            filter,
            order: order.transpose()?,
            watch: args.watch,
            shown: HashMap::new(),
        });
    }
    let Some(first) = gets.first() else {
        return Ok(());
    };
    let is_plain =
        !is_mixed && first.names.is_empty() && search.is_empty() && first.order.is_none();
    if is_plain && first.kind.singular == "event" {
        let args = EventsArgs::all(args.output, args.watch);
        return events::events(server, args).await;
    }
    if is_plain && first.kind.singular == "audit" && !args.watch {
        return audit::list(server, AuditListArgs::all(args.output)).await;
    }
    let amount = match (args.watch, first.names.len()) {
        (true, _) => Amount::Endless,
        (false, 1) if !is_mixed => Amount::One,
        (false, _) => Amount::List,
    };
    let mut printer = Printer::new(first.kind, args.output, amount);
    if is_mixed {
        printer = printer.mixed();
    }
    let mut missing = None;
    for (index, mut get) in gets.into_iter().enumerate() {
        if index > 0 {
            printer.turn_to(get.kind);
        }
        let listed = get.list(&mut printer).await?;
        if args.watch && listed.missing.is_none() {
            printer.end()?;
            return get.follow(&mut printer, listed.watch_id).await;
        }
        let kind = get.kind;
        missing = missing.or(listed.missing.map(|name| (kind, name)));
    }
    // Those that are there were printed first.
    match missing {
        None => printer.end(),
        Some((kind, name)) => {
            printer.close()?;
            Err(pages::missing(server, kind, &name).await)
        }
    }
}

struct Get<'a> {
    server: &'a Server,
    kind: &'static KindInfo,
    names: Vec<String>,
    search: String,
    filter: Filter,
    order: Option<Order>,
    /// Changes are followed.
    watch: bool,
    /// Hashes of the items printed last, by name, if so.
    shown: HashMap<String, u64>,
}

/// Result of a list.
struct Listed {
    /// The id to watch from.
    watch_id: Option<String>,
    /// The first name of nothing.
    missing: Option<String>,
}

impl Get<'_> {
    /// Prints everything.
    async fn list(&mut self, printer: &mut Printer) -> Result<Listed> {
        let mut gone: Vec<String> = self.shown.keys().cloned().collect();
        let mut missing = None;
        let watch_id = if self.names.is_empty() {
            let mut pages = Pages::new(self.server, self.kind, &self.search);
            for parameter in &self.filter.parameters {
                pages = pages.with(parameter.clone());
            }
            if let Some(Order::Server(sort)) = &self.order {
                pages = pages.with(format!("sort={sort}"));
            }
            let mut unsorted = Vec::new();
            while let Some(mut items) = pages.next().await? {
                self.filter.retain(&mut items);
                gone.retain(|name| !items.iter().any(|item| self.kind.name(item) == *name));
                match self.order {
                    Some(Order::Here { .. }) => unsorted.append(&mut items),
                    Some(Order::Server(_)) | None => self.print(printer, &items)?,
                }
            }
            if let Some(Order::Here { field, descending }) = &self.order {
                Order::sort(field, *descending, &mut unsorted);
                self.print(printer, &unsorted)?;
            }
            pages.watch_id
        } else {
            let mut first_id = None;
            let mut unsorted = Vec::new();
            for name in self.names.clone() {
                let (item, watch_id) = pages::find(self.server, self.kind, &name).await?;
                first_id = first_id.or(watch_id);
                match item {
                    Some(item) if self.order.is_some() => unsorted.push(item),
                    Some(item) => {
                        gone.retain(|name| *name != self.kind.name(&item));
                        self.print(printer, std::slice::from_ref(&item))?;
                    }
                    None if gone.contains(&name) => {}
                    None => missing = missing.or(Some(name)),
                }
            }
            if !unsorted.is_empty() {
                self.sort_named(&mut unsorted);
                self.print(printer, &unsorted)?;
            }
            missing = missing.filter(|_| self.shown.is_empty());
            first_id
        };
        for name in gone {
            self.print_gone(printer, &name)?;
        }
        Ok(Listed { watch_id, missing })
    }

    /// Sorts objects that were found by their names: no list of the server has them in order.
    fn sort_named(&self, items: &mut [Value]) {
        match &self.order {
            Some(Order::Here { field, descending }) => Order::sort(field, *descending, items),
            Some(Order::Server(sort)) => {
                let (descending, key) = match sort.strip_prefix('-') {
                    Some(key) => (true, key),
                    None => (false, sort.as_str()),
                };
                let field = match key {
                    "name" => self.kind.id,
                    "used" => "used_bytes",
                    key => key,
                };
                Order::sort(field, descending, items);
            }
            None => {}
        }
    }

    /// Prints what is new or has changed.
    fn print(&mut self, printer: &mut Printer, items: &[Value]) -> Result {
        if !self.watch {
            return printer.print(items);
        }
        let changed: Vec<Value> = items
            .iter()
            .filter(|item| {
                let hash = hash(item);
                self.shown.insert(self.kind.name(item), hash) != Some(hash)
            })
            .cloned()
            .collect();
        printer.print(&changed)
    }

    fn print_gone(&mut self, printer: &mut Printer, name: &str) -> Result {
        if self.shown.remove(name).is_none() {
            return Ok(());
        }
        printer.print(&[self.kind.tombstone(name)])
    }

    async fn follow(mut self, printer: &mut Printer, watch_id: Option<String>) -> Result {
        let watch = Watch::since(self.server, watch_id);
        let mut watch = match self.kind.watched[..] {
            [] => Watch::polling(self.server),
            [only] => watch.of_kind(only.as_str()),
            _ => watch,
        };
        loop {
            match watch.next().await? {
                Change::Everything => {
                    watch.patiently(async || self.list(printer).await).await?;
                }
                Change::Object(object) => {
                    let Some(name) = self.concerned(&object) else {
                        continue;
                    };
                    watch
                        .patiently(async || self.refresh(printer, &name).await)
                        .await?;
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

    async fn refresh(&mut self, printer: &mut Printer, name: &str) -> Result {
        match pages::find(self.server, self.kind, name).await?.0 {
            Some(item) => self.print(printer, std::slice::from_ref(&item)),
            None => self.print_gone(printer, name),
        }
    }
}

impl KindInfo {
    /// Item that is printed for a deleted object.
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
