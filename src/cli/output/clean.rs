//! Text that others wrote, made harmless for a terminal.

use schema::visible::is_hidden;

/// Makes control characters visible: a name or message must not move the cursor, change colours, set
/// the window's title, or turn the direction of writing around.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => cleaned.push_str("\\n"),
            '\t' => cleaned.push(' '),
            '\r' => cleaned.push_str("\\r"),
            c if c.is_control() || is_hidden(c) => {
                cleaned.extend(c.escape_unicode());
            }
            c => cleaned.push(c),
        }
    }
    cleaned
}

/// Several lines, each made harmless.
pub fn clean_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let evil = "a\x1b[31mred\x1b]0;title\x07\u{9b}2J\u{202e}b\r\nc\td\u{7f}";
        let cleaned = clean(evil);
        assert_eq!(
            cleaned,
            "a\\u{1b}[31mred\\u{1b}]0;title\\u{7}\\u{9b}2J\\u{202e}b\\r\\nc d\\u{7f}"
        );
        assert_eq!(clean("Zoë 漢字"), "Zoë 漢字");
        assert_eq!(clean_lines("a\x1b\nb"), "a\\u{1b}\nb");
    }
}
