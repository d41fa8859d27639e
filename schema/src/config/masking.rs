//! What of a value is shown, and what a shown value stands for when it is sent back.
//!
//! Masked are whole texts and passwords of digits ([`MASK`] stands for them), and parts of texts: user information and parameters in URLs, what
//! follows an argument such as `--token`. All that may be shown of a secret goes through [`mask`].

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

use super::setting::{KeyDef, Secrets, ValueType};
use crate::adapter::{SecretPaths, escape};

/// What is shown instead of a secret that is set, and what leaves it unchanged when sent back.
pub const MASK: &str = "********";

/// What is under a name with one of these in it is not shown, whatever the adapter says: it may come later than the
/// settings do.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "encrypt_key",
    "encryption_key",
    "webhook_url",
    "connection_string",
    "credential",
    "authorization",
    "cookie",
];
/// The same for names that end with one of these words.
const SECRET_ENDS: &[&str] = &[
    "key",
    "keys",
    "pass",
    "pwd",
    "psk",
    "auth",
    "jwt",
    "dsn",
    "sig",
    "signature",
    "webhook",
    "webhooks",
    "hook",
    "hooks",
    "passcode",
    "pin",
    "otp",
    "pat",
];
/// All values in a group whose name ends with one of these words are secret.
const SECRET_GROUPS: &[&str] = &["env", "envs", "environment", "header", "headers"];
/// A text under a name that ends with one of these words is a command line.
const COMMAND_LINES: &[&str] = &[
    "command",
    "cmd",
    "args",
    "argv",
    "arguments",
    "entrypoint",
    "env",
    "environment",
    "headers",
];
/// A text under a name that ends with one of these words is a host, with or without a scheme.
const HOSTS: &[&str] = &[
    "host", "hostname", "server", "broker", "endpoint", "proxy", "address", "addr", "domain",
    "url", "uri", "base",
];
/// How many separators of a word are tried.
const SEPARATORS: usize = 4;
/// How far a password in a URL is searched for, in bytes, where it has slashes.
const LONGEST_PASSWORD: usize = 512;
/// Arguments whose values are secret although their names do not say so.
const SECRET_ARGUMENTS: &[&str] = &["-H", "--header", "--headers", "-e", "--env", "-u", "--user"];

/// The value as it may be shown to an administrator and kept in the history.
pub(super) fn mask(def: &KeyDef, value: Value, paths: &SecretPaths) -> Value {
    match def.value_type {
        ValueType::Secret => mask_leaf(value, true),
        ValueType::Object(Secrets::None) => value,
        ValueType::Object(secrets) => {
            let unknown = SecretPaths::default();
            let paths = match secrets {
                Secrets::ByAdapter => paths,
                Secrets::All | Secrets::None => &unknown,
            };
            let around = Around {
                secret: secrets == Secrets::All,
                digits: secrets == Secrets::All,
                command_line: false,
            };
            Masking { paths }.tree(value, around, &mut Vec::new())
        }
        _ => value,
    }
}

/// The texts in a document that are not shown. Of one that is shown in part, what lies between the parts.
pub fn secret_texts(document: Value, paths: &SecretPaths) -> Vec<String> {
    let around = Around {
        secret: false,
        digits: false,
        command_line: false,
    };
    let shown = Masking { paths }.tree(document.clone(), around, &mut Vec::new());
    let mut texts = Vec::new();
    masked_leaves(&document, &shown, &mut texts);
    texts
}

fn masked_leaves(value: &Value, shown: &Value, texts: &mut Vec<String>) {
    match (value, shown) {
        (Value::Object(members), Value::Object(shown)) => {
            for (name, member) in members {
                masked_leaves(member, shown.get(name).unwrap_or(&Value::Null), texts);
            }
        }
        (Value::Array(items), Value::Array(shown)) => {
            for (item, shown) in items.iter().zip(shown) {
                masked_leaves(item, shown, texts);
            }
        }
        (Value::String(text), Value::String(shown)) => {
            let hidden = || {
                let (head, rest) = shown.split_once(MASK)?;
                let tail = rest.rsplit_once(MASK).map_or(rest, |(_, tail)| tail);
                text.strip_prefix(head)?.strip_suffix(tail)
            };
            texts.extend(hidden().map(str::to_owned));
        }
        (Value::Number(number), Value::String(_)) => texts.push(number.to_string()),
        _ => {}
    }
}

