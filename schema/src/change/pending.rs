//! What a transaction has changed so far, written when it commits.

use std::collections::{BTreeMap, BTreeSet};

use strum::VariantArray;

use crate::ids::{Generation, Kind, Timestamp, Uid};

/// An object that was purged.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Gone {
    /// Its last name.
    pub name: String,
    /// Its last generation.
    pub generation: Generation,
    /// When its removal was asked for.
    pub deleted_at: Timestamp,
}

/// The objects that a transaction has changed; each is written once, however often it changed.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub changed: BTreeSet<(Kind, Uid)>,
    pub kinds: BTreeSet<Kind>,
    pub gone: BTreeMap<(Kind, Uid), Gone>,
}

impl Pending {
    /// One object was created or changed.
    pub fn changed(&mut self, kind: Kind, uid: &Uid) {
        self.changed.insert((kind, uid.clone()));
    }

    /// All objects of a kind were changed.
    pub fn all_changed(&mut self, kind: Kind) {
        self.kinds.insert(kind);
    }

    /// One object was purged.
    pub fn gone(&mut self, kind: Kind, uid: &Uid, gone: Gone) {
        self.changed.remove(&(kind, uid.clone()));
        self.gone.insert((kind, uid.clone()), gone);
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.kinds.is_empty() && self.gone.is_empty()
    }

    /// The objects to write one by one: without those that another row of here writes as well.
    pub fn single(&self) -> impl Iterator<Item = (Kind, &Uid)> {
        let covered = |kind: Kind, uid: &Uid| {
            self.kinds.iter().any(|all| writes(*all, kind))
                || Kind::VARIANTS.iter().any(|other| {
                    *other != kind
                        && writes(*other, kind)
                        && self.changed.contains(&(*other, uid.clone()))
                })
        };
        self.changed
            .iter()
            .filter(move |(kind, uid)| !covered(*kind, uid))
            .map(|(kind, uid)| (*kind, uid))
    }
}

/// Whether writing a change of one kind writes a row of the other.
fn writes(kind: Kind, other: Kind) -> bool {
    kind == other || kind.descriptor().shown_with == Some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_once() {
        let (alice, bob) = (Uid::singleton("alice"), Uid::singleton("bob"));
        let mut pending = Pending::default();
        pending.changed(Kind::User, &alice);
        pending.changed(Kind::Container, &alice);
        pending.changed(Kind::Container, &alice);
        pending.changed(Kind::User, &bob);
        let single: Vec<_> = pending.single().collect();
        assert_eq!(single, [(Kind::User, &bob), (Kind::Container, &alice)]);
        pending.all_changed(Kind::Container);
        assert_eq!(
            pending.single().count(),
            0,
            "the user goes with the kind, too"
        );
    }
}
