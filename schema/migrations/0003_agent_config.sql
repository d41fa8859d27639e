-- What goes into agents' files, the packages that say how, and the history of the configuration.

-- Whoever changes all objects of a kind takes it.
INSERT INTO guards (name, n) VALUES ('bulk', 0);

-- One more ends every MCP token of the user.
ALTER TABLE users ADD COLUMN mcp_token_version BIGINT NOT NULL DEFAULT 1;

-- What a user set for one channel: a JSON object from field to value, sealed as a whole. Written by the API.
CREATE TABLE channel_values (
    uid        TEXT NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
    channel    TEXT NOT NULL,
    sealed     BYTEA NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (uid, channel)
);

-- A user's cookies of one domain, sealed. Written by the API.
CREATE TABLE cookies (
    uid        TEXT NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
    domain     TEXT NOT NULL,
    sealed     BYTEA NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (uid, domain)
);

-- What the config reconciler must remember of a user's files. Written by it only. `generation` is the newest one
-- of the config object that the files were brought to, or refused for (`refused` says why, as a reason).
-- `put_back` is 1 while the files are those of before a migration, given back for want of a migration.
CREATE TABLE config_facts (
    uid            TEXT NOT NULL PRIMARY KEY REFERENCES users (uid) ON DELETE CASCADE,
    generation     BIGINT NOT NULL,
    refused        TEXT,
    applied        TEXT,
    restart_digest TEXT,
    put_back       BIGINT NOT NULL DEFAULT 0
);

-- A user's two files as they were before the last migration to another configuration version, sealed together with
-- the version and what was remembered of them: what an image of that version gets back when there is no migration.
-- Apart from the facts, which every scan reads. Written by the config reconciler only.
CREATE TABLE kept_files (
    uid    TEXT NOT NULL PRIMARY KEY REFERENCES users (uid) ON DELETE CASCADE,
    sealed BYTEA NOT NULL
);

-- Every user's files are an object of their own from now on.
INSERT INTO objects (kind, uid, name, generation, created_at, deleted_at)
    SELECT 'config', uid, name, 1, created_at, deleted_at FROM objects WHERE kind = 'user';

-- Adapter packages that are known: the one that comes with the service, and what was uploaded or fetched.
-- `files` is a JSON object from path to text.
CREATE TABLE adapters (
    digest   TEXT NOT NULL PRIMARY KEY,
    version  TEXT NOT NULL,
    source   TEXT NOT NULL,
    files    TEXT NOT NULL,
    added_at BIGINT NOT NULL
);

-- Single row: which of them is in effect and which was before, how often that changed, and the newest request
-- to ask the source for a newer one.
CREATE TABLE adapter_state (
    id            BIGINT NOT NULL PRIMARY KEY,
    generation    BIGINT NOT NULL,
    active        TEXT,
    previous      TEXT,
    activated_at  BIGINT,
    refresh_token TEXT NOT NULL DEFAULT ''
);
INSERT INTO adapter_state (id, generation) VALUES (1, 1);

-- Single row: what the adapter reconciler must remember of the source. Written by it only. `seen_generation` is the
-- generation of the active adapter at which `etag` and `last_modified` were told, `offered` the version that the
-- source gave last, `invalid` what is wrong with it.
CREATE TABLE adapter_facts (
    id            BIGINT NOT NULL PRIMARY KEY,
    source_url    TEXT NOT NULL DEFAULT '',
    etag          TEXT,
    last_modified TEXT,
    seen_generation BIGINT,
    offered       TEXT,
    installed     TEXT,
    invalid       TEXT,
    checked_at    BIGINT,
    refresh_token TEXT NOT NULL DEFAULT ''
);
INSERT INTO adapter_facts (id) VALUES (1);

-- What every save of the configuration changed, secrets masked: a JSON list of {key, old, new}, null standing
-- for the default. `keys` names the keys once more, for searching.
CREATE TABLE config_history (
    revision BIGINT NOT NULL PRIMARY KEY,
    at       BIGINT NOT NULL,
    actor    TEXT NOT NULL,
    keys     TEXT NOT NULL,
    changes  TEXT NOT NULL
);

-- What counting many objects needs of their conditions: whether Ready waits for a person, and since when it has
-- its status. NULL in what earlier releases have saved.
ALTER TABLE object_status ADD COLUMN needs_person BIGINT;
ALTER TABLE object_status ADD COLUMN ready_since BIGINT;

-- What became of an object when its operation was cancelled (done, failed, cancelled); NULL while its own state says.
ALTER TABLE operation_targets ADD COLUMN outcome TEXT;

INSERT INTO guards (name, n) VALUES ('adapter', 0);