/// Masks a leaf. Switches are no secrets; a number is one only where it may be a password of digits.
fn mask_leaf(value: Value, digits: bool) -> Value {
    match &value {
        Value::String(text) if !text.is_empty() => Value::String(MASK.to_owned()),
        Value::Number(_) if digits => Value::String(MASK.to_owned()),
        _ => value,
    }
}

/// What is known of a value from where it is.
#[derive(Clone, Copy)]
struct Around {
    /// Each text is a secret.
    secret: bool,
    /// Each number is one, too.
    digits: bool,
    /// A text is a command line, or an argument.
    command_line: bool,
}

struct Masking<'a> {
    paths: &'a SecretPaths,
}

impl Masking<'_> {
    fn tree(&self, value: Value, around: Around, place: &mut Vec<String>) -> Value {
        match value {
            Value::Object(entries) => {
                let mut masked = Map::new();
                for (name, value) in entries {
                    place.push(name);
                    let value = self.member(value, around, place);
                    if let Some(name) = place.pop() {
                        masked.insert(name, value);
                    }
                }
                Value::Object(masked)
            }
            Value::Array(items) => {
                let mut after_option = false;
                let mut masked = Vec::with_capacity(items.len());
                for item in items {
                    let around = Around {
                        secret: around.secret || (after_option && item.is_string()),
                        digits: around.digits,
                        command_line: true,
                    };
                    after_option = item.as_str().is_some_and(is_secret_option);
                    masked.push(self.tree(item, around, place));
                }
                Value::Array(masked)
            }
            leaf if around.secret => mask_leaf(leaf, around.digits),
            Value::String(text) => Value::String(mask_text(text, around.command_line)),
            leaf => leaf,
        }
    }

    fn member(&self, value: Value, around: Around, place: &mut Vec<String>) -> Value {
        let by_path = self.paths.is_secret(place);
        let secret = by_path.unwrap_or(around.secret);
        let words = place.last().map(|name| words(name)).unwrap_or_default();
        let ends = |list: &[&str]| words.last().is_some_and(|word| list.contains(&&**word));
        let by_name = match &value {
            // Settings such as "max_tokens", "token_percent" and "use_auth" are no secrets; a password of digits is one.
            Value::Bool(_) => false,
            Value::Number(_) => names_digits(&words),
            Value::Object(_) | Value::Array(_) => {
                is_secret_name(&words) || words.iter().any(|word| SECRET_GROUPS.contains(&&**word))
            }
            _ => is_secret_name(&words),
        };
        let command_line = ends(COMMAND_LINES);
        let digits = match (&value, by_path) {
            (_, Some(true)) => true,
            (_, None) if around.digits => true,
            // Deeper values have names of their own.
            (Value::Object(_), _) => false,
            _ => names_digits(&words),
        };
        let by_name = !secret && by_name;
        let around = Around {
            secret: secret || by_name,
            digits,
            command_line,
        };
        if by_name {
            let paths = &SecretPaths::default();
            return Masking { paths }.tree(value, around, place);
        }
        self.tree(value, around, place)
    }
}

