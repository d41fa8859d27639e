//! The language that a browser asks for.

/// A language of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    /// Its tag, as the page names it.
    pub(super) fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        }
    }
}

/// Finds the language of the console that an `Accept-Language` prefers; `None` when it names neither.
pub(super) fn preferred(accepted: &str) -> Option<Language> {
    let mut best: Option<(f32, Language)> = None;
    for part in accepted.split(',') {
        let (tag, weight) = match part.split_once(';') {
            Some((tag, rest)) => (tag, rest.trim().strip_prefix("q=").unwrap_or("1")),
            None => (part, "1"),
        };
        let language = match tag.trim().split('-').next() {
            Some(tag) if tag.eq_ignore_ascii_case("en") => Language::English,
            Some(tag) if tag.eq_ignore_ascii_case("zh") => Language::Chinese,
            _ => continue,
        };
        let weight = weight.trim().parse().unwrap_or(0.0);
        if weight > 0.0 && best.is_none_or(|(heaviest, _)| weight > heaviest) {
            best = Some((weight, language));
        }
    }
    best.map(|(_, language)| language)
}
