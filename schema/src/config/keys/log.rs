//! Keys of `log`.

use super::settings;
use crate::config::LogLevel;
use crate::config::setting::Setting;

settings! {
    /// Least severe level that is logged, changed at once. The environment variable RUST_LOG, if set, is obeyed instead.
    LEVEL: Setting<LogLevel> = "log.level", "Log level", Setting::choice("info");
}
