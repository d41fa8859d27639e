//! Why a replacement failed, read before its container goes: how it ended, and the end of its log without the
//! secrets that are in the agent's files.

use std::time::Duration;

use futures::StreamExt;
use schema::adapter::{Agent, Found, SecretPaths};
use schema::config::secret_texts;
use schema::container::ContainerRow;
use schema::home::FoundFile;
use schema::live::LogOptions;
use tokio::time::timeout;

use super::names::Names;
use super::observe::Seen;
use super::{ContainerError, ContainerReconciler};
use crate::agent_config::LIMIT;
use crate::drivers::docker::{ContainerState, LABEL_SPEC_DIGEST};
use crate::runtime::blocking;

/// Log lines that are kept.
const LINES: u32 = 20;
/// Longest line that is kept, in characters.
const LONGEST_LINE: usize = 200;
/// Longest words of the engine that are kept, in characters.
const LONGEST_ERROR: usize = 300;
/// How much of the end of the log is held; engines cut no line below 16 KiB.
const HELD: usize = 64 << 10;
/// How long the engine may take to report the log: the way back waits for it.
const READ_TIME: Duration = Duration::from_secs(3);
/// A shorter text is in too many lines by chance to be taken for a secret.
const SHORTEST_SECRET: usize = 6;
/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";

/// What is known of a replacement that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Why, in a clause.
    pub cause: String,
    /// The last lines of its log, the oldest first; none when they could not be read, or not cleaned.
    pub log: Vec<String>,
}

impl ContainerReconciler {
    /// What is known of the replacement in use, if it has failed and its failure is not noted yet.
    pub(super) async fn see_failure(
        &self,
        seen: &Seen,
        row: &ContainerRow,
        names: &Names,
        agent: &Agent,
    ) -> Result<Option<Evidence>, ContainerError> {
        let Some(base) = seen.named(&names.base).filter(|base| seen.fits(base, row)) else {
            return Ok(None);
        };
        let wanted = seen.wanted.as_ref();
        let digest = wanted.and_then(|wanted| wanted.labels.get(LABEL_SPEC_DIGEST));
        let is_noted = row.facts.failed_digest.as_ref() == digest;
        let details = seen.details.get(&base.id);
        let has_ended = match base.state {
            ContainerState::Running => {
                seen.ready != Some(true) && seen.waited >= seen.readiness_timeout
            }
            // One that was never started is started first.
            ContainerState::Created => details.is_some_and(|details| !details.error.is_empty()),
            ContainerState::Exited
            | ContainerState::Dead
            | ContainerState::Paused
            | ContainerState::Restarting
            | ContainerState::Removing => true,
        };
        if seen.named(&names.prev).is_none() || is_noted || !has_ended {
            return Ok(None);
        }
        let code = details.and_then(|details| details.exit_code);
        let code = code.filter(|_| base.state != ContainerState::Running);
        let error = details.map_or("", |details| &details.error);
        let secrets = self.secrets(row, agent).await?;
        let mut cause = match code {
            _ if !error.is_empty() => {
                let error = match &secrets {
                    Some(secrets) => clean(error.as_bytes(), secrets, LONGEST_ERROR),
                    None => "the engine refused it".to_owned(),
                };
                format!("the replacement could not be started: {error}")
            }
            Some(code) => format!("the replacement exited with code {code} before it was ready"),
            None => {
                let seconds = seen.readiness_timeout.as_secs();
                format!("the replacement was not ready within {seconds} s")
            }
        };
        if details.is_some_and(|details| details.oom_killed) {
            cause.push_str(" (killed for using too much memory)");
        }
        let log = match secrets {
            Some(secrets) => self.last_lines(&base.id, secrets).await,
            None => Vec::new(),
        };
        Ok(Some(Evidence { cause, log }))
    }

