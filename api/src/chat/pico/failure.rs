//! Failures of models, which arrive as ordinary texts with the provider's body or address in them.

use super::FAILED;
use crate::chat::protocol::FailureCode;

/// Longest text of a failure that is shown, in characters.
const LONGEST: usize = 2000;
/// From so many characters on, a run of letters, digits, `-` and `_` counts as a key.
const KEY: usize = 20;

/// The cause of a failure, and its text with addresses and keys masked.
pub(in crate::chat) fn classify_failure(text: &str) -> (FailureCode, String) {
    let text = text.strip_prefix(FAILED).unwrap_or(text);
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let code = if has(&["no default model configured", "no model configured"]) {
        FailureCode::NoModel
    } else if has(&[
        "status: 401",
        "status: 403",
        "invalid api key",
        "incorrect api key",
    ]) {
        FailureCode::Key
    } else if has(&["status: 429", "status: 402", "insufficient_quota"]) {
        FailureCode::Quota
    } else if has(&["deadline exceeded", "timeout", "timed out"]) {
        FailureCode::Timeout
    } else if has(&[
        "dial tcp",
        "no such host",
        "connection refused",
        "x509",
        "tls: ",
    ]) {
        FailureCode::Address
    } else if has(&["llm call failed", "api request failed", "status: "]) {
        FailureCode::Model
    } else {
        FailureCode::Agent
    };
    (code, mask(text))
}

/// Replaces addresses and keys in a text.
pub(super) fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word_end = rest.find(is_separator).unwrap_or(rest.len());
        if word_end == 0 {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(word_end);
        masked.push_str(&mask_word(word));
        rest = after;
    }
    let shown: String = masked.chars().take(LONGEST).collect();
    match shown.len() < masked.len() {
        true => format!("{shown}…"),
        false => shown,
    }
}

/// Characters that end an address or a key.
fn is_separator(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '"' | '\'' | '<' | '>' | '(' | ')' | ',' | '`' | '{' | '}' | '[' | ']' | '\\'
        )
}

fn mask_word(word: &str) -> String {
    if word.contains("://") || is_host_and_port(word) {
        let end = word.trim_end_matches([':', '.', ';']);
        return format!("[address]{}", &word[end.len()..]);
    }
    let mut masked = String::new();
    for part in word.split_inclusive(|c: char| !is_key_character(c)) {
        let run = part.trim_end_matches(|c: char| !is_key_character(c));
        match is_key(run) {
            true => {
                masked.push_str("[key]");
                masked.push_str(&part[run.len()..]);
            }
            false => masked.push_str(part),
        }
    }
    masked
}

fn is_key_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '*')
}

/// Keys as providers show them, whole or with asterisks in their middle.
fn is_key(run: &str) -> bool {
    let marked = run.starts_with("sk-") || run.starts_with("sk_") || run.contains("**");
    let mixed =
        run.chars().any(|c| c.is_ascii_digit()) && run.chars().any(|c| c.is_ascii_alphabetic());
    (marked && run.len() > 4) || (run.len() >= KEY && mixed)
}

fn is_host_and_port(word: &str) -> bool {
    let word = word.trim_end_matches([':', '.', ';']);
    let address: Result<std::net::SocketAddr, _> = word.parse();
    let ip: Result<std::net::IpAddr, _> = word.parse();
    if address.is_ok() || ip.is_ok() {
        return true;
    }
    match word.rsplit_once(':') {
        Some((host, port)) => {
            host.contains('.') && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
        }
        None => false,
    }
}
