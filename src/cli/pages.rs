//! Lists of the server, read to the end, page by page.

use clap::Args;
use serde_json::Value;

use super::kinds::{KindInfo, Paging};
use super::output::OutputArgs;
use super::output::cell::number;
use super::output::items::{Amount, Printer};
use super::output::screen;
use super::server::Server;
use super::{Failure, Result, admin, suggest};

/// The most that the server gives at once.
const PAGE_SIZE: u64 = 200;
/// Names searched for what may have been meant.
const SUGGESTED_FROM: usize = 5000;

/// What a list command prints, and how.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Filter by text
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub search: String,
    /// How it is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A list that is read page by page.
pub struct Pages<'a> {
    server: &'a Server,
    kind: &'static KindInfo,
    search: String,
    parameters: Vec<String>,
    next: Option<u64>,
    /// Where a watch continues from this list, as of its first page.
    pub watch_id: Option<String>,
    /// Note on what the list leaves out, from its first page.
    note: Option<String>,
}

impl<'a> Pages<'a> {
    /// All things of a kind whose name contains `search`.
    pub fn new(server: &'a Server, kind: &'static KindInfo, search: &str) -> Self {
        Self {
            server,
            kind,
            search: search.to_owned(),
            parameters: Vec::new(),
            next: Some(1),
            watch_id: None,
            note: None,
        }
    }

    /// Asks with one more parameter, `name=value`.
    pub fn with(mut self, parameter: impl Into<String>) -> Self {
        self.parameters.push(parameter.into());
        self
    }

    /// Prints all of them, each as `adapt` leaves it.
    ///
    /// # Errors
    /// When no server answers, or it refuses.
    pub async fn print(mut self, output: OutputArgs, adapt: impl Fn(&mut Value)) -> Result {
        let mut printer = Printer::new(self.kind, output, Amount::List);
        while let Some(mut items) = self.next().await? {
            items.iter_mut().for_each(&adapt);
            printer.print(&items)?;
        }
        if let Some(note) = self.note {
            screen::note(&note);
        }
        printer.end()
    }

    fn path(&self, page: u64) -> String {
        let mut path = self.kind.path.to_string();
        let mut add = |text: String| {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(&text);
        };
        for parameter in &self.parameters {
            add(parameter.clone());
        }
        if self.kind.paging != Paging::Whole {
            add(format!("page={page}&page_size={PAGE_SIZE}"));
        }
        if self.kind.paging == Paging::Searched && !self.search.is_empty() {
            add(format!("search={}", admin::escaped(&self.search)));
        }
        path
    }

    /// The next page; `None` behind the last.
    ///
    /// # Errors
    /// When no server answers, or it refuses.
    pub async fn next(&mut self) -> Result<Option<Vec<Value>>> {
        let Some(page) = self.next.take() else {
            return Ok(None);
        };
        let answer = self.server.get(&self.path(page)).await;
        // A parameter may name the object that is not found.
        let mut body = answer.map_err(|failure| match self.parameters.is_empty() {
            true => not_known(failure, self.kind.plural),
            false => failure,
        })?;
        // A list that became shorter answers with its last page once more.
        if body["page"]
            .as_u64()
            .is_some_and(|answered| answered < page)
        {
            return Ok(None);
        }
        if page < number(&body, "total_pages") {
            self.next = Some(page + 1);
        }
        if page == 1 {
            self.watch_id = body["watch_id"].as_str().map(str::to_owned);
            self.note = body["note"].as_str().map(str::to_owned);
        }
        let items = body.get_mut(self.kind.list).map(Value::take);
        let Some(Value::Array(mut items)) = items else {
            let list = self.kind.list;
            return Err(Failure::Failed(format!(
                "the server's answer has no list {list:?}; it may be of another version"
            )));
        };
        if self.kind.paging != Paging::Searched && !self.search.is_empty() {
            let search = self.search.to_lowercase();
            items.retain(|item| self.kind.name(item).to_lowercase().contains(&search));
        }
        Ok(Some(items))
    }
}

/// A missing list is not a missing thing, but a server of another version.
pub fn not_known(failure: Failure, what: &str) -> Failure {
    match failure {
        Failure::NotFound(_) => Failure::Failed(format!(
            "the server does not list {what}; it may be of another version than this command"
        )),
        other => other,
    }
}

/// What the server lists under this name; names differ in more than case.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn find(
    server: &Server,
    kind: &'static KindInfo,
    name: &str,
) -> Result<(Option<Value>, Option<String>)> {
    // Objects of all kinds are searched by name, but called kind/name.
    let search = name.rsplit('/').next().unwrap_or(name);
    let mut pages = Pages::new(server, kind, search);
    while let Some(items) = pages.next().await? {
        let mut items = items.into_iter();
        if let Some(found) = items.find(|item| kind.name(item).eq_ignore_ascii_case(name)) {
            return Ok((Some(found), pages.watch_id));
        }
    }
    Ok((None, pages.watch_id))
}

/// Why nothing was found, with what may have been meant.
///
/// # Errors
/// Always; with another failure when no server answers.
pub async fn missing(server: &Server, kind: &'static KindInfo, name: &str) -> Failure {
    let mut names = Vec::new();
    let mut pages = Pages::new(server, kind, "");
    loop {
        match pages.next().await {
            Ok(Some(items)) => names.extend(items.iter().map(|item| kind.name(item))),
            Ok(None) => break,
            Err(failure) => return failure,
        }
        if names.len() >= SUGGESTED_FROM {
            break;
        }
    }
    let guesses = suggest::closest(name, names);
    let guesses: Vec<String> = guesses
        .iter()
        .map(|guess| format!("{}/{guess}", kind.singular))
        .collect();
    Failure::NotFound(format!(
        "{}/{name} not found{}; `{} get {}` lists the {}",
        kind.singular,
        suggest::did_you_mean(&guesses),
        server.command,
        kind.typed(),
        kind.plural
    ))
}
