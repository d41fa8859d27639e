-- Single row: what was last seen in the archive of users' directories, as JSON. Written by the archive reconciler only.
CREATE TABLE archive_facts (
    id    BIGINT NOT NULL PRIMARY KEY,
    facts TEXT NOT NULL
);
INSERT INTO archive_facts (id, facts) VALUES (1, '{"count":0,"oldest":[]}');
