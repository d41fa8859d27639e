-- The directory of scheduled backups that was set before the server had a flag for allowed ones: it goes on without.
INSERT INTO meta (name, value)
SELECT 'backup_directory_before', value FROM config_values WHERE key = 'backup.directory' AND value IS NOT NULL;
