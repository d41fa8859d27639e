-- The reason of a `Ready` that is not true, so that what is wrong can be counted; empty while it is true.
ALTER TABLE object_status ADD COLUMN reason TEXT NOT NULL DEFAULT '';

UPDATE object_status SET reason = coalesce((SELECT r.column1 FROM (VALUES
        ('Pending'), ('Running'), ('Stopped'), ('Disabled'), ('Converged'), ('UpdateAvailable'), ('Progressing'), ('NotReady'),
        ('EngineUnavailable'), ('EngineTooOld'), ('DataDirMismatch'), ('NetworkMissing'), ('NetworkInUse'), ('NetworkFull'),
        ('ImageMissing'), ('ImagePulling'), ('ImagePullFailed'), ('PullFailed'), ('ImageInUse'), ('RolloutPaused'),
        ('RolloutFailed'), ('ConfigPending'), ('InvalidUserConfig'), ('NoMigrationPath'), ('InvalidGlobalConfig'),
        ('AdapterSourceFailed'), ('AdapterInvalid'), ('ProviderFailed'), ('DirectoryFailed'), ('MassRemoval'), ('NameConflict'),
        ('SkillMissing'), ('NoManifest'), ('Cloning'), ('CloneFailed'), ('HostKeyChanged'), ('HomeConflict'), ('HomeMissing'),
        ('CrashLoop'), ('Unresponsive'), ('Exited'), ('ReplacementFailed'), ('NeedsRoot'), ('HostOpen'), ('InvalidSettings'),
        ('QuotaExceeded'), ('QuotaNearlyUsed'), ('WithinQuota'), ('StorageFull'), ('Retrying'), ('Failed'), ('Panicked'),
        ('NoProgress'), ('Terminating'), ('PausedByOperator'), ('WatchLost'), ('WatchRestored'), ('TaskEnded'), ('StorageLow'),
        ('StorageFailed'), ('DatabaseUnavailable'), ('LeaseLost'), ('Stuck'), ('Recovered')
    ) AS r WHERE object_status.conditions
        LIKE '%"type":"Ready","status":"' || object_status.ready || '","reason":"' || r.column1 || '",%'), '')
    WHERE ready <> 'True';

-- Finds the newest changes among calls of tools, messages, sign-ins and work on files; its condition is that of the query.
CREATE INDEX audit_changes ON audit (seq)
    WHERE outcome = 'ok' AND action <> 'mcp_call' AND action <> 'chat_messages' AND action <> 'login'
    AND action NOT IN ('login_oidc_callback', 'logout') AND action NOT LIKE 'files!_%' ESCAPE '!'
    AND action NOT LIKE 'chat!_%' ESCAPE '!' AND actor NOT LIKE 'system:%';
