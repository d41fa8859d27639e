//! Parameters that several routes take, and their rules.

use schema::config::Setting;
use schema::ids::{Kind, Timestamp, UserName};
use schema::reader::Connection;
use schema::secrets::random_password;
use schema::user::{self, Role, User};
use secrecy::{ExposeSecret, SecretString};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use strum::VariantArray;
use utoipa::ToSchema;

use crate::auth::Account;
use crate::auth::password::check_rules;
use crate::error::{ApiError, Result};

/// A request about one account.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Who {
    /// The user's name.
    pub username: UserName,
}

/// A name and a password, returned only once.
#[derive(Serialize, ToSchema)]
pub struct Credentials {
    /// The account's name.
    username: UserName,
    /// Returned only once.
    #[schema(format = Password, example = "tg7XqLr0aZ2mWcVd")]
    password: String,
}

impl Credentials {
    pub(super) fn new(username: UserName, password: &SecretString) -> Self {
        Self {
            username,
            password: password.expose_secret().to_owned(),
        }
    }
}

/// The form of a request for a new password.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ResetForm {
    /// The account's name.
    pub username: UserName,
    /// The new password; random when absent or empty.
    #[schema(value_type = Option<String>, format = Password)]
    pub password: Option<SecretString>,
}

/// A password to set.
pub(super) struct NewPassword {
    pub(super) password: SecretString,
    /// Nobody has seen it yet.
    random: bool,
}

impl NewPassword {
    /// The one given, or else a random one.
    pub(super) fn read(given: Option<SecretString>) -> Result<Self> {
        let given = given.filter(|password| !password.expose_secret().is_empty());
        let Some(password) = given else {
            return Self::random();
        };
        check_rules("password", &password)?;
        Ok(Self {
            password,
            random: false,
        })
    }

    pub(super) fn random() -> Result<Self> {
        Ok(Self {
            password: random_password().map_err(ApiError::internal)?,
            random: true,
        })
    }

    /// What the answer says of it.
    pub(super) fn reset(self, username: UserName) -> PasswordReset {
        PasswordReset {
            username,
            password: self.reveal_random(),
        }
    }

    /// Returns the password if it is random; a given one is known to the caller.
    pub(super) fn reveal_random(self) -> Option<String> {
        let random = self.random.then_some(self.password);
        random.map(|password| password.expose_secret().to_owned())
    }
}

/// An account with a new password.
#[derive(Serialize, ToSchema)]
pub struct PasswordReset {
    /// The account's name.
    username: UserName,
    /// The random password, returned only once; absent when it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = Password, example = "tg7XqLr0aZ2mWcVd")]
    password: Option<String>,
}

/// The ordinary user of this name, unless there is none. One that is being removed is there.
pub(super) async fn ordinary_user(connection: &mut Connection, name: &UserName) -> Result<User> {
    user::find(connection, name)
        .await?
        .filter(|user| user.role == Role::User)
        .ok_or_else(|| ApiError::not_found(format!("user {name}")))
}

/// An ordinary user that can be worked with: there, and not being removed.
pub(super) async fn present_user(connection: &mut Connection, name: &UserName) -> Result<User> {
    let user = ordinary_user(connection, name).await?;
    if user.deleted_at.is_some() {
        let message = format!("user {name} is being removed");
        return Err(ApiError::conflict("name_being_removed", message));
    }
    Ok(user)
}

/// The ordinary user who sent the request. Another one may have the name by the time the body has come.
pub(super) async fn own_user(connection: &mut Connection, account: &Account) -> Result<User> {
    let user = present_user(connection, &account.name).await?;
    (user.uid == account.uid)
        .then_some(user)
        .ok_or(ApiError::NotSignedIn)
}

/// A user whose container may be started.
pub(super) fn enabled(user: User) -> Result<User> {
    if user.disabled {
        let message = format!("user {} is disabled; enable the account first", user.name);
        return Err(ApiError::conflict("account_disabled", message));
    }
    Ok(user)
}

