//! Keys of `skills`.

use super::settings;
use crate::config::rules;
use crate::config::setting::{NotYet, Setting};

settings! {
    /// Allow skill repositories on private and loopback addresses.
    ALLOW_PRIVATE_HOSTS: NotYet = "skills.allow_private_hosts", "Repositories on private hosts", Setting::flag(false).not_yet();

    /// Skills that every user gets.
    DEFAULTS: NotYet = "skills.defaults", "Default skills", Setting::<Vec<String>>::list(rules::skill).not_yet();
}
