-- What would change with the newer package of the source that waits for its activation; NULL when none waits.
ALTER TABLE adapter_facts ADD COLUMN update_changes TEXT;
