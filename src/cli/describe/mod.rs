//! `agentyard describe`: the details of objects, the most needed first.

mod object;
#[cfg(test)]
pub mod recorded;
mod trouble;

use clap::{Args, ValueEnum};
use schema::clock::{Clock, SystemClock};
use serde_json::Value;

use super::output::cell::plain;
use super::output::clean::clean;
use super::output::items::print_one;
use super::output::{Format, screen};
use super::server::Server;
use super::target::Thing;
use super::{Result, diff, pages};

/// Of what.
#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// Objects, such as container/alice
    #[arg(value_name = "KIND/NAME", required = true)]
    things: Vec<Thing>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Form,
}

/// How it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Form {
    /// Human-readable text
    #[default]
    Text,
    /// JSON as returned by the API
    Json,
    /// YAML of the same
    Yaml,
}

/// Prints everything about each.
///
/// # Errors
/// When no server answers, or there is no such thing.
pub async fn describe(server: &Server, args: DescribeArgs) -> Result {
    for (index, thing) in args.things.iter().enumerate() {
        let (answer, text) = if thing.kind.is_object() {
            of_object(server, thing).await?
        } else {
            of_other(server, thing).await?
        };
        match args.output {
            Form::Text if index > 0 => screen::print(&format!("\n{text}"))?,
            Form::Text => screen::print(&text)?,
            Form::Json => print_one(thing.kind, &answer, Format::Json)?,
            Form::Yaml => print_one(thing.kind, &answer, Format::Yaml)?,
        }
    }
    Ok(())
}

async fn of_object(server: &Server, thing: &Thing) -> Result<(Value, String)> {
    let answer = diff::named(server, thing).await?;
    let overview = server.get("/api/admin/reconcile").await?;
    let text = object::render(&answer, &overview, &server.command, SystemClock.now());
    Ok((answer, text))
}

/// What has no conditions: its fields.
async fn of_other(server: &Server, thing: &Thing) -> Result<(Value, String)> {
    let (found, _) = pages::find(server, thing.kind, &thing.name).await?;
    let Some(item) = found else {
        return Err(pages::missing(server, thing.kind, &thing.name).await);
    };
    let mut text = format!("Name:  {}\n", clean(&thing.kind.address(&item)));
    for (key, value) in item.as_object().into_iter().flatten() {
        match value {
            Value::Array(rows) if rows.iter().any(Value::is_object) => {
                text += &format!("{key}:\n");
                for row in rows {
                    text += &format!("  {}\n", clean(&row.to_string()));
                }
            }
            value => text += &format!("{key}: {}\n", clean(&plain(value))),
        }
    }
    Ok((item, text))
}
