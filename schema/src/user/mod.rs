//! Accounts: ordinary users and superadmins.
//!
//! Superadmins are rows of the same table, so that a name is unique across both, but they have no
//! object, no container and no directory.

use crate::kind::{self, Column, Descriptor, Kind, Listing, Show};

mod bulk;
mod health;
pub(crate) mod listing;
mod model;
pub(crate) mod query;
mod template;

pub use bulk::{BulkChange, change_in_bulk, lock_for_bulk};
pub use health::{Health, Standstill, StandstillReason};
pub use listing::{
    ImageFilter, StatusCount, UserFilter, UserOrder, UserSort, count, count_by_status,
    count_unready, list, list_filtered, listing,
};
pub use model::{NewUser, Role, Source, User, UserListing, UserRow};
pub use query::{
    create, create_superadmin, delete, delete_superadmin, end_rename, find, list_superadmins,
    purge, record_disabling, release_previous_name, replace_password, rotate_mcp_token, row, rows,
    set_disabled, set_last_login, set_password, superadmin_count,
};
pub use template::Template;

pub(crate) const KIND: Descriptor = Descriptor {
    finalizer: Some("user"),
    parts: &[Kind::Container, Kind::AgentConfig, Kind::SkillSet],
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
        Column::status("READY", "health.status"),
        Column::text("REASON", "health.reason").show(Show::Reason),
        Column::age("SINCE", "health.since"),
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
        Column::text("OBJECT", "health.object").wide(),
        Column::text("MESSAGE", "health.message").wide(),
    ],
    ..Descriptor::new("users", &["u"])
};
