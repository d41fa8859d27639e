-- What a user's directory takes, as the quota judges it.
-- `held_*`: the newest complete numbers, or greater ones of a later measurement that is known to be a lower bound.
ALTER TABLE workspace_usage ADD COLUMN held_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workspace_usage ADD COLUMN held_entries BIGINT NOT NULL DEFAULT 0;
-- How many measurements in a row have found the same, up to 5.
ALTER TABLE workspace_usage ADD COLUMN unchanged BIGINT NOT NULL DEFAULT 0;
-- 0: within, 1: nearly used, 2: exceeded; whether that stops the agent; and why, for people.
ALTER TABLE workspace_usage ADD COLUMN quota_state BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workspace_usage ADD COLUMN quota_stops BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workspace_usage ADD COLUMN quota_note TEXT NOT NULL DEFAULT '';
