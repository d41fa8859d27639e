-- Which directory the agent's files were last written in: one that lies in its place by now is another one. NULL until
-- they are written by a release that knows.
ALTER TABLE agent_config_facts ADD COLUMN home TEXT;
