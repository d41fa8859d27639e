-- Whoever looks what is paused, at each change of anything, reads nothing of what is not.
CREATE INDEX objects_paused ON objects (kind, uid) WHERE paused = 1;
