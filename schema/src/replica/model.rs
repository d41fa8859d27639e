//! Replicas and places as values.

use sqlx::FromRow;

use crate::ids::Uid;

/// A replica.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Replica {
    /// Its identity, another one at each start.
    pub id: String,
    /// A number that no other replica has or had, from 1.
    pub number: i64,
    /// The URL at which other replicas reach it; empty when they do not.
    pub address: String,
    /// The name of its process: host and process id.
    pub name: String,
    /// Its flags that reach agents, as [`AgentFlags::to_text`](crate::config::flags::AgentFlags::to_text) writes them; empty when it is of
    /// an earlier release.
    pub flags: String,
}

/// The replica that has the executors of a place.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Owner {
    /// The replica.
    #[sqlx(flatten)]
    pub replica: Replica,
    /// The epoch of the place.
    pub epoch: i64,
}

/// The user and the service of a place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, FromRow)]
pub struct PlaceKey {
    /// The user.
    #[sqlx(rename = "user_uid")]
    pub user: Uid,
    /// The name of the service.
    pub service: String,
}

/// News of the executors at other replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Those of a place have come or gone.
    Of {
        /// The replica that says so.
        replica: String,
        /// The place.
        place: PlaceKey,
    },
    /// Notices may have been lost.
    All,
}

impl Notice {
    /// The text of a notice of a place.
    pub(super) fn text(replica: &str, place: &PlaceKey) -> String {
        format!("{replica} {} {}", place.service, place.user.as_str())
    }

    /// Reads a notice; `None` for a text that is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(' ').map(str::to_owned);
        let (replica, service, user) = (parts.next()?, parts.next()?, parts.next()?);
        let place = PlaceKey {
            user: Uid::from(user),
            service,
        };
        Some(Self::Of { replica, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notice_is_read_as_it_was_written() {
        let place = PlaceKey {
            user: Uid::from("a".repeat(32)),
            service: "browser".to_owned(),
        };
        let text = Notice::text("r1", &place);
        assert!(text.len() < 200);
        let replica = "r1".to_owned();
        assert_eq!(Notice::read(&text), Some(Notice::Of { replica, place }));
        assert_eq!(Notice::read("r1 browser"), None);
    }
}
