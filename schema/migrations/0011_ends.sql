-- What an object's condition said when its part of an operation ended, and since when; `outcome` (done, failed, cancelled) is
-- written then, too, and never again. NULL: its own status says, and for outcomes of earlier releases the message.
ALTER TABLE operation_targets ADD COLUMN message TEXT;
ALTER TABLE operation_targets ADD COLUMN ended_at BIGINT;
CREATE INDEX operation_targets_open ON operation_targets (kind, uid) WHERE outcome IS NULL;

-- What has ended by now stays so.
UPDATE operation_targets SET ended_at = (SELECT s.ready_since FROM object_status s
        WHERE s.kind = operation_targets.kind AND s.uid = operation_targets.uid),
    outcome = (SELECT CASE WHEN s.ready = 'True' THEN 'done' WHEN s.ready = 'False' AND s.needs_action = 1 THEN 'failed' END
        FROM object_status s WHERE s.kind = operation_targets.kind AND s.uid = operation_targets.uid
        AND s.observed_generation >= operation_targets.generation)
    WHERE outcome IS NULL;
UPDATE operation_targets SET ended_at = NULL WHERE outcome IS NULL;

-- The newest request for a pull that failed, and why: it is not tried again by itself.
ALTER TABLE image_facts ADD COLUMN failed_token TEXT;
ALTER TABLE image_facts ADD COLUMN failure TEXT;

-- Why the newest replacement failed, in a clause, and the last lines of its log.
ALTER TABLE container_facts ADD COLUMN failure TEXT;
ALTER TABLE container_facts ADD COLUMN failure_log TEXT;
