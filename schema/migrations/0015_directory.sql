-- Users who come from a directory or an identity provider, who may sign in, and what becomes of users when the mode changes.

-- Who may sign in where a whitelist is enabled.
CREATE TABLE whitelist (
    name_key TEXT NOT NULL PRIMARY KEY,
    name     TEXT NOT NULL
);

-- The batch of the archive that a user's directory goes to; NULL: the archive itself.
ALTER TABLE users ADD COLUMN archive_batch TEXT;

-- What the source last said of a user. `subject` is the DN, or the provider's subject; `digest` covers name, subject and groups.
-- `users.disabled` is 1 for one whom an administrator has disabled, 2 for one who is missing from the source, 3 for both.
CREATE TABLE directory_users (
    uid           TEXT NOT NULL PRIMARY KEY REFERENCES users (uid) ON DELETE CASCADE,
    subject       TEXT NOT NULL,
    digest        TEXT NOT NULL,
    missing_since BIGINT
);

-- Single row: the newest request for a synchronisation. Written by the API.
CREATE TABLE directory_requests (
    id      BIGINT NOT NULL PRIMARY KEY,
    token   TEXT   NOT NULL,
    scope   TEXT   NOT NULL,
    confirm TEXT   NOT NULL
);

-- Single row: what the directory reconciler must remember, as JSON. Written by it only.
CREATE TABLE directory_facts (
    id    BIGINT NOT NULL PRIMARY KEY,
    facts TEXT   NOT NULL
);

INSERT INTO directory_requests (id, token, scope, confirm) VALUES (1, '', 'users', '');
INSERT INTO directory_facts (id, facts) VALUES (1, '{}');
INSERT INTO guards (name, n) VALUES ('whitelist', 0);
