-- Name and flags of each process: replicas whose flags differ would give agents other settings. A process without a listener for other
-- replicas has no address.
ALTER TABLE replicas ADD COLUMN name  TEXT NOT NULL DEFAULT '';
ALTER TABLE replicas ADD COLUMN flags TEXT NOT NULL DEFAULT '';
