//! Keys of `backup`.

use std::time::Duration;

use super::settings;
use crate::config::rules;
use crate::config::setting::Setting;

settings! {
    /// Directory on the server's machine that scheduled backups are kept in; empty = no schedule. It must be one that `--backup-directory` of
    /// the server names, or lie below, exist, outside the data directory, and only the service may write in it.
    DIRECTORY: Setting<Option<String>> = "backup.directory", "Backup directory", Setting::optional(rules::absolute_path);

    /// Time between two scheduled backups.
    EVERY: Setting<Option<Duration>> = "backup.every", "Backup interval", Setting::duration(false, "24h");

    /// Number of backups that are kept; 0 = all. The newest one is never removed.
    KEEP: Setting<u64> = "backup.keep", "Backups kept", Setting::integer(0, 100_000, 14);

    /// Days for which backups are kept; 0 = forever. The newest one is never removed.
    KEEP_DAYS: Setting<u64> = "backup.keep_days", "Backup age (days)", Setting::integer(0, 36_500, 0);
}
