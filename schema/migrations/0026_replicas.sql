-- Replicas that pass requests on to each other, and the replica that has the executors of a user and service. PostgreSQL only: on SQLite
-- one process serves, and both stay empty.
CREATE TABLE replicas (
    id      TEXT   NOT NULL PRIMARY KEY,
    number  BIGINT NOT NULL UNIQUE,
    address TEXT   NOT NULL,
    seen_at BIGINT NOT NULL
);

CREATE TABLE executor_places (
    user_uid TEXT   NOT NULL,
    service  TEXT   NOT NULL,
    replica  TEXT   NOT NULL,
    epoch    BIGINT NOT NULL,
    PRIMARY KEY (user_uid, service)
);
