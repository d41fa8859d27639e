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
    (code, mask_text(text))
}

/// Replaces addresses and keys in a text.
pub(super) fn mask_text(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    let mut before = "";
    while let Some(first) = rest.chars().next() {
        let word_end = rest.find(is_separator).unwrap_or(rest.len());
        if word_end == 0 {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(word_end);
        match before {
            // Go names the host that it looked up.
            "lookup" | "host" => masked.push_str("[address]"),
            _ => masked.push_str(&mask_word(word)),
        }
        before = word;
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "Error processing message: LLM call failed after retries: API request failed:\n  Status: 401\n  Body:   {\"error\": {\"message\": \"Incorrect API key provided: sk-abc*****************xyz.\"}}",
        FailureCode::Key,
        "LLM call failed after retries: API request failed:\n  Status: 401\n  Body:   {\"error\": {\"message\": \"Incorrect API key provided: [key].\"}}"
    )]
    #[case(
        "Error processing message: LLM call failed after retries: failed to send request: Post \"http://llm.corp.example:8443/v1/chat\": dial tcp: lookup llm.corp.example on 10.0.0.2:53: no such host",
        FailureCode::Address,
        "LLM call failed after retries: failed to send request: Post \"[address]\": dial tcp: lookup [address] on [address]: no such host"
    )]
    #[case(
        "Error processing message: LLM call failed after retries: no default model configured; gateway started in limited mode",
        FailureCode::NoModel,
        "LLM call failed after retries: no default model configured; gateway started in limited mode"
    )]
    #[case(
        "Error processing message: Status: 429 too fast",
        FailureCode::Quota,
        "Status: 429 too fast"
    )]
    #[case(
        "Error processing message: context deadline exceeded",
        FailureCode::Timeout,
        "context deadline exceeded"
    )]
    #[case(
        "Error processing message: the tool panicked",
        FailureCode::Agent,
        "the tool panicked"
    )]
    fn failure_is_classified_and_masked(
        #[case] text: &str,
        #[case] code: FailureCode,
        #[case] masked: &str,
    ) {
        assert_eq!(classify_failure(text), (code, masked.to_owned()));
    }

    #[test]
    fn long_failure_is_cut() {
        let (_, text) = classify_failure(&"wörter ".repeat(10_000));
        assert_eq!(text.chars().count(), LONGEST + 1);
    }
}
