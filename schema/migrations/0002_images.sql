-- Images on the engine, and rollouts of images over users.

-- The image a rollout gave a container: what its reference was resolved to, once for all users of the
-- rollout. NULL: the container reconciler resolves the reference when it first makes the container.
ALTER TABLE containers ADD COLUMN image_id TEXT;
ALTER TABLE containers ADD COLUMN image_digest TEXT;
-- How long the replacement may take to become ready, while a rollout moves it.
ALTER TABLE containers ADD COLUMN health_timeout_ms BIGINT;

-- The newest generation that a change of many objects gave this one: as long as it is the newest at all,
-- people who wait for something else come first.
ALTER TABLE objects ADD COLUMN bulk_generation BIGINT NOT NULL DEFAULT 0;

-- Images an administrator wants on the engine, or off it. Written by the API.
CREATE TABLE images (
    uid        TEXT NOT NULL PRIMARY KEY,
    reference  TEXT NOT NULL,
    desired    TEXT NOT NULL,
    pull_token TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX images_reference ON images (reference);

-- What the image reconciler must remember. Written by it only.
CREATE TABLE image_facts (
    uid        TEXT NOT NULL PRIMARY KEY REFERENCES images (uid) ON DELETE CASCADE,
    image_id   TEXT,
    digest     TEXT,
    pull_token TEXT,
    pulled_at  BIGINT
);

-- A move of users from their images to another one. Written by the API.
CREATE TABLE rollouts (
    uid               TEXT NOT NULL PRIMARY KEY REFERENCES operations (id),
    type              TEXT NOT NULL,
    reference         TEXT NOT NULL,
    source            TEXT,
    max_unavailable   BIGINT NOT NULL,
    pause_on_failure  BIGINT NOT NULL,
    health_timeout_ms BIGINT NOT NULL,
    wish              TEXT NOT NULL,
    attempt           BIGINT NOT NULL DEFAULT 1
);

-- How far it is. Written by the rollout reconciler; `finished_at` is also cleared by the API, when a
-- finished rollout is rolled back.
CREATE TABLE rollout_facts (
    uid              TEXT NOT NULL PRIMARY KEY REFERENCES rollouts (uid) ON DELETE CASCADE,
    image_id         TEXT,
    image_digest     TEXT,
    resolved_attempt BIGINT NOT NULL DEFAULT 0,
    paused_attempt   BIGINT NOT NULL DEFAULT 0,
    phase            TEXT NOT NULL,
    message          TEXT NOT NULL DEFAULT '',
    finished_at      BIGINT
);
CREATE INDEX rollout_facts_unfinished ON rollout_facts (uid) WHERE finished_at IS NULL;

-- Its users, in order, and what they had before.
CREATE TABLE rollout_targets (
    rollout_uid     TEXT NOT NULL REFERENCES rollouts (uid) ON DELETE CASCADE,
    uid             TEXT NOT NULL,
    name            TEXT NOT NULL,
    position        BIGINT NOT NULL,
    state           TEXT NOT NULL,
    image_id        TEXT,
    previous_ref    TEXT,
    previous_id     TEXT,
    previous_digest TEXT,
    generation      BIGINT,
    moved_at        BIGINT,
    finished_at     BIGINT,
    message         TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (rollout_uid, uid)
);
CREATE INDEX rollout_targets_uid ON rollout_targets (uid);

INSERT INTO guards (name, n) VALUES ('rollouts', 0), ('images', 0);
