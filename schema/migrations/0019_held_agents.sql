-- Agents that keep what they have until their turn in a rollout of a changed configuration or adapter comes. A row counts as
-- long as neither generation has moved: an agent that is changed otherwise meanwhile gets the new values with that.
CREATE TABLE held_agents (
    uid                  TEXT   NOT NULL PRIMARY KEY REFERENCES users (uid) ON DELETE CASCADE,
    rollout_uid          TEXT   NOT NULL,
    container_generation BIGINT NOT NULL,
    files_generation     BIGINT NOT NULL
);
CREATE INDEX held_agents_rollout ON held_agents (rollout_uid);
