//! Findings of checks.

use serde::Serialize;

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Outcome {
    /// As it should be, or not in use.
    Ok,
    /// It works, or cannot be checked.
    Warning,
    /// It does not work.
    Failed,
}

/// Outcome of a check, with its reason and a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check.
    pub check: &'static str,
    /// Its outcome.
    pub result: Outcome,
    /// State that it found.
    pub message: String,
    /// Action to take; none if all is well.
    pub remedy: Option<String>,
}

impl Finding {
    fn new(result: Outcome, message: String, remedy: Option<String>) -> Self {
        Self {
            check: "",
            result,
            message,
            remedy,
        }
    }

    /// It is as it should be.
    pub fn ok(message: impl Into<String>) -> Self {
        Self::new(Outcome::Ok, message.into(), None)
    }

    /// It works, but.
    pub fn warning(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Outcome::Warning, message.into(), Some(remedy.into()))
    }

    /// It does not work.
    pub fn failed(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, message.into(), Some(remedy.into()))
    }

    /// Only the server knows.
    pub fn unknown() -> Self {
        let remedy = "start the server with `agentyard serve`";
        Self::warning("not checked: no server answers", remedy)
    }

    /// The same under the name of its check.
    pub fn named(self, check: &'static str) -> Self {
        Self { check, ..self }
    }

    /// Message and remedy on one line.
    pub fn sentence(&self) -> String {
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}"));
        let text = format!("{}{}", self.message, remedy.unwrap_or_default());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
