//! Keys of `files`.

use super::settings;
use crate::config::setting::{NotYet, Setting};

settings! {
    /// Space per user for uploads in MiB; 0 = unlimited.
    QUOTA_MB: NotYet = "files.quota_mb", "Workspace quota (MiB)", Setting::integer(0, 1_073_741_824, 0).not_yet();
}
