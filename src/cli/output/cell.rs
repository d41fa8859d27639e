//! One value of a table or a line, with the colour of what it means.

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::clean::clean;

/// What a word means for whoever looks: only words of status are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// On its way, or not known.
    Busy,
    /// Wrong.
    Bad,
}

impl Tone {
    /// The meaning of a status word.
    pub fn of(word: &str) -> Self {
        match word {
            "True" | "running" | "ready" | "done" | "success" => Self::Good,
            "False" | "failed" | "denied" | "error" => Self::Bad,
            "Unknown" | "unknown" | "starting" | "stopping" | "deleting" | "paused" => Self::Busy,
            _ => Self::Plain,
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Busy => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
        }
    }
}

/// Text that may go to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// What others wrote is made harmless here, so no table can forget it.
    pub fn new(text: &str) -> Self {
        let text = if text.is_empty() { "-" } else { text };
        Self {
            text: clean(text),
            tone: Tone::Plain,
        }
    }

    /// A word of status.
    pub fn status(word: &str) -> Self {
        Self {
            tone: Tone::of(word),
            ..Self::new(word)
        }
    }

    /// A field of an object; `-` when there is none.
    pub fn field(item: &Value, key: &str) -> Self {
        Self::new(&plain(item.get(key).unwrap_or(&Value::Null)))
    }

    /// Columns on a terminal.
    pub fn width(&self) -> usize {
        self.text.width()
    }

    /// With its colour; whoever prints takes that away where there is no terminal.
    pub fn painted(&self) -> String {
        if self.tone == Tone::Plain {
            return self.text.clone();
        }
        let style = self.tone.style();
        format!("{style}{}{style:#}", self.text)
    }
}

/// A value as people read it.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            items.join(", ")
        }
        Value::Object(_) => value.to_string(),
    }
}
