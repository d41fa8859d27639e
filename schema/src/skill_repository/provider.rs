//! Who runs a repository's server.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// Who runs a repository's server: which user name its tokens belong to.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
    ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = RepositoryProvider)]
pub enum Provider {
    /// GitHub, also on premises.
    Github,
    /// GitLab, also on premises.
    Gitlab,
    /// Gitee.
    Gitee,
    /// Any other server.
    Other,
}

impl Provider {
    /// The user name that a token is sent with when none is given.
    pub fn default_username(self) -> &'static str {
        match self {
            Self::Github => "x-access-token",
            Self::Gitlab => "oauth2",
            Self::Gitee | Self::Other => "git",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_a_word_and_a_user_name() {
        for (word, provider, username) in [
            ("github", Provider::Github, "x-access-token"),
            ("gitlab", Provider::Gitlab, "oauth2"),
            ("gitee", Provider::Gitee, "git"),
            ("other", Provider::Other, "git"),
        ] {
            assert_eq!(word.parse(), Ok(provider));
            assert_eq!(provider.to_string(), word);
            assert_eq!(provider.default_username(), username);
            assert_eq!(serde_json::to_value(provider).unwrap(), word);
        }
        assert!("GitHub".parse::<Provider>().is_err());
    }
}