/// `X-Api-Key`, `x_api_key` and `xApiKey` are `x`, `api` and `key`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_upper = false;
    for c in name.chars() {
        let starts_word = c.is_uppercase() && before_upper;
        before_upper = c.is_lowercase() || c.is_ascii_digit();
        if (!c.is_alphanumeric() || starts_word)
            && words.last().is_some_and(|word| !word.is_empty())
        {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_secret_name(words: &[String]) -> bool {
    let name = words.join("_");
    SECRET_NAMES.iter().any(|secret| name.contains(secret))
        || words
            .last()
            .is_some_and(|last| SECRET_ENDS.contains(&&**last))
            && !name.ends_with("public_key")
}

/// Returns true if a number under this name may be a password of digits: `pin`, but not `max_tokens` or `token_percent`.
fn names_digits(words: &[String]) -> bool {
    words
        .last()
        .is_some_and(|last| last != "tokens" && is_secret_name(std::slice::from_ref(last)))
}

fn is_secret_option(argument: &str) -> bool {
    let name = argument.trim_start_matches('-');
    name.len() < argument.len()
        && !name.contains(['=', ':', ' '])
        && (SECRET_ARGUMENTS.contains(&argument) || is_secret_name(&words(name)))
}

fn mask_text(text: String, command_line: bool) -> String {
    let parts = secret_parts(&text, command_line);
    if parts.is_empty() {
        return text;
    }
    let mut masked = String::new();
    let mut shown = 0;
    for part in parts {
        masked.push_str(&text[shown..part.start]);
        masked.push_str(MASK);
        shown = part.end;
    }
    masked.push_str(&text[shown..]);
    masked
}

/// Where secrets are in a text, in order, apart from each other.
fn secret_parts(text: &str, command_line: bool) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut end = 0;
    for (at, separator) in text.match_indices("://") {
        let start = at + separator.len();
        let authority = end_of(text, start, ends_authority);
        if let Some(at) = text[start..authority].rfind('@') {
            parts.push(start..start + at);
        } else if let Some((_, port)) = text[start..authority].split_once(':')
            && port.contains(|c: char| !c.is_ascii_digit())
            && let Some(at) = near(text, start).rfind('@')
        {
            // A password with a slash in it, as some libraries take it.
            parts.push(start..start + at);
        }
        // The parameters of a URL in another were among those of the other.
        if start > end {
            end = end_of(text, authority, is_outside);
            parameters(text, authority..end, &mut parts);
        }
    }
    if !text.contains("://") {
        match bare_part(text) {
            Some(part) => parts.push(part),
            // `Server=…;Pwd=…`
            None if text.contains(';') => parameters(text, 0..text.len(), &mut parts),
            None => {}
        }
    }
    if command_line && let Some(at) = secret_argument(text) {
        parts.push(at..text.len());
    }
    parts.retain(|part| !part.is_empty());
    // One URL may be a parameter of another.
    parts.sort_by_key(|part| part.start);
    parts.dedup_by(|next, before| {
        let overlaps = next.start < before.end;
        if overlaps {
            before.end = before.end.max(next.end);
        }
        overlaps
    });
    parts
}

/// Finds the secret parameters of a URL in what follows its authority.
fn parameters(text: &str, range: Range<usize>, parts: &mut Vec<Range<usize>>) {
    let mut from = range.start;
    for parameter in text[range].split(['?', '&', ';', '#']) {
        if let Some((name, value)) = parameter.split_once('=')
            && is_secret_name(&words(name))
        {
            parts.push(from + parameter.len() - value.len()..from + parameter.len());
        }
        from += parameter.len() + 1;
    }
}

/// What follows up to a blank or quote, or as far as a password may reach.
fn near(text: &str, start: usize) -> &str {
    let end = text.floor_char_boundary((start + LONGEST_PASSWORD).min(text.len()));
    let near = &text[start..end];
    near.split(is_outside).next().unwrap_or_default()
}

fn end_of(text: &str, start: usize, ends: fn(char) -> bool) -> usize {
    text[start..].find(ends).map_or(text.len(), |at| start + at)
}

/// Whether a URL in a text ends in front of it.
fn is_outside(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`')
}

fn ends_authority(c: char) -> bool {
    // Browsers and their kin take a backslash for a slash.
    is_outside(c) || c.is_control() || matches!(c, '/' | '\\' | '?' | '#')
}

/// `user:password@host` without a scheme, or `Bearer …`.
fn bare_part(text: &str) -> Option<Range<usize>> {
    if let Some((scheme, value)) = text.split_once(' ')
        && ["bearer", "basic"].contains(&&*scheme.to_ascii_lowercase())
        && !value.contains(char::is_whitespace)
    {
        return Some(scheme.len() + 1..text.len());
    }
    let (user, host) = text.rsplit_once('@')?;
    let (name, _) = user.split_once(':')?;
    let is_pair = !name.is_empty() && !name.contains('/') && !host.is_empty();
    (is_pair && !text.contains(char::is_whitespace)).then_some(0..user.len())
}

/// Where the value of an argument such as `--token` begins: nobody can tell where it ends.
fn secret_argument(text: &str) -> Option<usize> {
    let mut from = 0;
    for word in text.split(char::is_whitespace) {
        let end = from + word.len();
        let begin = |from: usize| {
            let blank = text[from..].len() - text[from..].trim_start().len();
            (from + blank < text.len()).then_some(from + blank)
        };
        let bare = word.trim_start_matches(['"', '\'']);
        if is_secret_option(bare) {
            return begin(end);
        }
        // The first may name a kind of argument, the next one its name.
        for (at, _) in word.match_indices(['=', ':']).take(SEPARATORS) {
            let name = word[..at].trim_start_matches(['"', '\'']);
            if SECRET_ARGUMENTS.contains(&name) || is_secret_name(&words(name)) {
                return begin(from + at + 1);
            }
        }
        // A separator may be longer than a byte.
        from = text[end..]
            .chars()
            .next()
            .map_or(end, |c| end + c.len_utf8());
    }
    None
}

/// Whether a text that was sent has a mask where a secret would be.
fn has_mask(text: &str) -> bool {
    let parts = secret_parts(text, true);
    text == MASK || parts.into_iter().any(|part| text[part].contains(MASK))
}

/// Why a mask stands for nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unmasked {
    /// Nothing is stored that the mask at this JSON pointer could stand for.
    Nothing(String),
    /// The value at this JSON pointer was never masked.
    NeverMasked(String),
    /// What the mask at this JSON pointer stood for belongs to the host that was beside it.
    OfOtherHost(String),
}

/// Fills in `new` what its masks stand for in `stored`, which is shown as `shown`.
///
/// Entries of objects correspond by name. Elements of lists correspond to the one stored element that is shown so, or
/// else by position when the list kept its length. A text of which a part is masked stands for the stored one as a whole,
/// as long as it is unchanged. Beside a URL that was moved to another host, masks stand for nothing (L72).
pub(super) fn unmask(new: &Value, stored: &Value, shown: &Value) -> Result<Value, Unmasked> {
    let former = Former { stored, shown };
    unmask_at(new, Some(former), false, &mut String::new())
}

/// What is stored at a place, and how that is shown.
#[derive(Clone, Copy)]
struct Former<'a> {
    stored: &'a Value,
    shown: &'a Value,
}

impl<'a> Former<'a> {
    fn member(self, name: &str) -> Option<Self> {
        let (stored, shown) = (self.stored.get(name)?, self.shown.get(name)?);
        Some(Self { stored, shown })
    }

    fn items(self) -> Vec<Self> {
        let pair = self.stored.as_array().zip(self.shown.as_array());
        let pairs = pair.map(|(stored, shown)| stored.iter().zip(shown));
        let former = |(stored, shown): (&'a Value, &'a Value)| Self { stored, shown };
        pairs.into_iter().flatten().map(former).collect()
    }

    fn is_leaf(self) -> bool {
        !self.stored.is_object() && !self.stored.is_array()
    }

    /// Whether it is what `item` shows, as far as that shows anything.
    fn is_shown_as(self, item: &Value) -> bool {
        match item {
            // Which of several a mask in a list means is not to be guessed.
            Value::String(text) if text == MASK => self.is_leaf(),
            Value::Object(entries) => {
                self.stored
                    .as_object()
                    .is_some_and(|old| old.len() == entries.len())
                    && entries.iter().all(|(name, item)| {
                        self.member(name)
                            .is_some_and(|former| former.is_shown_as(item))
                    })
            }
            Value::Array(items) => {
                let old = self.items();
                self.stored.is_array()
                    && old.len() == items.len()
                    && old
                        .into_iter()
                        .zip(items)
                        .all(|(former, item)| former.is_shown_as(item))
            }
            item => item == self.shown || item == self.stored,
        }
    }
}

fn unmask_at(
    new: &Value,
    former: Option<Former<'_>>,
    moved: bool,
    pointer: &mut String,
) -> Result<Value, Unmasked> {
    let length = pointer.len();
    match new {
        Value::String(text) => match former {
            Some(former) if new == former.shown => keep(new, former, moved, pointer),
            Some(former) if text == MASK && former.is_leaf() && new != former.stored => {
                Err(Unmasked::NeverMasked(pointer.clone()))
            }
            _ if has_mask(text) && former.is_none_or(|former| new != former.stored) => {
                Err(Unmasked::Nothing(pointer.clone()))
            }
            _ => Ok(new.clone()),
        },
        Value::Object(entries) => {
            let moved = moved || former.is_some_and(|former| is_moved(entries, former));
            let mut filled = Map::new();
            for (name, value) in entries {
                pointer.push('/');
                pointer.push_str(&escape(name));
                let former = former.and_then(|former| former.member(name));
                filled.insert(name.clone(), unmask_at(value, former, moved, pointer)?);
                pointer.truncate(length);
            }
            Ok(Value::Object(filled))
        }
        Value::Array(items) => {
            let old = former.map(Former::items).unwrap_or_default();
            let mut filled = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{at}"));
                let former = counterpart(item, at, items.len(), &old);
                filled.push(unmask_at(item, former, moved, pointer)?);
                pointer.truncate(length);
            }
            Ok(Value::Array(filled))
        }
        leaf => Ok(leaf.clone()),
    }
}

fn keep(new: &Value, former: Former<'_>, moved: bool, pointer: &str) -> Result<Value, Unmasked> {
    if moved && new != former.stored {
        return Err(Unmasked::OfOtherHost(pointer.to_owned()));
    }
    Ok(former.stored.clone())
}

/// Whether URLs in these entries lead to other hosts than the stored ones.
fn is_moved(entries: &Map<String, Value>, former: Former<'_>) -> bool {
    // What comes back as it was shown stands for what is stored, although not all of that was shown.
    let is_unchanged = |name: &str| {
        let pair = entries.get(name).zip(former.member(name));
        pair.is_some_and(|(new, former)| new == former.shown || new == former.stored)
    };
    let collect = |entries: &Map<String, Value>| -> BTreeMap<String, Vec<String>> {
        let changed = entries.iter().filter(|(name, _)| !is_unchanged(name));
        changed
            .map(|(name, value)| (name.clone(), origins(name, value)))
            .filter(|(_, origins)| !origins.is_empty())
            .collect()
    };
    let before = former.stored.as_object().map(collect);
    before.is_some_and(|before| before != collect(entries))
}

/// Scheme, host and port of the URLs in a text, or in the texts of a list; under the name of a host the text itself.
fn origins(name: &str, value: &Value) -> Vec<String> {
    let is_host = words(name)
        .last()
        .is_some_and(|word| HOSTS.contains(&&**word));
    if let Value::String(text) = value
        && is_host
        && !text.contains("://")
    {
        let host = end_of(text, 0, ends_authority);
        return vec![text[..host].to_lowercase()];
    }

    let texts: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let origin = |text: &str, at: usize| {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let scheme = text[..at].rsplit(|c| !is_scheme(c)).next();
        let start = at + "://".len();
        let authority = &text[start..end_of(text, start, ends_authority)];
        let host = authority.rsplit('@').next();
        let parts = [scheme, host].map(Option::unwrap_or_default);
        parts.join("://").to_lowercase()
    };
    let origins = texts.into_iter().flat_map(|text| {
        let urls = text.match_indices("://");
        urls.map(move |(at, _)| origin(text, at))
    });
    origins.collect()
}

/// Whether there is a mask anywhere in a value.
fn speaks_of_another(item: &Value) -> bool {
    match item {
        Value::String(text) => text.contains(MASK),
        Value::Array(items) => items.iter().any(speaks_of_another),
        Value::Object(members) => members.values().any(speaks_of_another),
        _ => false,
    }
}

/// The stored element that the masks in `item` speak of.
fn counterpart<'a>(
    item: &Value,
    at: usize,
    new_length: usize,
    old: &[Former<'a>],
) -> Option<Former<'a>> {
    let same_place = (new_length == old.len())
        .then(|| old.get(at).copied())
        .flatten();
    // Comparing it with all stored ones is for those that mean one of them.
    if !speaks_of_another(item) {
        return same_place;
    }
    // Also when several are alike; most lists come back unchanged.
    if same_place.is_some_and(|former| former.is_shown_as(item)) {
        return same_place;
    }
    let mut alike = old.iter().filter(|former| former.is_shown_as(item));
    match (alike.next(), alike.next()) {
        (Some(only), None) => Some(*only),
        // Several alike, or a visible leaf was edited: only the position decides, and only when
        // nothing was added or removed.
        _ => same_place,
    }
}
