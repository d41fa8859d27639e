-- What users' workspaces take on the disk. `changes` is raised by the API when a request changes a workspace; all else is written
-- by the usage reconciler only.
CREATE TABLE workspace_usage (
    uid              TEXT   NOT NULL PRIMARY KEY REFERENCES users (uid) ON DELETE CASCADE,
    -- Of the newest measurement that succeeded; NULL before the first. `complete` is 0 when there may be more.
    used_bytes       BIGINT,
    files            BIGINT,
    entries          BIGINT,
    complete         BIGINT NOT NULL DEFAULT 0,
    measured_at      BIGINT,
    -- Of the newest measurement; `problem`: why it failed.
    attempted_at     BIGINT,
    problem          TEXT,
    -- How often requests have changed the workspace, and how many of these changes the newest measurement has seen.
    changes          BIGINT NOT NULL DEFAULT 0,
    measured_changes BIGINT NOT NULL DEFAULT 0
);
