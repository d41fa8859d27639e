-- What identifies a user's entry in the directory whatever its name is: `<attribute>:<value>`. NULL: that is not known.
ALTER TABLE directory_users ADD COLUMN identity TEXT;
CREATE INDEX directory_users_identity ON directory_users (identity);

-- The name before a rename, until the user's directory has the new one, and whether no container has it any more.
ALTER TABLE users ADD COLUMN previous_name TEXT;
ALTER TABLE users ADD COLUMN previous_released BIGINT NOT NULL DEFAULT 0;
CREATE INDEX users_previous_name ON users (previous_name) WHERE previous_name IS NOT NULL;

-- Names that users had before, and nobody has since: MCP tokens with such a name are still valid.
CREATE TABLE former_names (
    name_key TEXT NOT NULL PRIMARY KEY,
    uid      TEXT NOT NULL REFERENCES users (uid) ON DELETE CASCADE
);
CREATE INDEX former_names_uid ON former_names (uid);
