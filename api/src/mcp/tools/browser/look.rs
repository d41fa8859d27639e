//! Reading a page: as text, as an outline, as HTML, and element by element.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::page::{self, Failed, Script};
use crate::mcp::tools::CallResult;
use crate::mcp::tools::result::text_of_answer;
use crate::mcp::tools::text::{self, Part};
use crate::mcp::tools::turn::{Arguments, Stop, Turn, made_of, only};

/// Said where an outline was asked for.
const NO_SCRIPTS: &str = "The page's Content-Security-Policy lets no script run in it, so this is its text and its links, without refs.";
/// How many links an outline without scripts has.
const LINKS: usize = 100;
/// Most characters of HTML that are fetched at once.
const HTML: usize = 200_000;

/// A link.
#[derive(Debug, Serialize, Deserialize)]
struct Link {
    #[serde(default)]
    text: String,
    #[serde(default)]
    href: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

#[derive(Deserialize)]
struct Links {
    links: Vec<Link>,
}

fn told(part: &Part, ours: Option<&str>) -> CallResult {
    let note = part.note();
    let ours: Vec<&str> = ours.into_iter().chain(note.as_deref()).collect();
    let ours = (!ours.is_empty()).then(|| ours.join("\n"));
    CallResult::quoting(ours, &part.text).with(&part.facts())
}

pub(super) async fn content(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let asked = text::asked(given)?;
    let found = visible_text(turn, &only(given, &["selector"])).await?;
    Ok(told(&text::part(&found, asked), None))
}

/// The text of the page, or of one element.
pub(super) async fn visible_text(turn: &mut Turn<'_>, given: &Arguments) -> Result<String, Stop> {
    let outcome = turn.ask("browser_get_content", given).await?;
    let text = made_of("browser_get_content", outcome, text_of_answer).await?;
    text.map_err(Stop::Said)
}

pub(super) async fn links(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let contains = given.get("contains").and_then(Value::as_str);
    let limit = given.get("limit").and_then(Value::as_u64);
    // What is left out must not count.
    let own = match contains {
        None => &["selector", "limit"][..],
        Some(_) => &["selector"][..],
    };
    let mut found: Links = turn.read("browser_get_links", &only(given, own)).await?;
    let there = |link: &Link| {
        contains.is_none_or(|part| link.text.contains(part) || link.href.contains(part))
    };
    found.links.retain(there);
    if let Some(limit) = limit {
        found
            .links
            .truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    Ok(CallResult::quoting(None, &lines(&found.links)).with(&json!({ "links": found.links })))
}

fn lines(links: &[Link]) -> String {
    let line = |link: &Link| format!("{} <{}>", link.text.trim(), link.href);
    let all: Vec<_> = links.iter().map(line).collect();
    text::part(&all.join("\n"), (0, text::USUAL)).text
}

#[derive(Deserialize)]
struct Outline {
    url: String,
    title: String,
    outline: String,
    more: bool,
}

pub(super) async fn snapshot(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let asked = text::asked(given)?;
    let outline: Outline =
        match page::run(turn, Script::Snapshot, &Value::Object(given.clone())).await {
            Ok(outline) => outline,
            Err(Failed::Blocked) => return text_and_links(turn, given, asked).await,
            Err(Failed::Stop(stop)) => return Err(stop),
        };
    let whole = format!("{}\n{}\n{}", outline.url, outline.title, outline.outline);
    let more = outline.more.then_some(
        "The page is too large for one outline: give selector, depth or interactiveOnly to see the rest.",
    );
    Ok(told(&text::part(&whole, asked), more))
}

async fn text_and_links(
    turn: &mut Turn<'_>,
    given: &Arguments,
    asked: (usize, usize),
) -> Result<CallResult, Stop> {
    let within = only(given, &["selector"]);
    let content = visible_text(turn, &within).await?;
    let mut found: Links = turn.read("browser_get_links", &within).await?;
    found.links.truncate(LINKS);
    let whole = format!("{content}\n{}", lines(&found.links));
    Ok(told(&text::part(&whole, asked), Some(NO_SCRIPTS)))
}

/// An element that was found.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    #[serde(rename = "ref")]
    mark: Option<String>,
    role: String,
    name: String,
    context: String,
}

pub(super) async fn find(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    if !["text", "regex", "role"]
        .iter()
        .any(|field| given.contains_key(*field))
    {
        return Err(Stop::said("browser_find: give text, regex or role"));
    }
    let mut asked = given.clone();
    asked.entry("limit").or_insert(json!(20));
    let found: Vec<Found> = page::run(turn, Script::Find, &Value::Object(asked))
        .await
        .map_err(Failed::stop)?;
    let line = |it: &Found| {
        let mark = it.mark.as_ref().map(|mark| format!(" [ref={mark}]"));
        let name = Value::from(it.name.as_str());
        format!(
            "- {} {name}{}: {}",
            it.role,
            mark.unwrap_or_default(),
            it.context
        )
    };
    let lines: Vec<_> = found.iter().map(line).collect();
    Ok(listed(&lines, &json!({ "elements": found })))
}

/// An element that a selector matches.
#[derive(Debug, Serialize, Deserialize)]
struct Matched {
    #[serde(rename = "ref")]
    mark: Option<String>,
    text: String,
    attributes: serde_json::Map<String, Value>,
}

pub(super) async fn query(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let mut asked = given.clone();
    asked.entry("limit").or_insert(json!(50));
    let found: Vec<Matched> = page::run(turn, Script::Query, &Value::Object(asked))
        .await
        .map_err(Failed::stop)?;
    let line = |it: &Matched| {
        let mark = it.mark.as_ref().map(|mark| format!("[ref={mark}] "));
        let attributes = match it.attributes.is_empty() {
            true => String::new(),
            false => format!(" {}", Value::Object(it.attributes.clone())),
        };
        format!("- {}{}{attributes}", mark.unwrap_or_default(), it.text)
    };
    let lines: Vec<_> = found.iter().map(line).collect();
    Ok(listed(&lines, &json!({ "elements": found })))
}

fn listed(lines: &[String], facts: &Value) -> CallResult {
    match lines.is_empty() {
        true => CallResult::text("nothing on the page matches").with(facts),
        false => {
            let part = text::part(&lines.join("\n"), (0, text::USUAL));
            let cut =
                (part.next.is_some()).then(|| "The list is cut: give a lower limit.".to_owned());
            CallResult::quoting(cut, &part.text).with(facts)
        }
    }
}

#[derive(Deserialize)]
struct Html {
    text: String,
    /// As the page counts, in UTF-16.
    length: usize,
}

pub(super) async fn html(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let (from, most) = text::asked(given)?;
    let most = most.min(HTML);
    let mut asked = only(given, &["selector", "outer"]);
    asked.insert("from".to_owned(), json!(from));
    asked.insert("most".to_owned(), json!(most));
    let found: Html = page::run(turn, Script::Html, &Value::Object(asked))
        .await
        .map_err(Failed::stop)?;
    let to = from.saturating_add(most);
    let part = Part {
        text: found.text,
        next: (to < found.length).then_some(to),
        length: found.length,
    };
    Ok(told(&part, None))
}
