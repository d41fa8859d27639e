//! `agentyard diff`: where desired and observed state differ, and what the next reconciliation would do.

use anstyle::AnsiColor;
use clap::Args;
use futures::StreamExt;
use schema::clock::{Clock, SystemClock};
use schema::ids::Timestamp;
use serde_json::Value;

use super::admin::escaped;
use super::compare::{NextPass, Pair, is_behind, pairs};
use super::kinds::OBJECTS;
use super::output::cell::{at, cleaned};
use super::output::clean::clean;
use super::output::screen;
use super::pages::{self, Pages};
use super::server::Server;
use super::target::{Object, Thing};
use super::{Failure, Result};

/// Dry runs at once: each observes the world.
const AT_ONCE: usize = 4;

/// Of what.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Objects, such as container/alice [default: all that are not ready]
    #[arg(value_name = "KIND/NAME")]
    objects: Vec<Object>,
}

/// Prints differences.
///
/// # Errors
/// [`Failure::Different`] when there are any; when no server answers, or there is no such object.
pub async fn diff(server: &Server, args: DiffArgs) -> Result {
    let mut differ = false;
    if args.objects.is_empty() {
        let mut pages = Pages::new(server, &OBJECTS, "");
        while let Some(headers) = pages.next().await? {
            let suspects = headers.iter().filter(|header| is_suspect(header));
            let details = suspects.map(|header| object(server, OBJECTS.name(header)));
            let mut details = futures::stream::iter(details).buffered(AT_ONCE);
            while let Some(detail) = details.next().await {
                match detail {
                    Ok(detail) => differ |= print(&detail)?,
                    // It was removed meanwhile.
                    Err(Failure::NotFound(_)) => {}
                    Err(failure) => return Err(failure),
                }
            }
        }
    }
    for Object(thing) in &args.objects {
        differ |= print(&named(server, thing).await?)?;
    }
    if differ {
        return Err(Failure::Different);
    }
    Ok(())
}

/// One object in full. The server observes the world for it.
async fn object(server: &Server, address: String) -> Result<Value> {
    let (kind, name) = address.split_once('/').unwrap_or((&address, ""));
    let (kind, name) = (escaped(kind), escaped(name));
    let path = format!("/api/admin/reconcile/objects/{kind}/{name}");
    server.get(&path).await
}

/// The same for what was typed, with what may have been meant.
///
/// # Errors
/// When no server answers, or there is no such object.
pub async fn named(server: &Server, thing: &Thing) -> Result<Value> {
    match object(server, thing.to_string()).await {
        Err(Failure::NotFound(_)) => Err(pages::missing(server, thing.kind, &thing.name).await),
        answer => answer,
    }
}

fn is_suspect(header: &Value) -> bool {
    at(header, "conditions.Ready.status") != "True"
        || is_behind(header)
        || !at(header, "deleted_at").is_null()
}

fn print(object: &Value) -> Result<bool> {
    let text = render(object, SystemClock.now());
    screen::print(&text)?;
    Ok(!text.is_empty())
}

/// Empty when nothing differs.
fn render(object: &Value, now: Timestamp) -> String {
    let differing: Vec<Pair> = pairs(object)
        .into_iter()
        .filter(|pair| pair.differs)
        .collect();
    let next = NextPass::of(object);
    if differing.is_empty() && next.is_empty() {
        return String::new();
    }
    let (red, green) = (AnsiColor::Red.on_default(), AnsiColor::Green.on_default());
    let mut text = format!("{}\n", cleaned(object, "object"));
    for pair in differing {
        let observed = pair.observed.unwrap_or_default();
        let field = clean(&pair.field);
        text += &format!("  {red}- observed {field}: {}{red:#}\n", clean(&observed));
        text += &format!(
            "  {green}+ desired  {field}: {}{green:#}\n",
            clean(&pair.desired)
        );
    }
    match next {
        NextPass::Unknown(why) => {
            text += &format!("  next reconciliation: unknown: {}\n", clean(&why));
        }
        NextPass::Steps(steps) if steps.is_empty() => {
            text += &format!("  next reconciliation: {}\n", NextPass::idle(object, now));
        }
        NextPass::Steps(steps) => {
            text += "  next reconciliation:\n";
            for step in steps {
                text += &format!("    {}\n", clean(&step));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::describe::recorded;

    #[test]
    fn a_difference_is_shown_with_what_comes_next() {
        let now = Timestamp::from_secs(1_778_500_000);
        let text = render(&recorded::broken(), now);
        assert!(
            text.contains("\x1b["),
            "coloured, for whoever has a terminal"
        );
        insta::assert_snapshot!(anstream::adapter::strip_str(&text));
        assert_eq!(render(&recorded::running(), now), "");
        let mut waits = recorded::broken();
        waits["plan"]["actions"] = serde_json::json!([]);
        let text = render(&waits, now);
        assert!(
            text.contains("no steps before the next attempt, "),
            "{text}"
        );
    }
}
