//! Accounts: ordinary users and superadmins.
//!
//! Superadmins are rows of the same table, so that a name is unique across both, but they have no
//! object, no container and no directory.

use crate::kind::{self, Column, Descriptor, Kind, Listing};

mod model;
pub(crate) mod query;
mod template;

pub use model::{NewUser, Role, Source, User, UserListing, UserRow};
pub use query::{
    create, create_superadmin, delete, delete_superadmin, find, list, list_superadmins, purge,
    replace_password, rotate_mcp_token, row, rows, set_disabled, set_last_login, set_password,
    superadmin_count,
};
pub use template::Template;

pub(crate) const KIND: Descriptor = Descriptor {
    finalizer: Some("user"),
    // The directory is archived when nothing uses it any more.
    removal_waits_for: &[Kind::Container],
    listing: Some(Listing {
        path: "/api/admin/users",
        list: "users",
        id: "username",
    }),
    columns: &[
        kind::USERNAME,
        Column::status("STATUS", "status"),
        Column::text("DESIRED", "desired"),
        kind::REASON,
        kind::SINCE,
        Column::text("IMAGE", "image"),
        Column::text("IP", "ip"),
        kind::AGE,
        Column::text("SOURCE", "source").wide(),
        Column::text("DISABLED", "disabled").wide(),
        kind::GENERATION,
        kind::OBSERVED,
        Column::text("GROUPS", "groups").wide(),
        Column::text("USED", "used").wide(),
        Column::age("LAST LOGIN", "last_login_at").wide(),
        kind::MESSAGE,
    ],
    ..Descriptor::new("users", &["u"])
};
