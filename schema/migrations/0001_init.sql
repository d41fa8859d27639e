-- Portable types only: TEXT, BIGINT (milliseconds; 0/1 for truth), DOUBLE PRECISION, BYTEA.
-- The same text runs on SQLite and on PostgreSQL.

-- Facts about this installation, such as its instance id.
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Secrets that are not configuration, sealed under the master key.
CREATE TABLE sealed (
    name  TEXT NOT NULL PRIMARY KEY,
    value BYTEA NOT NULL
);

-- An invariant over several rows first takes its guard row, so that two transactions cannot both pass it.
CREATE TABLE guards (
    name TEXT NOT NULL PRIMARY KEY,
    n    BIGINT NOT NULL
);

-- What every reconciled object has, whatever its kind. Written by the API.
CREATE TABLE objects (
    kind       TEXT NOT NULL,
    uid        TEXT NOT NULL,
    name       TEXT NOT NULL,
    generation BIGINT NOT NULL,
    paused     BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT,
    PRIMARY KEY (kind, uid)
);
CREATE INDEX objects_name ON objects (kind, name);

-- What is known of it. Written by its reconciler only.
CREATE TABLE object_status (
    kind                TEXT NOT NULL,
    uid                 TEXT NOT NULL,
    observed_generation BIGINT NOT NULL,
    epoch               BIGINT NOT NULL,
    ready               TEXT NOT NULL,
    conditions          TEXT NOT NULL,
    failures            BIGINT NOT NULL,
    next_attempt_at     BIGINT,
    PRIMARY KEY (kind, uid),
    FOREIGN KEY (kind, uid) REFERENCES objects (kind, uid) ON DELETE CASCADE
);

-- Who still has to clean up before a deleted object may be purged.
CREATE TABLE finalizers (
    kind TEXT NOT NULL,
    uid  TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (kind, uid, name),
    FOREIGN KEY (kind, uid) REFERENCES objects (kind, uid)
);

-- Reconcilers whose passes are switched off; the name '*' stands for all.
CREATE TABLE paused_reconcilers (
    name TEXT NOT NULL PRIMARY KEY
);

