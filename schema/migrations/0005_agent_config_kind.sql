-- The kind of a user's agent files is `agent-config`; `config` is the service's own configuration only.
-- Finalizers refer to objects, and so do statuses: both are only made by reconcilers, and nobody reconciles
-- during a migration. Statuses go, so that every user's files are observed anew under the new kind.
DELETE FROM object_status WHERE kind = 'config';
DELETE FROM finalizers WHERE kind = 'config';
UPDATE objects SET kind = 'agent-config' WHERE kind = 'config';
UPDATE changes SET kind = 'agent-config' WHERE kind = 'config';
UPDATE events SET kind = 'agent-config' WHERE kind = 'config';
UPDATE operation_targets SET kind = 'agent-config' WHERE kind = 'config';
UPDATE paused_reconcilers SET name = 'agent-config' WHERE name = 'config';
ALTER TABLE config_facts RENAME TO agent_config_facts;
