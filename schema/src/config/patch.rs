//! From a request to the values to store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;
use url::{Host, Url};

use crate::adapter::text_of_number;

use super::keys::{KEYS, adapter, find, is_group};
use super::masking::{MASK, Unmasked, mask, unmask};
use super::setting::{Effect, KeyDef, Setting, ValueType};
use super::{Config, Problem, ProblemCode};

/// What a request does with one key.
#[derive(Clone, PartialEq)]
pub enum Change {
    /// This value, checked and canonical; inside objects a mask may still stand for a stored leaf.
    Set(Value),
    /// Back to the default.
    Reset,
    /// The mask of a secret: leave it as it is.
    Keep,
}

/// A checked request: what to do with which key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Patch {
    changes: BTreeMap<&'static str, Change>,
    warnings: Vec<String>,
}

/// The values to store (`None`: remove the stored value, back to the default). Only keys whose
/// value in effect changes.
#[derive(Clone, Default, PartialEq)]
pub struct Changes(pub BTreeMap<&'static str, Option<Value>>);

// Values may be secrets.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Set(_) => "Set(..)",
            Self::Reset => "Reset",
            Self::Keep => "Keep",
        })
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Reads a full or partial configuration, nested (`{"web":{"auth_mode":…}}`), dotted
/// (`{"web.auth_mode":…}`) or mixed. `null` resets a key; the mask keeps a secret.
///
/// # Errors
/// Every problem of the document, in the order of its keys.
pub fn parse_patch(document: &Value) -> Result<Patch, Vec<Problem>> {
    let Value::Object(entries) = document else {
        return Err(vec![Problem::new(
            "",
            ProblemCode::InvalidType,
            "the configuration must be a JSON object".to_owned(),
        )]);
    };
    let mut reader = Reader::default();
    for (name, value) in entries {
        reader.read(name.clone(), value);
    }
    if reader.problems.is_empty() {
        Ok(Patch {
            changes: reader.changes,
            warnings: reader.warnings,
        })
    } else {
        Err(reader.problems)
    }
}

#[derive(Default)]
struct Reader {
    changes: BTreeMap<&'static str, Change>,
    problems: Vec<Problem>,
    warnings: Vec<String>,
}

impl Reader {
    fn read(&mut self, path: String, value: &Value) {
        if let Some(def) = find(&path) {
            let change = match value {
                Value::Null => Change::Reset,
                Value::String(text)
                    if matches!(def.value_type, ValueType::Secret) && text == MASK =>
                {
                    Change::Keep
                }
                Value::String(text) if text == MASK => {
                    let rest = "was never masked; send the value itself";
                    let problem = def.problem(ProblemCode::InvalidValue, rest);
                    return self.problems.push(problem);
                }
                value => match self.check(def, value) {
                    Ok(value) => Change::Set(value),
                    Err(problem) => return self.problems.push(problem),
                },
            };
            if self.changes.insert(def.key, change).is_some() {
                self.problems
                    .push(def.problem(ProblemCode::DuplicateKey, "was given twice"));
            }
            return;
        }
        let is_group = is_group(&path);
        match value {
            Value::Object(entries) if is_group => {
                for (name, value) in entries {
                    self.read(format!("{path}.{name}"), value);
                }
            }
            _ if is_group => self.problems.push(Problem::new(
                &path,
                ProblemCode::InvalidType,
                format!("{path} is a group of keys and must be an object"),
            )),
            _ => {
                let message = match path.split_once('.') {
                    Some((whole, _)) if find(whole).is_some() => {
                        format!("{path} is not a key: {whole} is replaced as a whole")
                    }
                    _ => format!("{path} is not a configuration key"),
                };
                self.problems
                    .push(Problem::new(&path, ProblemCode::UnknownKey, message));
            }
        }
    }
}

impl Reader {
    /// Checks a value. Whole numbers where texts are wanted are the texts of their digits, with a warning; a password is never
    /// guessed (L21).
    fn check(&mut self, def: &KeyDef, value: &Value) -> Result<Value, Problem> {
        use ValueType::{Choice, List, Secret, Text};
        let wants_text = matches!(def.value_type, Text(_) | Choice(_) | List(_));
        let Some(text) = text_of_number(value).filter(|_| wants_text) else {
            let in_quotes = value.is_number() && (wants_text || matches!(def.value_type, Secret));
            return def.check(value).map_err(|mut problem| {
                if in_quotes {
                    problem.message += "; put it in quotes";
                }
                problem
            });
        };
        let checked = def.check(&text)?;
        self.warnings.push(format!(
            "{} is a text: the number is taken as one; put it in quotes",
            def.key
        ));
        Ok(checked)
    }
}

impl Changes {
    /// Whether a key changes.
    pub fn has<T>(&self, setting: &Setting<T>) -> bool {
        self.0.contains_key(setting.row.key)
    }

    /// The new value of a key that changes.
    pub fn get<T>(&self, setting: &Setting<T>) -> Option<T> {
        let change = self.0.get(setting.row.key)?;
        let value = change.clone();
        Some((setting.read)(
            value.unwrap_or_else(|| setting.row.default_value()),
        ))
    }

