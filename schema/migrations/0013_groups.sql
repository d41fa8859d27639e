-- Groups of users. What the directory or the identity provider names is synchronised, the rest is made by administrators.
CREATE TABLE user_groups (
    uid         TEXT   NOT NULL PRIMARY KEY,
    name        TEXT   NOT NULL,
    name_key    TEXT   NOT NULL UNIQUE,
    parent_uid  TEXT   REFERENCES user_groups (uid),
    source      TEXT   NOT NULL,
    description TEXT   NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX user_groups_parent ON user_groups (parent_uid);

CREATE TABLE group_members (
    group_uid TEXT NOT NULL REFERENCES user_groups (uid) ON DELETE CASCADE,
    user_uid  TEXT NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
    PRIMARY KEY (group_uid, user_uid)
);
CREATE INDEX group_members_user ON group_members (user_uid);

INSERT INTO guards (name, n) VALUES ('groups', 0);
