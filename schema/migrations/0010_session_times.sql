-- Every second at which a session of a name began, for as long as its cookie could be valid: a signed cookie bears
-- nothing but name and second, so no two may ever be alike, whoever bears the name and whatever became of them.
CREATE TABLE session_times (
    name_key  TEXT NOT NULL,
    issued_at BIGINT NOT NULL,
    PRIMARY KEY (name_key, issued_at)
);
CREATE INDEX session_times_issued_at ON session_times (issued_at);
INSERT INTO session_times (name_key, issued_at)
    SELECT u.name_key, s.issued_at FROM sessions s JOIN users u ON u.uid = s.uid
    UNION SELECT name_key, last_session_at FROM users
    UNION SELECT name_key, last_session_at FROM retired_names;
-- users.last_session_at and retired_names served this before. They stay for replicas of the release before; one to come
-- drops them.
