//! Reads why a container ended or a replacement failed, before it is started again or goes: how it ended, and the end of its log
//! without the secrets that are in the agent's files.

use std::collections::VecDeque;
use std::time::Duration;

use engine::{Container, ContainerDetails, ContainerState, LABEL_SPEC_DIGEST, LogChunk};
use futures::StreamExt;
use schema::adapter::{Agent, Found, SecretPaths};
use schema::config::secret_texts;
use schema::container::ContainerRow;
use schema::home::FoundFile;
use schema::ids::Timestamp;
use schema::live::{LogOptions, Loss};
use tokio::time::timeout;

use super::names::Names;
use super::observe::Seen;
use super::plan::{
    EVICTED, NODE_LOST, OUT_OF_MEMORY, REMOVED, START_LIMIT, WITH_ENGINE, ended_with_engine,
    failed_to_start,
};
use super::settings::LABEL_CONFIG_DIGEST;
use super::{ContainerError, ContainerReconciler};
use crate::agent_config::{LIMIT, parse_noted};
use crate::runtime::blocking;

/// Log lines that are kept.
const LINES: usize = 20;
/// Records of the log that are asked for: one for each line, and one for the first of each stream, which may be no whole.
const RECORDS: u32 = 22;
/// So many first records may go on with what came before them.
const FIRST: u32 = 4;
/// Longest line that is kept, in characters.
const LONGEST_LINE: usize = 200;
/// Longest words of the engine that are kept, in characters.
const LONGEST_ERROR: usize = 300;
/// How much of a line is held, of which the first characters are shown: each secret is looked for in all of it.
const HELD: usize = 4 << 10;
/// How long the engine may take to report the log: the way back waits for it.
const READ_TIME: Duration = Duration::from_secs(3);
/// A shorter text is in too many lines by chance to be taken for a secret.
const SHORTEST_SECRET: usize = 6;
/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";
/// Cause of the end of a hung agent.
pub(super) const UNRESPONSIVE: &str = "unresponsive, stopped by the service";
/// Exit code of a process that a signal has ended, without the signal's number.
const SIGNALLED: i64 = 128;
/// Signals that end processes.
const SIGNALS: &[(i64, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
];

/// Evidence of a container that has ended, or of a replacement that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Why, in a clause.
    pub cause: String,
    /// The last lines of its log, the oldest first; none when they could not be read, or not cleaned.
    pub log: Vec<String>,
}

impl ContainerReconciler {
    /// Reads why the container in use has ended, or failed as a replacement, if that is not noted yet.
    pub(super) async fn see_end(
        &self,
        seen: &Seen,
        row: &ContainerRow,
        names: &Names,
        agent: &Agent,
    ) -> Result<Option<Evidence>, ContainerError> {
        let Some(base) = seen.named(&names.base) else {
            return Ok(None);
        };
        let details = seen.details.get(&base.id);
        let is_replacement = seen.named(&names.prev).is_some();
        let is_new = if is_replacement {
            seen.fits(base, row) && has_failed(seen, base) && !is_noted(seen, row)
        } else {
            let at = exit_time(base, details);
            base.state == ContainerState::Exited && row.facts.last_exit_at != Some(at)
        };
        if !is_new {
            return Ok(None);
        }
        // It may have been given secrets that its files do not name any more.
        let label = base.labels.get(LABEL_CONFIG_DIGEST);
        let has_other_files = row.files.pending || label != row.files.restart_digest.as_ref();
        let secrets = match has_other_files {
            true => None,
            false => self.secrets(row, agent).await?,
        };
        let error = details.map_or("", |details| &details.error);
        let error = match &secrets {
            _ if error.is_empty() => String::new(),
            Some(secrets) => clean(error.as_bytes(), secrets, LONGEST_ERROR),
            None => "the engine refused it".to_owned(),
        };
        let ending = exit_cause(details);
        let cause = match base.state {
            ContainerState::Running => {
                let seconds = seen.readiness_timeout.as_secs();
                format!("the replacement was not ready within {seconds} s")
            }
            ContainerState::Starting => {
                let seconds = START_LIMIT.as_secs();
                let waiting = base.waiting.as_ref().map_or("", |waiting| &waiting.message);
                let waiting = match &secrets {
                    Some(secrets) => clean(waiting.as_bytes(), secrets, LONGEST_ERROR),
                    None => String::new(),
                };
                let colon = if waiting.is_empty() { "" } else { ": " };
                format!(
                    "the engine did not start the replacement within {seconds} s{colon}{waiting}"
                )
            }
            _ if is_replacement && !error.is_empty() => {
                format!("the replacement could not be started: {error}")
            }
            _ if is_replacement => {
                let ready = ready_for(base, row, details);
                format!("the replacement ended with {ending}{ready}")
            }
            _ if seen.unanswered.is_some() => UNRESPONSIVE.to_owned(),
            _ if !error.is_empty() => format!("{ending}: {error}"),
            _ => ending,
        };
        let log = match secrets {
            Some(secrets) => self.last_lines(&base.id, secrets).await,
            None => Vec::new(),
        };
        Ok(Some(Evidence { cause, log }))
    }

