-- Skills: what is known of each, which versions are kept, who gets which, and what lies in whose workspace.

-- A skill. `number` is the version in effect.
CREATE TABLE skills (
    uid        TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    name_key   TEXT   NOT NULL UNIQUE,
    number     BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

-- The versions of a skill that are kept. `repository`, `path` and `commit_id` say where an installed one comes from.
CREATE TABLE skill_versions (
    skill_uid   TEXT   NOT NULL REFERENCES skills (uid) ON DELETE CASCADE,
    number      BIGINT NOT NULL,
    digest      TEXT   NOT NULL,
    description TEXT   NOT NULL,
    version     TEXT   NOT NULL,
    license     TEXT   NOT NULL,
    has_manifest BIGINT NOT NULL,
    file_count  BIGINT NOT NULL,
    size        BIGINT NOT NULL,
    repository  TEXT,
    path        TEXT,
    commit_id   TEXT,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (skill_uid, number)
);

-- Bindings: of the configuration key skills.defaults, of groups (and those below them), of single users.
CREATE TABLE default_skills (
    skill_uid TEXT NOT NULL PRIMARY KEY REFERENCES skills (uid) ON DELETE CASCADE
);
CREATE TABLE group_skills (
    group_uid TEXT NOT NULL REFERENCES user_groups (uid) ON DELETE CASCADE,
    skill_uid TEXT NOT NULL REFERENCES skills (uid) ON DELETE CASCADE,
    PRIMARY KEY (group_uid, skill_uid)
);
CREATE INDEX group_skills_skill ON group_skills (skill_uid);
CREATE TABLE user_skills (
    user_uid  TEXT NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
    skill_uid TEXT NOT NULL REFERENCES skills (uid) ON DELETE CASCADE,
    PRIMARY KEY (user_uid, skill_uid)
);
CREATE INDEX user_skills_skill ON user_skills (skill_uid);

-- What the skill-set reconciler has put into a user's workspace: the digest that lies there and the stamp by which it is
-- recognised, and the digest that is about to take its place. Written by it only.
CREATE TABLE skill_deployments (
    user_uid TEXT NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
    name     TEXT NOT NULL,
    digest   TEXT,
    stamp    TEXT,
    next     TEXT,
    file_count BIGINT NOT NULL,
    size     BIGINT NOT NULL,
    PRIMARY KEY (user_uid, name)
);
CREATE INDEX skill_deployments_name ON skill_deployments (name);

-- Git repositories that skills are installed from. `credentials` is a JSON list, sealed as a whole.
CREATE TABLE skill_repositories (
    uid         TEXT   NOT NULL PRIMARY KEY,
    name        TEXT   NOT NULL,
    name_key    TEXT   NOT NULL UNIQUE,
    url         TEXT   NOT NULL,
    ref         TEXT   NOT NULL,
    ref_type    TEXT   NOT NULL,
    public      BIGINT NOT NULL,
    credentials BYTEA,
    pull_token  TEXT   NOT NULL,
    cancelled   BIGINT NOT NULL DEFAULT 0,
    host_key_token TEXT NOT NULL DEFAULT ''
);

-- What the skill-repository reconciler knows of one: the request that was answered last, the commit whose files are in
-- the data directory, the skills in it (a JSON list), the host keys that were learned (and for which request to forget
-- them), and the request that failed last. Written by it only.
CREATE TABLE skill_repository_facts (
    uid            TEXT NOT NULL PRIMARY KEY REFERENCES skill_repositories (uid) ON DELETE CASCADE,
    pull_token     TEXT,
    commit_id      TEXT,
    pulled_at      BIGINT,
    skills         TEXT NOT NULL,
    known_hosts    TEXT,
    host_key_token TEXT NOT NULL,
    failed_token   TEXT,
    failed_reason  TEXT,
    failure        TEXT
);

INSERT INTO guards (name, n) VALUES ('skills', 0), ('skill_repositories', 0);

-- The skills of every user are an object of their own from now on.
INSERT INTO objects (kind, uid, name, generation, created_at, deleted_at)
    SELECT 'skill-set', uid, name, 1, created_at, deleted_at FROM objects WHERE kind = 'user';
