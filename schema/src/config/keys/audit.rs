//! Keys of `audit`.

use std::time::Duration;

use super::settings;
use crate::config::setting::Setting;

settings! {
    /// How long audit entries are kept; 0 = forever.
    RETENTION: Setting<Option<Duration>> = "audit.retention", "Audit retention", Setting::duration(true, "0");
}
