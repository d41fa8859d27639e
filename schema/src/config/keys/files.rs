//! Keys of `files`.

use super::settings;
use crate::config::setting::{Effect, Setting};
use crate::kind::Kind;

settings! {
    /// Consequence of a user's directory that takes more than the quota: uploads are refused, and the user is shown with a warning (`warn`); or
    /// the agent is stopped as well until less is used (`stop`).
    QUOTA_ACTION: Setting<String> = "files.quota_action", "Action at the quota", Setting::word(&["warn", "stop"], "warn").effects(&[Effect::Object(Kind::Usage)]);

    /// Files and directories per user; 0 = unlimited. Those that the agent makes count, too.
    QUOTA_FILES: Setting<u64> = "files.quota_files", "File quota", Setting::integer(0, 1_000_000_000, 0).effects(&[Effect::Object(Kind::Usage)]);

    /// Space per user in MiB; 0 = unlimited. What the agent writes into its home counts, too.
    QUOTA_MB: Setting<u64> = "files.quota_mb", "Space quota (MiB)", Setting::integer(0, 1_073_741_824, 0).effects(&[Effect::Object(Kind::Usage)]);
}
