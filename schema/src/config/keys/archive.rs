//! Keys of `archive`.

use std::time::Duration;

use super::settings;
use crate::config::setting::{Effect, Setting};
use crate::kind::Kind;

settings! {
    /// How long archived user directories are kept; 0 = forever.
    RETENTION: Setting<Option<Duration>> = "archive.retention", "Archive retention", Setting::duration(true, "0").effects(&[Effect::Object(Kind::Archive)]);
}
