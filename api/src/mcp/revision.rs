//! Revisions of the Model Context Protocol (<https://modelcontextprotocol.io/specification/versioning>).

use std::str::FromStr;

/// A revision that the service speaks. A later one is greater.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::Display,
    strum::EnumString,
    strum::VariantArray,
)]
pub enum Revision {
    /// HTTP with a stream of events beside it.
    #[strum(serialize = "2024-11-05")]
    V2024_11_05,
    /// Streamable HTTP, with batches.
    #[strum(serialize = "2025-03-26")]
    V2025_03_26,
    /// Without batches.
    #[strum(serialize = "2025-06-18")]
    V2025_06_18,
    /// With a first event that has an id.
    #[strum(serialize = "2025-11-25")]
    V2025_11_25,
    /// Without sessions: every request says what it needs.
    #[strum(serialize = "2026-07-28")]
    V2026_07_28,
}

impl Revision {
    /// The newest that begins with a handshake.
    pub const NEWEST_WITH_HANDSHAKE: Self = Self::V2025_11_25;

    /// Whether a client of it begins with `initialize`.
    pub fn has_handshake(self) -> bool {
        self <= Self::NEWEST_WITH_HANDSHAKE
    }

    /// What is answered to an `initialize` that asks for this: the same if it begins with a handshake, the newest that does otherwise, and
    /// the oldest when nothing is asked for. Repeating whatever is asked would let a client of a later revision send its requests in an
    /// earlier handshake.
    pub fn agreed(asked: Option<&str>) -> Self {
        let Some(asked) = asked else {
            return Self::V2024_11_05;
        };
        let known = Self::from_str(asked).ok();
        known
            .filter(|known| known.has_handshake())
            .unwrap_or(Self::NEWEST_WITH_HANDSHAKE)
    }

    /// Whether a version header means the revision without sessions, or one that is later than all that are known.
    pub fn is_modern(header: &str) -> bool {
        // Dates are in the order of their texts.
        is_date(header) && header >= "2026-07-28"
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(None, "2024-11-05")]
    #[case(Some("2024-11-05"), "2024-11-05")]
    #[case(Some("2025-03-26"), "2025-03-26")]
    #[case(Some("2025-06-18"), "2025-06-18")]
    #[case(Some("2025-11-25"), "2025-11-25")]
    // What rmcp asks for in its handshake.
    #[case(Some("2026-07-28"), "2025-11-25")]
    #[case(Some("2099-01-01"), "2025-11-25")]
    #[case(Some("DRAFT"), "2025-11-25")]
    #[case(Some(""), "2025-11-25")]
    fn a_handshake_agrees_on_what_both_know(#[case] asked: Option<&str>, #[case] agreed: &str) {
        assert_eq!(Revision::agreed(asked).to_string(), agreed);
    }

    #[rstest]
    #[case("2026-07-28", true)]
    #[case("2099-01-01", true)]
    #[case("2025-11-25", false)]
    #[case("zzzz", false)]
    #[case("9999", false)]
    #[case("", false)]
    fn later_revisions_are_modern(#[case] header: &str, #[case] modern: bool) {
        assert_eq!(Revision::is_modern(header), modern);
    }
}
