//! How values are kept in columns, for types that the database library does not know.

use std::time::Duration;

use serde::de::DeserializeOwned;
use sqlx::any::{AnyTypeInfo, AnyValueRef};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::{Any, Database, Decode, Encode, Type};

use crate::adapter::Applied;
use crate::condition::Reason;
use crate::container::Desired;
use crate::ids::{Kind, PlainName, SkillName, UserName};
use crate::image::DesiredImage;
use crate::rollout::{DesiredRollout, Phase, RolloutKind};
use crate::skill_repository::GitRef;
use crate::user::Role;

/// 0 or 1.
#[derive(Debug, Clone, Copy, Type)]
#[sqlx(transparent, no_pg_array)]
pub(crate) struct Flag(i64);

impl From<Flag> for bool {
    fn from(Flag(value): Flag) -> Self {
        value != 0
    }
}

impl From<bool> for Flag {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

/// A time limit in milliseconds, or NULL.
#[derive(Debug, Clone, Copy, Type)]
#[sqlx(transparent, no_pg_array)]
pub(crate) struct Millis(Option<i64>);

impl From<Option<Duration>> for Millis {
    fn from(limit: Option<Duration>) -> Self {
        Self(limit.map(|limit| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl From<Millis> for Option<Duration> {
    fn from(Millis(millis): Millis) -> Self {
        let millis = millis.and_then(|millis| u64::try_from(millis).ok());
        millis.map(Duration::from_millis)
    }
}

impl From<Millis> for Duration {
    fn from(millis: Millis) -> Self {
        Option::from(millis).unwrap_or_default()
    }
}

fn text(value: AnyValueRef<'_>) -> Result<&str, BoxDynError> {
    Decode::<Any>::decode(value)
}

/// A list as JSON.
#[derive(Debug)]
pub(crate) struct JsonList<T>(Vec<T>);

impl<T> Type<Any> for JsonList<T> {
    fn type_info() -> AnyTypeInfo {
        <str as Type<Any>>::type_info()
    }
}

impl<T: DeserializeOwned> Decode<'_, Any> for JsonList<T> {
    fn decode(value: AnyValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(Self(serde_json::from_str(text(value)?)?))
    }
}

impl<T> From<JsonList<T>> for Vec<T> {
    fn from(list: JsonList<T>) -> Self {
        list.0
    }
}

impl<T> From<JsonList<T>> for Option<Vec<T>> {
    fn from(list: JsonList<T>) -> Self {
        Some(list.0)
    }
}

impl Type<Any> for Applied {
    fn type_info() -> AnyTypeInfo {
        <str as Type<Any>>::type_info()
    }
}

impl Decode<'_, Any> for Applied {
    fn decode(value: AnyValueRef<'_>) -> Result<Self, BoxDynError> {
        Ok(serde_json::from_str(text(value)?)?)
    }
}

/// Types that are read from a text, by their own function or by that for texts of callers.
macro_rules! read_from_text {
    ($($type:ty),+ $(,)?) => {
        read_from_text!($($type => str::parse::<$type>),+);
    };
    ($($type:ty => $read:expr),+ $(,)?) => {$(
        impl Type<Any> for $type {
            fn type_info() -> AnyTypeInfo {
                <str as Type<Any>>::type_info()
            }
        }

        impl Decode<'_, Any> for $type {
            fn decode(value: AnyValueRef<'_>) -> Result<Self, BoxDynError> {
                let text = text(value)?;
                $read(text).map_err(|_| format!("{text:?} is not a valid value").into())
            }
        }

    )+};
}

/// Types that are kept as they are displayed and parsed.
macro_rules! kept_as_text {
    ($($type:ty),+ $(,)?) => {
        kept_as_text!($($type => str::parse::<$type>),+);
    };
    ($($type:ty => $read:expr),+ $(,)?) => {$(
        read_from_text!($type => $read);

        impl Encode<'_, Any> for $type {
            fn encode_by_ref(
                &self,
                buffer: &mut <Any as Database>::ArgumentBuffer,
            ) -> Result<IsNull, BoxDynError> {
                Encode::<Any>::encode(self.to_string(), buffer)
            }
        }
    )+};
}

kept_as_text!(
    Desired,
    DesiredImage,
    DesiredRollout,
    Kind,
    Phase,
    Reason,
    Role,
    RolloutKind,
    UserName,
    crate::adapter::store::Source,
    crate::api_token::Role,
    crate::audit::Which,
    crate::rollout::TargetState,
    crate::skill_store::TreeDigest,
    crate::skill_store::TreeStamp,
    crate::skill_repository::Provider,
    crate::skill_repository::RefType,
    crate::skill_repository::RepositoryUrl,
    crate::user::Source,
    crate::directory::SyncScope,
);

kept_as_text!(
    PlainName => PlainName::from_existing,
    SkillName => SkillName::from_existing,
    GitRef => GitRef::from_existing,
);

read_from_text!(
    crate::container::StatusWord,
    crate::home::ArchiveBatch,
    crate::operation::TargetState,
);