/// Checks a value by the rule of a configuration key; `field` is to blame for what breaks it.
pub(super) fn by_rule_of<T>(setting: &Setting<T>, field: &str, value: &Value) -> Result<()> {
    let row = &setting.row;
    match row.check(value) {
        Ok(_) => Ok(()),
        Err(problem) => Err(ApiError::invalid(
            field,
            problem.message.replace(row.key, field),
        )),
    }
}

/// A text that was given: an empty one was not.
pub(super) fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// That objects are named by `object` and by `kind` at once, which may contradict each other.
pub(super) fn kind_beside_object() -> ApiError {
    ApiError::invalid("kind", "kind is part of object; give one of them")
}

/// A moment: RFC 3339, or whole Unix seconds. An empty text is none.
pub(super) fn moment(field: &str, text: Option<&str>) -> Result<Option<Timestamp>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let seconds = text.parse::<u32>().ok().map(i64::from);
    let moment = match seconds {
        Some(seconds) => Some(Timestamp::from_secs(seconds)),
        None => Timestamp::parse_rfc3339(text),
    };
    moment.map(Some).ok_or_else(|| {
        ApiError::invalid(
            field,
            format!("{field} is a time such as 2026-05-11T11:46:40Z, or Unix seconds"),
        )
    })
}

/// An object as `kind/name`.
pub(super) fn object_address(field: &str, text: &str) -> Result<(Kind, String)> {
    text.split_once('/')
        .and_then(|(kind, name)| Some((kind.parse().ok()?, name.to_owned())))
        .filter(|(_, name)| !name.is_empty())
        .ok_or_else(|| {
            ApiError::invalid(
                field,
                format!("{field} is kind/name, such as container/alice"),
            )
        })
}

/// A kind of object.
pub(super) fn kind(field: &str, text: &str) -> Result<Kind> {
    text.parse().map_err(|_| {
        let kinds: Vec<&str> = Kind::VARIANTS.iter().map(|kind| kind.as_str()).collect();
        ApiError::invalid(field, format!("{field} is one of {}", kinds.join(", ")))
    })
}

/// A switch of a query: `?refresh` alone turns it on.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.to_ascii_lowercase().as_str() {
        "" | "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(D::Error::custom("must be true or false")),
    }
}

/// Names from a list, or from a text that separates them by commas or line breaks.
pub(super) fn names(texts: &[String]) -> Vec<&str> {
    texts
        .iter()
        .flat_map(|text| text.split([',', '\n', '\r']))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_separated_by_commas_or_line_breaks() {
        let texts = ["a, b\r\nc,,\n".to_owned(), "d".to_owned()];
        assert_eq!(names(&texts), ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_moment_is_rfc_3339_or_unix_seconds() {
        let expected = Some(Timestamp::from_secs(1_778_500_000));
        for text in [
            "1778500000",
            "2026-05-11T11:46:40Z",
            "2026-05-11T13:46:40+02:00",
        ] {
            assert_eq!(moment("since", Some(text)).unwrap(), expected, "{text}");
        }
        assert_eq!(moment("since", Some("")).unwrap(), None);
        for text in ["yesterday", "-1", "99999999999999999999"] {
            assert!(moment("since", Some(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_broken_rule_names_the_parameter_not_the_key() {
        let error = by_rule_of(
            &schema::config::keys::image::TAG,
            "image_tag",
            &json!("a b"),
        )
        .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("image_tag") && !text.contains("image.tag"),
            "{text}"
        );
        assert!(
            by_rule_of(
                &schema::config::keys::image::TAG,
                "image_tag",
                &json!("v1.2")
            )
            .is_ok()
        );
    }

    #[test]
    fn objects_are_named_by_kind_and_name() {
        let alice = (Kind::Container, "alice".to_owned());
        assert_eq!(object_address("object", "container/alice").unwrap(), alice);
        for text in ["alice", "pod/alice", "container/", ""] {
            assert!(object_address("object", text).is_err(), "{text}");
        }
    }
}
