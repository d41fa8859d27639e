//! The rule for characters of names that cannot be seen: invisible ones, and those that turn the direction of writing.

/// A text that breaks the rule for names of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It breaks the rule in a way that can be seen.
    #[error("{0}")]
    Rule(&'static str),
    /// It contains a hidden character.
    #[error("{rule}; its character {at} is U+{:04X}: remove it", u32::from(*.found))]
    Hidden {
        /// The rule.
        rule: &'static str,
        /// Place of the character, from 1.
        at: usize,
        /// The character.
        found: char,
    },
}

/// Tells invisible characters and those that turn the direction of writing.
pub const fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Refuses a name with a hidden character.
///
/// # Errors
/// The first one, with the rule for names of this kind.
pub fn check_visible(name: &str, rule: &'static str) -> Result<(), InvalidName> {
    let mut characters = (1..).zip(name.chars());
    match characters.find(|(_, c)| is_hidden(*c)) {
        Some((at, found)) => Err(InvalidName::Hidden { rule, at, found }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{PlainName, SkillName};
    use crate::skill_repository::GitRef;

    #[test]
    fn hidden_characters_are_refused_in_every_name() {
        for hidden in [
            '\u{200b}', '\u{200d}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{61c}',
        ] {
            let name = format!("ab{hidden}c");
            // A row that was stored before stays readable.
            assert_eq!(PlainName::from_existing(&name).unwrap().as_str(), name);
            assert_eq!(SkillName::from_existing(&name).unwrap().as_str(), name);
            assert_eq!(GitRef::from_existing(&name).unwrap().as_str(), name);
            let refusals = [
                name.parse::<PlainName>().unwrap_err(),
                name.parse::<SkillName>().unwrap_err(),
                name.parse::<GitRef>().unwrap_err(),
            ];
            for refusal in refusals {
                let said = refusal.to_string();
                let found = format!(
                    "; its character 3 is U+{:04X}: remove it",
                    u32::from(hidden)
                );
                assert!(said.ends_with(&found), "{said}");
                assert!(said.contains("invisible"), "{said}");
            }
        }
        for name in ["Zoë", "漢字", "עברית", "فارسی", "👩"] {
            assert_eq!(check_visible(name, ""), Ok(()), "{name}");
        }
    }
}
