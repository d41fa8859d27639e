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
-- What they were for, by one number that a clock set back left in the future.
ALTER TABLE users DROP COLUMN last_session_at;
DROP TABLE retired_names;
