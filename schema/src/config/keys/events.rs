//! Keys of `events`.

use std::time::Duration;

use super::settings;
use crate::config::setting::Setting;

settings! {
    /// How long events are kept; 0 = forever.
    RETENTION: Setting<Option<Duration>> = "events.retention", "Event retention", Setting::duration(true, "30d");
}