    /// What must not be shown of what the agent or the engine says. `None`: the agent's files cannot be read, or are not
    /// what was written, so nobody knows.
    async fn secrets(
        &self,
        row: &ContainerRow,
        agent: &Agent,
    ) -> Result<Option<Vec<String>>, ContainerError> {
        let adapter = self.shared.adapters.at(row.adapter_generation).await?;
        let paths = [agent.config_file.as_str(), agent.security_file.as_str()];
        let data_dir = &self.shared.data_dir;
        let found = data_dir.read_agent_files(&row.name, &row.uid, paths, LIMIT);
        let Ok([config, security]) = found.await else {
            return Ok(None);
        };
        let applied = self.store.settings_applied(&row.uid).await?;
        let environment = agent.environment.clone();
        let secrets = move || {
            parse_noted([&config, &security], || {
                let bytes =
                    |file: &'_ Option<FoundFile>| file.as_ref().map(|file| file.bytes.clone());
                let (config, security) = (bytes(&config), bytes(&security));
                let found = Found {
                    config: config.as_deref(),
                    security: security.as_deref(),
                };
                // The agent was given what is not there any more, and nobody knows it either.
                if let Some(applied) = &applied
                    && adapter.has_drifted(applied, found).unwrap_or(true)
                {
                    return None;
                }
                let mut secrets = adapter.secrets_in(found).ok()?;
                // Of variables, only names tell.
                let environment = environment
                    .into_iter()
                    .map(|(name, value)| (name, value.into()));
                let environment = serde_json::Value::Object(environment.collect());
                secrets.extend(secret_texts(environment, &SecretPaths::default()));
                Some(pieces(secrets))
            })
        };
        Ok(blocking(secrets).await)
    }

    /// The last lines of a container's log, as far as the engine reports them in time.
    async fn last_lines(&self, id: &str, secrets: Vec<String>) -> Vec<String> {
        let options = LogOptions {
            tail: Some(RECORDS),
            ..LogOptions::default()
        };
        let mut tail = Tail::default();
        let read = async {
            let Ok(mut log) = self.shared.compute.containers.logs(id, &options).await else {
                return;
            };
            while let Some(Ok(chunk)) = log.next().await {
                tail.push(&chunk);
            }
        };
        // What came in time is kept.
        let _ = timeout(READ_TIME, read).await;
        // The agent may have written many of both.
        blocking(move || tail.cleaned(&secrets)).await
    }
}

/// Reports that a replacement has ended, or was not ready in time.
fn has_failed(seen: &Seen, base: &Container) -> bool {
    match base.state {
        ContainerState::Running => {
            seen.ready != Some(true) && seen.waited >= seen.readiness_timeout
        }
        ContainerState::Starting => seen.starting_for >= START_LIMIT,
        // One that was never started is started first.
        ContainerState::Created => failed_to_start(seen.details.get(&base.id)),
        ContainerState::Exited => !ended_with_engine(seen.details.get(&base.id)),
        ContainerState::Dead
        | ContainerState::Paused
        | ContainerState::Restarting
        | ContainerState::Removing => true,
    }
}

/// Reports that the failure of this replacement is remembered already.
fn is_noted(seen: &Seen, row: &ContainerRow) -> bool {
    let wanted = seen.wanted.as_ref();
    let digest = wanted.and_then(|wanted| wanted.labels.get(LABEL_SPEC_DIGEST));
    row.facts.failed_digest.as_ref() == digest
}

/// Returns how long a replacement that ended had been ready, as the end of a clause.
fn ready_for(base: &Container, row: &ContainerRow, details: Option<&ContainerDetails>) -> String {
    let facts = &row.facts;
    let is_known = facts.engine_id.as_ref() == Some(&base.id);
    match facts.ready_at.filter(|_| is_known) {
        Some(ready_at) => {
            let ended_at = exit_time(base, details);
            let seconds = ended_at.since(ready_at).as_secs();
            format!(", {seconds} s after it was ready")
        }
        None => " before it was ready".to_owned(),
    }
}