    /// What must not be shown of what the agent or the engine says. `None`: the agent's files cannot be read, so
    /// nobody knows.
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
        let environment = agent.environment.clone();
        let secrets = move || {
            let bytes = |file: &'_ Option<FoundFile>| file.as_ref().map(|file| file.bytes.clone());
            let (config, security) = (bytes(&config), bytes(&security));
            let found = Found {
                config: config.as_deref(),
                security: security.as_deref(),
            };
            let mut secrets = adapter.secrets_in(found).ok()?;
            // Of variables, only names tell.
            let environment = environment
                .into_iter()
                .map(|(name, value)| (name, value.into()));
            let environment = serde_json::Value::Object(environment.collect());
            secrets.extend(secret_texts(environment, &SecretPaths::default()));
            Some(pieces(secrets))
        };
        Ok(blocking(secrets).await)
    }

    /// The last lines of a container's log, as far as the engine reports them in time.
    async fn last_lines(&self, id: &str, secrets: Vec<String>) -> Vec<String> {
        let options = LogOptions {
            tail: Some(LINES),
            ..LogOptions::default()
        };
        let mut held = Vec::new();
        let read = async {
            let Ok(mut log) = self.shared.view.engine().logs(id, &options).await else {
                return;
            };
            while let Some(Ok(chunk)) = log.next().await {
                held.extend_from_slice(&chunk.bytes);
                let surplus = held.len().saturating_sub(HELD);
                held.drain(..surplus);
            }
        };
        // What came in time is kept.
        let _ = timeout(READ_TIME, read).await;
        // The agent may have written many of both.
        blocking(move || last_of(&held, &secrets)).await
    }
}

/// The last lines of a text, cleaned.
fn last_of(log: &[u8], secrets: &[String]) -> Vec<String> {
    // From the end: no more of them are cleaned than are kept.
    let lines = log.rsplit(|byte| *byte == b'\n');
    let lines = lines.map(|line| clean(line, secrets, LONGEST_LINE));
    let lines = lines.filter(|line| !line.is_empty());
    let mut lines: Vec<String> = lines.take(LINES as usize).collect();
    lines.reverse();
    lines
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
    let text = text.trim();
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Secrets and their words, such as the token in `Bearer …` and the lines of a key, the longest first: of two, one of
/// which is in the other, the whole is replaced.
fn pieces(secrets: Vec<String>) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for secret in secrets {
        let words = secret.split(|c: char| c.is_whitespace() || ",;=".contains(c));
        let words = words.filter(|word| word.len() >= SHORTEST_SECRET);
        pieces.extend(words.map(str::to_owned));
        pieces.push(secret);
    }
    pieces.retain(|piece| piece.len() >= SHORTEST_SECRET);
    pieces.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    pieces.dedup();
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cleaned_bounded_and_without_secrets() {
        let secrets = pieces(vec!["Bearer tok-en-1".to_owned(), "12345".to_owned()]);
        let long = "x".repeat(1000);
        let log = format!(
            "old\n{}\x1b[31mred\x1b[0m\x07 with tok-en-1\r\nBearer tok-en-1 12345\n{long}\n\n\u{1b}]0;t",
            "a\n".repeat(30)
        );
        let lines = last_of(log.as_bytes(), &secrets);
        assert_eq!(lines.len(), 20);
        let tail: Vec<&str> = lines.iter().rev().take(3).map(String::as_str).collect();
        assert_eq!(tail[0], format!("{}…", "x".repeat(LONGEST_LINE)));
        assert_eq!(tail[1], "[redacted] 12345", "too short to be told apart");
        assert_eq!(tail[2], "red with [redacted]");
        // The whole of `Bearer tok-en-1` was replaced, not a part of it.
        assert!(lines.iter().all(|line| !line.chars().any(char::is_control)));
    }

    #[test]
    fn a_secret_at_the_edge_of_a_line_is_not_cut_in_half() {
        let secret = "s3cret-token".to_owned();
        let line = format!("{}{secret}", "x".repeat(LONGEST_LINE - 4));
        let lines = last_of(line.as_bytes(), &[secret]);
        assert!(!lines[0].contains("s3c"), "{lines:?}");
    }
}
