//! Accounts: ordinary users and superadmins.
//!
//! Superadmins are rows of the same table, so that a name is unique across both, but they have no
//! object, no container and no directory.

mod model;
pub(crate) mod query;

pub use model::{NewUser, Role, Source, User, UserListing, UserRow};
pub use query::{
    create, create_superadmin, delete, delete_superadmin, find, list, list_superadmins, purge,
    replace_password, row, rows, set_disabled, set_last_login, set_password, superadmin_count,
};
