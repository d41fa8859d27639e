//! Keys of `log`.

use super::settings;
use crate::config::setting::{NotYet, Setting};

settings! {
    /// Least severe level that is logged.
    LEVEL: NotYet = "log.level", "Log level", Setting::word(&["error", "warn", "info", "debug", "trace"], "info").not_yet();
}
