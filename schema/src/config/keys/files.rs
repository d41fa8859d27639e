//! Keys of `files`.

use super::settings;
use crate::config::setting::Setting;

settings! {
    /// Space per user for uploads in MiB; 0 = unlimited.
    QUOTA_MB: Setting<u64> = "files.quota_mb", "Workspace quota (MiB)", Setting::integer(0, 1_073_741_824, 0);
}
