//! Groups of users: a tree, in which a member of a group is a member of the groups above it, too.

mod model;
pub(crate) mod query;

pub use model::{Group, GroupListing, Member, NewGroup};
pub use query::{
    add_member, create, delete, find, forget_user, list, members, names_of_users, remove_member,
    with_descendants,
};
