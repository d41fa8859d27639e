-- How long an agent must have been ready before its replacement counts; NULL: as configured.
ALTER TABLE containers ADD COLUMN min_ready_ms BIGINT;
ALTER TABLE rollouts ADD COLUMN min_ready_ms BIGINT NOT NULL DEFAULT 10000;

-- The first failed pull of the present attempt: a rollout whose image cannot be pulled for long ends.
ALTER TABLE rollout_facts ADD COLUMN pull_failed_at BIGINT;
-- The last lines of the log of a user's container that failed.
ALTER TABLE rollout_targets ADD COLUMN log TEXT NOT NULL DEFAULT '';

-- In words, how the container ended last.
ALTER TABLE container_facts ADD COLUMN last_exit_cause TEXT;

-- The newest ends of each user's container that were not asked for, and failed replacements. Written by the container reconciler only.
CREATE TABLE container_ends (
    uid       TEXT   NOT NULL REFERENCES containers (uid) ON DELETE CASCADE,
    ended_at  BIGINT NOT NULL,
    exit_code BIGINT,
    cause     TEXT   NOT NULL,
    -- The last lines of its log.
    log       TEXT   NOT NULL,
    PRIMARY KEY (uid, ended_at)
);