-- Accounts: ordinary users and superadmins. The name stays taken until the row is purged.
CREATE TABLE users (
    uid             TEXT NOT NULL PRIMARY KEY,
    name            TEXT NOT NULL,
    name_key        TEXT NOT NULL,
    role            TEXT NOT NULL,
    source          TEXT NOT NULL,
    password_hash   TEXT,
    disabled        BIGINT NOT NULL DEFAULT 0,
    created_at      BIGINT NOT NULL,
    last_login_at   BIGINT,
    last_session_at BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX users_name_key ON users (name_key);
CREATE INDEX users_role ON users (role, name_key);

-- The newest session time that a purged bearer of a name had, so that none of its cookies can ever
-- equal a cookie of the next bearer.
CREATE TABLE retired_names (
    name_key        TEXT NOT NULL PRIMARY KEY,
    last_session_at BIGINT NOT NULL
);

-- A signed cookie without its live row here is dead.
CREATE TABLE sessions (
    uid        TEXT NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
    issued_at  BIGINT NOT NULL,
    address    TEXT NOT NULL,
    client     TEXT NOT NULL,
    PRIMARY KEY (uid, issued_at)
);
CREATE INDEX sessions_issued_at ON sessions (issued_at);

-- The desired state of a user's container. Written by the API.
CREATE TABLE containers (
    uid             TEXT NOT NULL PRIMARY KEY REFERENCES users (uid),
    desired         TEXT NOT NULL,
    restart_token   TEXT NOT NULL DEFAULT '',
    debug           BIGINT NOT NULL DEFAULT 0,
    image_ref       TEXT NOT NULL,
    cpu_limit       DOUBLE PRECISION,
    memory_limit_mb BIGINT
);

-- What the container reconciler must remember between passes. Written by it only.
CREATE TABLE container_facts (
    uid           TEXT NOT NULL PRIMARY KEY REFERENCES containers (uid) ON DELETE CASCADE,
    engine_id     TEXT,
    image_ref     TEXT,
    image_id      TEXT,
    image_digest  TEXT,
    ip            TEXT,
    started_at    BIGINT,
    ready_at      BIGINT,
    crash_count   BIGINT NOT NULL DEFAULT 0,
    crash_token   TEXT NOT NULL DEFAULT '',
    last_exit_at  BIGINT,
    last_exit_code BIGINT,
    failed_digest TEXT,
    failed_at     BIGINT,
    failed_count  BIGINT NOT NULL DEFAULT 0
);

-- Configuration keys that have a value; a secret's value is sealed.
CREATE TABLE config_values (
    key    TEXT NOT NULL PRIMARY KEY,
    value  TEXT,
    sealed BYTEA
);

-- The newest version of every object, for watchers. A purged object keeps its row for some time, with
-- its last generation.
CREATE TABLE changes (
    kind            TEXT NOT NULL,
    uid             TEXT NOT NULL,
    name            TEXT NOT NULL,
    version         BIGINT NOT NULL,
    last_generation BIGINT,
    deleted_at      BIGINT,
    PRIMARY KEY (kind, uid)
);
CREATE INDEX changes_version ON changes (version);
CREATE INDEX changes_gone ON changes (version) WHERE last_generation IS NOT NULL;

-- Single row: the newest version, and the newest one of a purged object that was forgotten. It is the
-- guard row of `changes`.
CREATE TABLE change_state (
    id      BIGINT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,
    floor   BIGINT NOT NULL
);

-- Single row: how often configuration changed.
CREATE TABLE config_state (
    id         BIGINT NOT NULL PRIMARY KEY,
    generation BIGINT NOT NULL
);

-- What happened to objects; repeats are merged by count.
CREATE TABLE events (
    id       BIGINT NOT NULL PRIMARY KEY,
    kind     TEXT NOT NULL,
    uid      TEXT NOT NULL,
    name     TEXT NOT NULL,
    reason   TEXT NOT NULL,
    action   TEXT NOT NULL,
    message  TEXT NOT NULL,
    count    BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at  BIGINT NOT NULL
);
CREATE INDEX events_object ON events (kind, uid, last_at);
CREATE INDEX events_last_at ON events (last_at);

-- Bulk requests; progress is computed from the objects' own states.
CREATE TABLE operations (
    id           TEXT NOT NULL PRIMARY KEY,
    type         TEXT NOT NULL,
    actor        TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    finished_at  BIGINT,
    cancelled_at BIGINT
);
CREATE INDEX operations_created_at ON operations (created_at);

CREATE TABLE operation_targets (
    operation_id TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL,
    uid          TEXT NOT NULL,
    name         TEXT NOT NULL,
    generation   BIGINT NOT NULL,
    PRIMARY KEY (operation_id, kind, uid)
);

-- The audit trail: who changed what. Each hash covers its row and the hash before it.
CREATE TABLE audit (
    seq        BIGINT NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL,
    actor      TEXT NOT NULL,
    address    TEXT NOT NULL,
    action     TEXT NOT NULL,
    object     TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    detail     TEXT NOT NULL,
    request_id TEXT NOT NULL,
    hash       TEXT NOT NULL
);

-- Where the trail ends ('head', which is also its guard row) and what came before its oldest row
-- ('anchor'), authenticated.
CREATE TABLE audit_ends (
    name TEXT NOT NULL PRIMARY KEY,
    seq  BIGINT NOT NULL,
    hash TEXT NOT NULL,
    mac  TEXT NOT NULL
);

-- Who reconciles (PostgreSQL only; on SQLite a file lock decides).
CREATE TABLE leases (
    name       TEXT NOT NULL PRIMARY KEY,
    holder     TEXT NOT NULL,
    epoch      BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

INSERT INTO guards (name, n) VALUES ('superadmins', 0), ('names', 0), ('events', 0), ('config', 0);
INSERT INTO config_state (id, generation) VALUES (1, 1);
INSERT INTO change_state (id, version, floor) VALUES (1, 0, 0);
