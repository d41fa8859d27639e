//! Groups of users: a tree, in which a member of a group is a member of the groups above it, too.

mod model;
pub(crate) mod query;

pub use model::{Group, GroupListing, Member, NewGroup};
pub(crate) use query::forget_user;
pub use query::{
    add_members, create, delete, direct_members, find, get, list, lock, members, names_above,
    names_of_users, remove_member, remove_members, revision, set_parent, with_descendants,
};