/// Returns when a container ended, as the engine says.
pub(super) fn exit_time(base: &Container, details: Option<&ContainerDetails>) -> Timestamp {
    let finished_at = details.and_then(|details| details.finished_at);
    finished_at.unwrap_or(base.created_at)
}

/// Returns how a container's process ended, in a clause: `exit code 137, out of memory`.
pub(super) fn exit_cause(details: Option<&ContainerDetails>) -> String {
    match details.and_then(|details| details.loss) {
        Some(Loss::Evicted) => return EVICTED.to_owned(),
        Some(Loss::NodeLost) => return NODE_LOST.to_owned(),
        Some(Loss::Removed) => return REMOVED.to_owned(),
        Some(Loss::EngineStopped) => return WITH_ENGINE.to_owned(),
        None => {}
    }
    let Some(code) = details.and_then(|details| details.exit_code) else {
        return "no exit code".to_owned();
    };
    if details.is_some_and(|details| details.oom_killed) {
        return format!("exit code {code}, {OUT_OF_MEMORY}");
    }
    let signal = SIGNALS
        .iter()
        .find(|(number, _)| code == SIGNALLED + number);
    match signal {
        Some((_, name)) => format!("exit code {code} ({name})"),
        None => format!("exit code {code}"),
    }
}

/// The end of a log as it comes.
#[derive(Default)]
struct Tail {
    /// The line under way of each stream: parts of both may alternate.
    open: [Line; 2],
    lines: VecDeque<Line>,
    records: u32,
}

#[derive(Default, Clone)]
struct Line {
    bytes: Vec<u8>,
    /// The number of the record with which it begins.
    record: u32,
    /// Another line of its stream came before.
    follows: bool,
}

impl Tail {
    fn push(&mut self, chunk: &LogChunk) {
        self.records += 1;
        let [out, err] = &mut self.open;
        let open = if chunk.stderr { err } else { out };
        if open.bytes.is_empty() {
            open.record = self.records;
        }
        for part in chunk.bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = HELD.saturating_sub(open.bytes.len());
            open.bytes.extend(part.iter().take(room));
            if part.ends_with(b"\n") {
                let next = Line {
                    follows: true,
                    ..Line::default()
                };
                self.lines.push_back(std::mem::replace(open, next));
                if self.lines.len() > RECORDS as usize {
                    self.lines.pop_front();
                }
            }
        }
    }

    /// The last lines, cleaned. Where there is more log, a first line may be the end of a longer one, and begin within a
    /// secret. Parts of one line are written in a row; hardly anything comes between them.
    fn cleaned(mut self, secrets: &[String]) -> Vec<String> {
        self.lines.extend(self.open);
        // A line without an end began before a later one of the other stream.
        self.lines.make_contiguous().sort_by_key(|line| line.record);
        let begins = self.records < RECORDS;
        // From the end: no more of them are cleaned than are kept.
        let lines = self.lines.iter().rev();
        let lines = lines.filter(|line| begins || line.follows || line.record > FIRST);
        let lines = lines.map(|line| clean(&line.bytes, secrets, LONGEST_LINE));
        let lines = lines.filter(|line| !line.is_empty());
        let mut lines: Vec<String> = lines.take(LINES).collect();
        lines.reverse();
        lines
    }
}

