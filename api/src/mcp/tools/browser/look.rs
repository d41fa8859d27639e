//! Reading a page: as text, as an outline, as HTML, and element by element.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::page::{self, Failed, Script};
use crate::mcp::tools::CallResult;
use crate::mcp::tools::bounded::{Few, MOST, Named};
use crate::mcp::tools::result::text_of_answer;
use crate::mcp::tools::text::{self, Part};
use crate::mcp::tools::turn::{Arguments, Stop, Turn, arguments, only};

/// Said where an outline was asked for.
const NO_SCRIPTS: &str = "The page's Content-Security-Policy lets no script run in it, so this is its text and its links, without refs.";
/// Number of links of an outline without scripts, and of a list of links if nothing else is asked for.
const LINKS: usize = 100;
/// Number of links of a list if those are asked for that contain something.
const MATCHING: usize = 1000;
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
    links: Few<Link>,
    /// Number of all links, of which these are the first.
    #[serde(default)]
    total: Option<usize>,
}

fn told(part: &Part, ours: Option<&str>) -> CallResult {
    let note = part.note();
    let ours: Vec<&str> = ours.into_iter().chain(note.as_deref()).collect();
    let ours = (!ours.is_empty()).then(|| ours.join("\n"));
    CallResult::quoting(ours, &part.text).with(&part.facts())
}

pub(super) async fn content(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let asked = text::asked(given)?;
    let made = move |found: &str| (found.is_empty(), told(&text::part(found, asked), None));
    let (nothing, told) = visible_text(turn, &only(given, &["selector"]), made).await?;
    match given.get("selector") {
        // It has no text for what is not there, either, nor for buttons.
        Some(selector) if nothing && turn.is_plain_browser() => {
            element_text(turn, selector, asked).await
        }
        _ => Ok(told),
    }
}

/// Reads the text of an element by a script, or none where none runs.
///
/// # Errors
/// The element is missing.
async fn element_text(
    turn: &mut Turn<'_>,
    selector: &Value,
    asked: (usize, usize),
) -> Result<CallResult, Stop> {
    #[derive(Deserialize)]
    struct Found {
        content: String,
    }
    let given = json!({ "selector": selector });
    let made = move |found: Found| told(&text::part(&found.content, asked), None);
    match page::run(turn, Script::Content, given, made).await {
        Err(Failed::Blocked) => {}
        done => return done.map_err(Failed::stop),
    }
    // It fails for what is not there.
    let known = arguments(json!({"selector": selector, "name": "id"}));
    let known = turn.ask("browser_get_attribute", &known).await?;
    text_of_answer("browser_get_attribute", known)?;
    Ok(told(&text::part("", asked), None))
}

/// Makes something of the text of the page, or of one element.
pub(super) async fn visible_text<R: Send + 'static>(
    turn: &mut Turn<'_>,
    given: &Arguments,
    make: impl FnOnce(&str) -> R + Send + 'static,
) -> Result<R, Stop> {
    let outcome = turn.ask("browser_get_content", given).await?;
    turn.parse_answer("browser_get_content", outcome, |tool, outcome| {
        Ok(make(&text_of_answer(tool, outcome)?))
    })
    .await
}

pub(super) async fn links(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let contains = given.get("contains").and_then(Value::as_str);
    let contains = contains.map(ToOwned::to_owned);
    let limit = given.get("limit").and_then(Value::as_u64);
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.unwrap_or(if contains.is_some() { MATCHING } else { LINKS });
    if turn.is_plain_browser() {
        let mut asked = given.clone();
        asked.insert("limit".to_owned(), json!(limit));
        let made = |found: Links| listed_links(&found.links.0, found.total);
        match page::run(turn, Script::Links, Value::Object(asked), made).await {
            Err(Failed::Blocked) => {}
            done => return done.map_err(Failed::stop),
        }
    }
    let mut asked = only(given, &["selector"]);
    // Its own limit is 100, and what is left out must not count. One more says whether there are more.
    let most = match contains {
        None => limit + 1,
        Some(_) => MOST,
    };
    asked.insert("limit".to_owned(), json!(most));
    let made = move |found: Links| {
        let mut found = found.links.0;
        let all = found.len();
        if let Some(part) = contains {
            found.retain(|link: &Link| link.text.contains(&part) || link.href.contains(&part));
        }
        let total = found.len();
        found.truncate(limit);
        let mut listed = listed_links(&found, Some(total));
        if all >= MOST {
            let note =
                format!("only the first {MOST} links of the page were looked at: give selector");
            listed = listed.noting([note]);
        }
        listed
    };
    turn.read("browser_get_links", &asked, made).await
}

/// Links, and a note if there are more than these.
fn listed_links(found: &[Link], total: Option<usize>) -> CallResult {
    let facts = json!({ "links": found });
    let part = text::part(&all_lines(found), (0, text::USUAL));
    let total = total.unwrap_or(found.len());
    let mut notes = Vec::new();
    if total > found.len() {
        notes.push(format!(
            "these are the first {} of more links: give limit (at most 1000), contains or selector",
            found.len()
        ));
    }
    if part.next.is_some() {
        notes.push("the list is cut: give a lower limit, contains or selector".to_owned());
    }
    CallResult::quoting(None, &part.text)
        .with(&facts)
        .noting(notes)
}

