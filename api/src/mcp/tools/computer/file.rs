//! `computer_file_read`: a text file, or some lines of it.

use serde::Deserialize;
use serde_json::json;

use crate::mcp::tools::CallResult;
use crate::mcp::tools::result::text_of_answer;
use crate::mcp::tools::text;
use crate::mcp::tools::turn::{Arguments, Stop, Turn, only, typed};

/// Most characters that may be asked for.
const MOST: usize = 200_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    max_chars: Option<usize>,
}

impl Given {
    fn most(&self) -> usize {
        self.max_chars.unwrap_or(text::USUAL)
    }
}

/// Lines of a file.
#[derive(Debug, PartialEq, Eq)]
struct Lines {
    text: String,
    /// How many there are of them.
    shown: usize,
    /// How many the file has.
    all: usize,
    /// The last of them was longer than everything that fits.
    cut: bool,
}

fn lines(whole: &str, given: &Given) -> Lines {
    let most = given.most();
    let all = whole.lines().count();
    let wanted = whole.split_inclusive('\n').skip(given.offset);
    let (mut text, mut shown, mut length) = (String::new(), 0, 0);
    for line in wanted.take(given.limit.unwrap_or(usize::MAX)) {
        let characters = line.chars().count();
        if length + characters > most {
            if shown > 0 {
                break;
            }
            text.extend(line.chars().take(most));
            return Lines {
                text,
                shown: 1,
                all,
                cut: true,
            };
        }
        text.push_str(line);
        length += characters;
        shown += 1;
    }
    Lines {
        text,
        shown,
        all,
        cut: false,
    }
}

pub(super) async fn read(turn: &mut Turn<'_>, arguments: &Arguments) -> Result<CallResult, Stop> {
    let given: Given = typed(arguments)?;
    let asked = only(arguments, &["path"]);
    let outcome = turn.ask("computer_file_read", &asked).await?;
    turn.parse_answer("computer_file_read", outcome, move |tool, outcome| {
        Ok(told(&text_of_answer(tool, outcome)?, &given))
    })
    .await
}

fn told(whole: &str, given: &Given) -> CallResult {
    let lines = lines(whole, given);
    let next = given.offset + lines.shown;
    let more = next < lines.all;
    let at = given.offset;
    let on = match more {
        true => format!("; go on with offset {next}"),
        false => String::new(),
    };
    let note = match (lines.cut, more) {
        (true, _) if given.most() >= MOST => Some(format!(
            "Line {at} is longer than what is read of a line, and cut{on}."
        )),
        (true, _) => Some(format!(
            "Line {at} is cut: give a greater maxChars, at most {MOST}{on}."
        )),
        (false, true) => Some(format!("Lines {at} to {} of {}{on}.", next - 1, lines.all)),
        (false, false) => None,
    };
    let facts = json!({"lines": lines.all, "nextOffset": more.then_some(next), "truncated": more || lines.cut});
    CallResult::quoting(note, &lines.text).with(&facts)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::whole(0, None, None, "a\nbb\nccc", 3, false)]
    #[case::from(1, None, None, "bb\nccc", 2, false)]
    #[case::some(1, Some(1), None, "bb\n", 1, false)]
    #[case::as_many_as_fit(0, None, Some(5), "a\nbb\n", 2, false)]
    #[case::one_is_too_long(2, None, Some(2), "cc", 1, true)]
    #[case::past_the_end(9, None, None, "", 0, false)]
    fn lines_are_whole_if_they_can_be(
        #[case] offset: usize,
        #[case] limit: Option<usize>,
        #[case] max_chars: Option<usize>,
        #[case] text: &str,
        #[case] shown: usize,
        #[case] cut: bool,
    ) {
        let given = Given {
            offset,
            limit,
            max_chars,
        };
        let expected = Lines {
            text: text.to_owned(),
            shown,
            all: 3,
            cut,
        };
        assert_eq!(lines("a\nbb\nccc", &given), expected);
    }
    #[test]
    fn nobody_is_told_to_ask_for_more_than_may_be_asked_for() {
        let whole = format!("{}\nlast\n", "x".repeat(MOST + 1));
        for (max_chars, said) in [
            (None, "give a greater maxChars"),
            (Some(MOST), "go on with offset 1"),
        ] {
            let given = Given {
                offset: 0,
                limit: None,
                max_chars,
            };
            let result = told(&whole, &given);
            let text = serde_json::to_string(&result).unwrap();
            assert!(text.contains(said), "{max_chars:?}");
            assert_eq!(text.contains("greater"), max_chars.is_none());
        }
    }
}
