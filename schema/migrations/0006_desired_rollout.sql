-- One word per idea: what is desired of a rollout, and what nobody but a person can mend.
ALTER TABLE rollouts RENAME COLUMN wish TO desired;
ALTER TABLE object_status RENAME COLUMN needs_person TO needs_action;
