//! Keys of `skills`.

use super::settings;
use crate::config::rules;
use crate::config::setting::Setting;
use crate::ids::SkillName;

settings! {
    /// Allow skill repositories on private and loopback addresses.
    ALLOW_PRIVATE_HOSTS: Setting<bool> = "skills.allow_private_hosts", "Repositories on private hosts", Setting::flag(false);

    /// Skills that every user gets.
    DEFAULTS: Setting<Vec<SkillName>> = "skills.defaults", "Default skills", Setting::list(rules::skill);
}
