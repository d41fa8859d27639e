-- How many calls of a tool an entry of the audit trail stands for: calls of one kind beyond the first 10,000 of a day.
-- Authenticated; written only by the trail.
CREATE TABLE audit_folds (
    seq     BIGINT NOT NULL PRIMARY KEY,
    calls   BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    mac     TEXT   NOT NULL
);
-- Finds the calls of a kind and day, once after each start.
CREATE INDEX audit_calls ON audit (actor, object, at) WHERE action = 'mcp_call';