fn lines(links: &[Link]) -> String {
    text::part(&all_lines(links), (0, text::USUAL)).text
}

fn all_lines(links: &[Link]) -> String {
    let line = |link: &Link| format!("{} <{}>", link.text.trim(), link.href);
    let all: Vec<_> = links.iter().map(line).collect();
    all.join("\n")
}

#[derive(Deserialize)]
struct Outline {
    url: String,
    title: String,
    outline: String,
    more: bool,
    #[serde(default)]
    cut: Option<u64>,
}

pub(super) async fn snapshot(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let asked = text::asked(given)?;
    let made = move |it: Outline| {
        let whole = format!("{}\n{}\n{}", it.url, it.title, it.outline);
        let more = match it.cut {
            Some(at) => Some(format!(
                "The page is very large: the outline was cut at {at} nodes. Give selector or depth to see the rest."
            )),
            None => it.more.then(|| {
                "The page is too large for one outline: give selector, depth or interactiveOnly to see the rest.".to_owned()
            }),
        };
        told(&text::part(&whole, asked), more.as_deref())
    };
    let whole = Value::Object(given.clone());
    match page::run(turn, Script::Snapshot, whole, made).await {
        Ok(outline) => Ok(outline),
        Err(Failed::Blocked) => text_and_links(turn, given, asked).await,
        Err(Failed::Stop(stop)) => Err(stop),
    }
}

async fn text_and_links(
    turn: &mut Turn<'_>,
    given: &Arguments,
    asked: (usize, usize),
) -> Result<CallResult, Stop> {
    let within = only(given, &["selector"]);
    let content = visible_text(turn, &within, ToOwned::to_owned).await?;
    let made = move |Links {
                         links: Few(mut found),
                         ..
                     }| {
        found.truncate(LINKS);
        let whole = format!("{content}\n{}", lines(&found));
        told(&text::part(&whole, asked), Some(NO_SCRIPTS))
    };
    turn.read("browser_get_links", &within, made).await
}

/// Elements, as many as a script could look at within its budget.
#[derive(Debug, Deserialize)]
struct Elements<T> {
    elements: Few<T>,
    #[serde(default)]
    cut: Option<Cut>,
    /// More elements match than the limit lets through.
    #[serde(default)]
    more: bool,
}

/// Place at which the budget of a script was spent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Cut {
    at: u64,
    of: u64,
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
    let made = move |found: Elements<Found>| listed(&found, line);
    let found = page::run(turn, Script::Find, Value::Object(asked), made);
    found.await.map_err(Failed::stop)
}

/// An element that a selector matches.
#[derive(Debug, Serialize, Deserialize)]
struct Matched {
    #[serde(rename = "ref")]
    mark: Option<String>,
    text: String,
    attributes: Named<Option<String>>,
}

pub(super) async fn query(turn: &mut Turn<'_>, given: &Arguments) -> Result<CallResult, Stop> {
    let mut asked = given.clone();
    asked.entry("limit").or_insert(json!(50));
    let line = |it: &Matched| {
        let mark = it.mark.as_ref().map(|mark| format!("[ref={mark}] "));
        let attributes = match it.attributes.0.is_empty() {
            true => String::new(),
            false => format!(" {}", json!(it.attributes)),
        };
        format!("- {}{}{attributes}", mark.unwrap_or_default(), it.text)
    };
    let made = move |found: Elements<Matched>| listed(&found, line);
    let found = page::run(turn, Script::Query, Value::Object(asked), made);
    found.await.map_err(Failed::stop)
}

fn listed<T: Serialize>(found: &Elements<T>, line: impl Fn(&T) -> String) -> CallResult {
    let Elements {
        elements: Few(all),
        cut,
        more,
    } = found;
    let facts = json!({ "elements": all, "cut": cut });
    let cut = cut.map(|Cut { at, of }| {
        format!(
            "The page is very large: cut at {at} of {of} elements. browser_query with a narrow selector reads the rest."
        )
    });
    if all.is_empty() {
        let said = cut.map(|cut| format!("nothing that was looked at matches. {cut}"));
        let said = said.unwrap_or_else(|| "nothing on the page matches".to_owned());
        return CallResult::text(said).with(&facts);
    }
    let lines: Vec<_> = all.iter().map(line).collect();
    let part = text::part(&lines.join("\n"), (0, text::USUAL));
    let too_long = (part.next.is_some()).then(|| "The list is cut: give a lower limit.".to_owned());
    let count = all.len();
    let more = more.then(|| {
        format!(
            "These are the first {count} of more elements: give a higher limit, or ask for less."
        )
    });
    let ours: Vec<_> = cut.into_iter().chain(more).chain(too_long).collect();
    let ours = (!ours.is_empty()).then(|| ours.join("\n"));
    CallResult::quoting(ours, &part.text).with(&facts)
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
    let made = move |found: Html| {
        let to = from.saturating_add(most);
        let part = Part {
            // A page may say more than it was asked for.
            text: text::part(&found.text, (0, most)).text,
            next: (to < found.length).then_some(to),
            length: found.length,
        };
        told(&part, None)
    };
    let found = page::run(turn, Script::Html, Value::Object(asked), made);
    found.await.map_err(Failed::stop)
}
