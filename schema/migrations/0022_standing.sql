-- Since when a user is disabled, or a container stopped, and who has decided that. NULL: it is not, or an earlier release did it.
ALTER TABLE users ADD COLUMN disabled_at BIGINT;
ALTER TABLE users ADD COLUMN disabled_by TEXT;
ALTER TABLE containers ADD COLUMN stopped_at BIGINT;
ALTER TABLE containers ADD COLUMN stopped_by TEXT;
