//! What is waited for, as it is typed, and whether it is so.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::cli::compare::is_behind;
use crate::cli::output::cell::at;
use crate::cli::suggest;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// A condition has this status.
    Condition {
        /// Its type.
        of_type: &'static str,
        /// That status.
        status: &'static str,
    },
    /// It is gone.
    Delete,
}

/// Types of conditions.
const TYPES: [&str; 5] = [
    "Ready",
    "Stalled",
    "Paused",
    "HostRestricted",
    "WithinQuota",
];
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("delete") {
            return Ok(Self::Delete);
        }
        let rule = "give condition=TYPE, condition=TYPE=STATUS, or delete";
        let rest = text.strip_prefix("condition=").ok_or_else(|| {
            let guess = suggest::closest(text, TYPES);
            match guess.first() {
                Some(guess) => format!("{rule}; did you mean condition={guess}?"),
                None => rule.to_owned(),
            }
        })?;
        let (of_type, status) = rest.split_once('=').unwrap_or((rest, "True"));
        Ok(Self::Condition {
            of_type: one_of("a condition's type", of_type, &TYPES)?,
            status: one_of("a condition's status", status, &STATUSES)?,
        })
    }
}

fn one_of(what: &str, given: &str, all: &[&'static str]) -> Result<&'static str, String> {
    let found = all.iter().find(|name| name.eq_ignore_ascii_case(given));
    found.copied().ok_or_else(|| {
        let guess = suggest::did_you_mean(&suggest::closest(given, all));
        format!("{what} is {}, not {given:?}{guess}", all.join(", "))
    })
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition { of_type, status } => write!(f, "{of_type}={status}"),
            Self::Delete => f.write_str("gone"),
        }
    }
}

impl Goal {
    /// Whether an object is as it was waited for. What was observed of an older generation is not.
    pub fn is_met(&self, object: &Value) -> bool {
        let Self::Condition { of_type, status } = self else {
            return false;
        };
        let current = !is_behind(object);
        let found = match at(object, &format!("conditions.{of_type}.status")).as_str() {
            Some(found) => found,
            // What is not reported is not so, but Ready is not known before the first observation.
            None if *of_type == "Ready" => "Unknown",
            None => "False",
        };
        found == *status && (current || *status == "Unknown")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn goals_are_read_and_slips_are_named() {
        let ready = |status| Goal::Condition {
            of_type: "Ready",
            status,
        };
        assert_eq!("condition=Ready".parse(), Ok(ready("True")));
        assert_eq!("condition=ready=unknown".parse(), Ok(ready("Unknown")));
        assert_eq!("delete".parse(), Ok(Goal::Delete));
        for (text, part) in [
            ("ready", "did you mean condition=Ready?"),
            ("condition=Rready", "did you mean \"Ready\""),
            ("condition=Ready=yes", "True, False, Unknown"),
            ("", "condition=TYPE"),
        ] {
            let error = text.parse::<Goal>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn l59_an_older_generation_does_not_count() {
        let object = |generation: i64, status: &str| {
            json!({"generation": generation, "observed_generation": 2,
                   "conditions": [{"type": "Ready", "status": status}]})
        };
        let ready: Goal = "condition=Ready".parse().unwrap();
        assert!(ready.is_met(&object(2, "True")));
        assert!(!ready.is_met(&object(3, "True")));
        assert!(!ready.is_met(&object(2, "False")));
        let paused: Goal = "condition=Paused=False".parse().unwrap();
        assert!(paused.is_met(&object(2, "True")), "nothing is said of it");
        let unknown: Goal = "condition=Ready=Unknown".parse().unwrap();
        let new = json!({"generation": 1, "observed_generation": 0, "conditions": []});
        assert!(unknown.is_met(&new));
        assert!(!ready.is_met(&new));
    }
}
