//! Long texts, in parts.

use serde_json::{Value, json};

use super::turn::{Arguments, Stop};

/// Most characters of a text, if nothing else is asked for: what is longer, agents keep away from their models.
pub(super) const USUAL: usize = 12_000;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// What there is of it.
    pub(super) text: String,
    /// Where the next part begins; `None`: this is the last one.
    pub(super) next: Option<usize>,
    /// How many characters the whole has.
    pub(super) length: usize,
}

/// Which part is asked for, in characters: where it begins, and how much it is at most.
///
/// # Errors
/// When the cursor is none that we give.
pub(super) fn asked(arguments: &Arguments) -> Result<(usize, usize), Stop> {
    let most = arguments.get("maxChars").and_then(Value::as_u64);
    let most = most.map_or(USUAL, |most| usize::try_from(most).unwrap_or(USUAL));
    let from = match arguments.get("cursor").and_then(Value::as_str) {
        None => 0,
        Some(cursor) => {
            let at = cursor.strip_prefix('c').and_then(|at| at.parse().ok());
            at.ok_or_else(|| Stop::said("cursor: give the nextCursor of the answer before"))?
        }
    };
    Ok((from, most))
}

/// A part of a text.
pub(super) fn part(text: &str, (from, most): (usize, usize)) -> Part {
    let length = text.chars().count();
    let to = from.saturating_add(most);
    Part {
        text: text.chars().skip(from).take(most).collect(),
        next: (to < length).then_some(to),
        length,
    }
}

impl Part {
    /// What a reader has to know beside the text.
    pub(super) fn note(&self) -> Option<String> {
        let next = self.next?;
        Some(format!(
            "Characters up to {next} of {}; the rest comes with cursor \"c{next}\".",
            self.length
        ))
    }

    /// The same for programs.
    pub(super) fn facts(&self) -> Value {
        json!({
            "truncated": self.next.is_some(),
            "nextCursor": self.next.map(|next| format!("c{next}")),
            "length": self.length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_one_after_the_other_are_the_whole() {
        let text = "aé𝄞".repeat(100);
        let (mut all, mut from) = (String::new(), 0);
        loop {
            let part = part(&text, (from, 7));
            assert_eq!(part.length, 300);
            all.push_str(&part.text);
            match part.next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert_eq!(all, text);
        assert_eq!(part(&text, (1000, 7)).text, "");
    }

    #[test]
    fn cursors_are_read_back() {
        let part = part(&"x".repeat(20), (0, 12));
        let facts = part.facts();
        let again = json!({"cursor": facts["nextCursor"]});
        let Value::Object(again) = again else {
            unreachable!()
        };
        assert_eq!(asked(&again).unwrap(), (12, USUAL));
        for wrong in ["", "c", "12", "c-1", "cc1"] {
            let Value::Object(wrong) = json!({"cursor": wrong}) else {
                unreachable!()
            };
            assert!(asked(&wrong).is_err());
        }
    }
}
