//! Every key there is, a row each in the file of its section. All else that is known of keys (the JSON Schema, what is
//! secret, what follows from a change, what is not available yet) is made from the rows.

pub mod adapter;
pub mod archive;
pub mod audit;
pub mod backup;
pub mod chat;
pub mod container;
pub mod events;
pub mod files;
pub mod image;
pub mod ldap;
pub mod log;
pub mod mcp;
pub mod oidc;
pub mod skills;
pub mod web;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::setting::{Effect, KeyDef, Secrets, Setting};

/// The rows of a section. The constant of a key `section.name` is `section::NAME`; its doc comment is the key's
/// description.
macro_rules! settings {
    ($($(#[doc = $line:literal])+ $name:ident: $type:ty = $key:literal, $title:literal, $setting:expr;)+) => {
        $($(#[doc = $line])+ pub const $name: $type = {
            let mut setting = $setting;
            setting.row.key = $key;
            setting.row.title = $title;
            setting.row.description = concat!($($line),+).trim_ascii();
            setting
        };)+
        /// All keys of this file.
        pub(super) const ROWS: &[$crate::config::KeyDef] = &[$($name.row),+];
    };
}
use settings;

settings! {
    /// Merged into every agent's configuration file. Replaced as a whole.
    AGENT: Setting<Value> = "agent", "Agent configuration", Setting::object(Secrets::ByAdapter).effects(&[Effect::Files]);

    /// Merged into every agent's security file. Every value in it is secret. Replaced as a whole.
    SECURITY: Setting<Value> = "security", "Agent secrets", Setting::object(Secrets::All).effects(&[Effect::Files]);
}

pub(super) const SECTIONS: &[&[KeyDef]] = &[
    ROWS,
    adapter::ROWS,
    archive::ROWS,
    audit::ROWS,
    backup::ROWS,
    chat::ROWS,
    container::ROWS,
    events::ROWS,
    files::ROWS,
    image::ROWS,
    ldap::ROWS,
    log::ROWS,
    mcp::ROWS,
    oidc::ROWS,
    skills::ROWS,
    web::ROWS,
];

/// All keys by name.
pub static KEYS: LazyLock<BTreeMap<&'static str, &'static KeyDef>> = LazyLock::new(|| {
    let rows = SECTIONS.iter().copied().flatten();
    rows.map(|row| (row.key, row)).collect()
});

/// Finds a key by its dotted name.
pub fn find(key: &str) -> Option<&'static KeyDef> {
    KEYS.get(key).copied()
}

/// Whether some key begins with `group` and a dot.
pub(super) fn is_group(group: &str) -> bool {
    KEYS.keys().any(|key| {
        key.strip_prefix(group)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}
