-- Tokens with which programs use the administration API. A token itself is not stored, only its SHA-256 digest.
CREATE TABLE api_tokens (
    uid          TEXT   NOT NULL PRIMARY KEY,
    name         TEXT   NOT NULL UNIQUE,
    role         TEXT   NOT NULL,
    digest       TEXT   NOT NULL UNIQUE,
    created_by   TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    last_used_at BIGINT
);
