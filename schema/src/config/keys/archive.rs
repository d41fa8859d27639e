//! Keys of `archive`.

use super::settings;
use crate::config::setting::{NotYet, Setting};

settings! {
    /// How long archived user directories are kept; 0 = forever.
    RETENTION: NotYet = "archive.retention", "Archive retention", Setting::duration(true, "0").not_yet();
}
