-- What a save changed, sealed as a whole; `changes` is an empty list then. The next start seals what earlier releases have saved:
-- that needs the master key.
ALTER TABLE config_history ADD COLUMN sealed BYTEA;