/// A line without escape sequences, control characters and secrets, cut to so many characters.
fn clean(line: &[u8], secrets: &[String], longest: usize) -> String {
    let stripped = strip_ansi_escapes::strip(line);
    let text = String::from_utf8_lossy(&stripped);
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let mut text: String = text.chars().map(shown).collect();
    // Before it is cut: half a secret is one, too.
    for secret in secrets {
        if text.contains(secret) {
            text = text.replace(secret, REDACTED);
        }
    }
    for scheme in ["basic ", "bearer "] {
        text = without_credentials(&text, scheme);
    }
    let text = text.trim();
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A text without what follows the name of a way to sign in: it may be a secret in another form.
fn without_credentials(text: &str, scheme: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    // As long as the text, and with the same boundaries.
    let lower = text.to_ascii_lowercase();
    let found = |rest: &str| lower.get(text.len() - rest.len()..)?.find(scheme);
    while let Some(at) = found(rest) {
        let (before, after) = rest.split_at(at + scheme.len());
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        let (word, next) = after.split_at(end);
        kept.push_str(before);
        kept.push_str(if word.len() < SHORTEST_SECRET {
            word
        } else {
            REDACTED
        });
        rest = next;
    }
    kept.push_str(rest);
    kept
}

/// Secrets and their words, such as the token in `Bearer …`, the password of a URL and the lines of a key, also as they are
/// written in JSON and in URLs, the longest first: of two, one of which is in the other, the whole is replaced.
fn pieces(secrets: Vec<String>) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for secret in secrets {
        let words = |more: &'static str| {
            let ends = move |c: char| c.is_whitespace() || ",;=".contains(c) || more.contains(c);
            let words = secret.split(ends).map(str::to_owned);
            words.filter(|word| word.len() >= SHORTEST_SECRET)
        };
        let words: Vec<String> = words("").chain(words(":@/?&\"'")).collect();
        for piece in words.into_iter().chain([secret]) {
            let quoted = serde_json::Value::from(piece.as_str()).to_string();
            pieces.push(quoted.trim_matches('"').to_owned());
            pieces.push(url::form_urlencoded::byte_serialize(piece.as_bytes()).collect());
            pieces.push(piece);
        }
    }
    pieces.retain(|piece| piece.len() >= SHORTEST_SECRET);
    pieces.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    pieces.dedup();
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(stderr: bool, text: &str) -> LogChunk {
        LogChunk {
            stderr,
            bytes: text.as_bytes().to_vec().into(),
        }
    }

    /// A log of records of one stream, a line each.
    fn last_of(log: &str, secrets: &[String]) -> Vec<String> {
        let mut tail = Tail::default();
        let records: Vec<&str> = log.split_inclusive('\n').collect();
        let surplus = records.len().saturating_sub(RECORDS as usize);
        for record in &records[surplus..] {
            tail.push(&chunk(false, record));
        }
        tail.cleaned(secrets)
    }

    #[test]
    fn lines_are_cleaned_bounded_and_without_secrets() {
        let secrets = pieces(vec!["Bearer tok-en-1".to_owned(), "12345".to_owned()]);
        let long = "x".repeat(1000);
        let log = format!(
            "old\n{}\x1b[31mred\x1b[0m\x07 with tok-en-1\r\nBearer tok-en-1 12345\n{long}\n\n\u{1b}]0;t",
            "a\n".repeat(30)
        );
        let lines = last_of(&log, &secrets);
        let tail: Vec<&str> = lines.iter().rev().take(3).map(String::as_str).collect();
        assert_eq!(tail[0], format!("{}…", "x".repeat(LONGEST_LINE)));
        assert_eq!(tail[1], "[redacted] 12345", "too short to be told apart");
        assert_eq!(tail[2], "red with [redacted]");
        // The whole of `Bearer tok-en-1` was replaced, not a part of it.
        assert!(lines.iter().all(|line| !line.chars().any(char::is_control)));
        assert_eq!(last_of(&"a\n".repeat(30), &[]).len(), LINES);
        assert_eq!(
            last_of("why", &[]),
            ["why"],
            "a short log begins with its first line"
        );
    }

    #[test]
    fn a_secret_at_the_edge_of_a_line_is_not_cut_in_half() {
        let secret = "s3cret-token".to_owned();
        let line = format!("{}{secret}", "x".repeat(LONGEST_LINE - 4));
        let lines = last_of(&line, &[secret]);
        assert!(!lines[0].contains("s3c"), "{lines:?}");
    }

    #[test]
    fn half_a_secret_is_in_no_line_whose_begin_is_not_known_or_that_others_interrupt() {
        let secrets = [String::from("s3cret-token")];
        let mut tail = Tail::default();
        // The engine reports the end of a long line first.
        tail.push(&chunk(true, "-token was refused\n"));
        tail.push(&chunk(false, "with s3cret"));
        tail.push(&chunk(true, "another word\n"));
        tail.push(&chunk(false, "-token\n"));
        for n in 0..RECORDS - 4 {
            tail.push(&chunk(false, &format!("{n}\n")));
        }
        let lines = tail.cleaned(&secrets);
        assert_eq!(lines[..2], ["another word", "0"], "{lines:?}");
    }

    #[test]
    fn a_secret_is_found_in_each_form_in_which_it_is_written() {
        let url = "bob:pw123456@h/x?token=abcdefgh".to_owned();
        let secrets = pieces(vec![
            url,
            "pa\"ss\\word1".to_owned(),
            "p@ss/word".to_owned(),
        ]);
        for line in [
            "password pw123456 rejected",
            "https://bob:pw123456@h/x",
            r#"{"password":"pa\"ss\\word1"}"#,
            "?password=p%40ss%2Fword&x",
            "Authorization: Basic Ym9ib3BhYmJhYmE2",
        ] {
            let clean = clean(line.as_bytes(), &secrets, LONGEST_LINE);
            assert!(clean.contains(REDACTED), "{clean}");
            for half in ["pw123456", "ss\\", "%40ss", "Ym9ib3"] {
                assert!(!clean.contains(half), "{clean}");
            }
        }
    }
}
