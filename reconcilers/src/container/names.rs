//! The names of a user's containers.
//!
//! The temporary names end in `-`: no user name does, so the replacement of `bob` can never meet the
//! container of a user called `bob.next`.

use schema::ids::{Uid, UserName};

/// The names a user's containers may bear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The container in use.
    pub base: String,
    /// Its replacement, before it takes over.
    pub next: String,
    /// The replaced one, until the replacement is ready.
    pub prev: String,
    /// One that is never started: the image's own home is read from it. Left over, it goes as a stray.
    pub seed: String,
}

impl Names {
    /// Returns whether a name is that of a container that replaces another one, or was replaced.
    pub fn is_temporary(name: &str) -> bool {
        name.ends_with(".next-") || Self::is_previous(name)
    }

    /// Whether a name is that of a replaced container.
    pub fn is_previous(name: &str) -> bool {
        name.ends_with(".prev-")
    }

    /// The names of one user's containers.
    pub fn of(name: &UserName, uid: &Uid) -> Self {
        let base = name.container_name(uid);
        Self {
            next: format!("{base}.next-"),
            prev: format!("{base}.prev-"),
            seed: format!("{base}.seed-"),
            base,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_name_is_never_another_users_name() {
        let uid = Uid::random();
        let bob = Names::of(&"bob".parse().unwrap(), &uid);
        for other in ["bob.next", "bob.prev", "bob.seed", "bob.next-1"] {
            let other = Names::of(&other.parse().unwrap(), &uid);
            assert!(![&bob.next, &bob.prev, &bob.seed].contains(&&other.base));
        }
        assert!("bob.next-".parse::<UserName>().is_err());
    }
}