    /// Whether something follows from one of the changed keys.
    pub fn have(&self, effect: Effect) -> bool {
        self.with(effect).next().is_some()
    }

    /// The changed keys from which something follows.
    pub(super) fn with(&self, effect: Effect) -> impl Iterator<Item = &'static KeyDef> {
        let defs = self.0.keys().filter_map(|key| find(key));
        defs.filter(move |def| def.effects.contains(&effect))
    }
}

impl Patch {
    /// The keys it names, with what it does.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Change)> {
        self.changes.iter().map(|(key, change)| (*key, change))
    }

    /// Returns notes on values that were read otherwise than they were written, a sentence each, without the values.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Compares with the configuration in effect and fills in what masks stand for.
    ///
    /// # Errors
    /// A mask inside an object where nothing is stored that it could stand for; a stored secret whose host changes, unless it is sent anew.
    pub fn resolve(self, config: &Config) -> Result<Changes, Vec<Problem>> {
        let mut changes = BTreeMap::new();
        let mut problems = Vec::new();
        let sent = self.iter().filter(|(_, change)| **change != Change::Keep);
        let sent: BTreeSet<&str> = sent.map(|(key, _)| key).collect();
        for (key, change) in self.changes {
            let Some(def) = find(key) else { continue };
            let new = match change {
                Change::Keep => continue,
                Change::Reset => None,
                Change::Set(value) if matches!(def.value_type, ValueType::Object(_)) => {
                    let stored = config.value(def);
                    let shown = mask(def, stored.clone(), config.secret_paths());
                    match unmask(&value, &stored, &shown) {
                        Ok(value) => Some(value),
                        Err(why) => {
                            problems.push(masked(def, &why));
                            continue;
                        }
                    }
                }
                Change::Set(value) => Some(value),
            };
            let changes_something = match &new {
                Some(value) => *value != config.value(def),
                None => config.is_set(key),
            };
            if !changes_something {
                continue;
            }
            changes.insert(def.key, new);
        }
        let changes = Changes(changes);
        problems.extend(plain_source(config, &changes));
        let left = left_behind(config, &changes).filter(|def| !sent.contains(def.key));
        problems.extend(left.map(asked_for_again));
        if problems.is_empty() {
            Ok(changes)
        } else {
            Err(problems)
        }
    }
}

/// The stored secrets whose host these changes change. Where a key names no host any more they stay, since nobody is sent
/// them; they are asked for once it names another one.
pub(super) fn left_behind(
    config: &Config,
    changes: &Changes,
) -> impl Iterator<Item = &'static KeyDef> {
    let after = config.clone().apply(changes);
    KEYS.values().copied().filter(move |def| {
        let named = def.belongs_to.and_then(|to| Some((find(to.key)?, to.host)));
        let Some((owner, host)) = named else {
            return false;
        };
        let host = |config: &Config| config.value(owner).as_str().and_then(host);
        let now = host(&after);
        config.value(def) != def.default_value() && now.is_some() && now != host(config)
    })
}

fn asked_for_again(def: &KeyDef) -> Problem {
    let owner = def.belongs_to.map_or("", |to| to.key);
    let rest = format!(
        "belongs to the host of {owner}, which changes; send it again, or null to remove it"
    );
    def.problem(ProblemCode::SecretRequired, &rest)
}

fn masked(def: &KeyDef, why: &Unmasked) -> Problem {
    let (code, rest) = match why {
        Unmasked::Nothing(pointer) => (
            ProblemCode::InvalidValue,
            format!(
                "has a mask at {pointer} that stands for no stored value; send the value itself"
            ),
        ),
        Unmasked::NeverMasked(pointer) => (
            ProblemCode::InvalidValue,
            format!(
                "has a mask at {pointer}, whose value was never masked; read the configuration again, or send the value itself"
            ),
        ),
        Unmasked::OfOtherHost(pointer) => (
            ProblemCode::SecretRequired,
            format!(
                "has a mask at {pointer} whose value belongs to the host of a URL beside it, which changes; send the value itself"
            ),
        ),
    };
    def.problem(code, &rest)
}

/// Whether an address is one of this machine, and of no other by its name.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// What is wrong with `adapter.source_url` after these changes, if they set it or what it may be.
fn plain_source(config: &Config, changes: &Changes) -> Option<Problem> {
    if !changes.has(&adapter::SOURCE_URL) && !changes.has(&adapter::ALLOW_HTTP) {
        return None;
    }
    let after = config.clone().apply(changes);
    let url = Url::parse(&after.get(&adapter::SOURCE_URL)?).ok()?;
    (url.scheme() == "http" && !is_loopback(&url) && !after.get(&adapter::ALLOW_HTTP)).then(|| {
        let rule = "must be an https or loopback address unless adapter.allow_http is true";
        adapter::SOURCE_URL
            .row
            .problem(ProblemCode::InvalidValue, rule)
    })
}
