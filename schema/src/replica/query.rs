//! Statements on replicas and places, which only PostgreSQL runs.

use crate::statement::statements;

/// The present time of the server, in milliseconds.
macro_rules! now {
    () => {
        "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}

statements! {
    /// Records a replica.
    JOIN = concat!("INSERT INTO replicas (id, number, address, name, flags, seen_at) VALUES ($1, $2, $3, $4, $5, ", now!(), ")");
    /// Records a replica again, under the number that it has.
    REJOIN = concat!("INSERT INTO replicas (id, number, address, name, flags, seen_at) VALUES ($1, $2, $3, $4, $5, ", now!(), ") ON CONFLICT DO NOTHING");
    /// Records that a replica lives.
    BEAT = concat!("UPDATE replicas SET seen_at = ", now!(), " WHERE id = $1");
    /// Replicas that have been seen within `$1` milliseconds.
    LIVE = concat!("SELECT id, number, address, name, flags FROM replicas WHERE seen_at > ", now!(), " - $1 ORDER BY number");
    /// Forgets replicas that have not been seen for `$1` milliseconds.
    SWEEP = concat!("DELETE FROM replicas WHERE seen_at <= ", now!(), " - $1");
    /// Forgets places of replicas that are forgotten.
    SWEEP_PLACES = "DELETE FROM executor_places WHERE NOT EXISTS (SELECT 1 FROM replicas WHERE replicas.id = executor_places.replica)";
    /// Forgets a replica.
    LEAVE = "DELETE FROM replicas WHERE id = $1";
    /// Forgets the places of a replica.
    LEAVE_PLACES = "DELETE FROM executor_places WHERE replica = $1";
    /// Takes a place that is free, this replica's already, a dead one's, or that of the replica `$4` at the epoch `$5`.
    CLAIM = concat!(
        "INSERT INTO executor_places (user_uid, service, replica, epoch) VALUES ($1, $2, $3, 1) \
         ON CONFLICT (user_uid, service) DO UPDATE SET replica = excluded.replica, epoch = executor_places.epoch + 1 \
         WHERE executor_places.replica = excluded.replica OR (executor_places.replica = $4 AND executor_places.epoch = $5) \
         OR NOT EXISTS (SELECT 1 FROM replicas WHERE replicas.id = executor_places.replica AND seen_at > ", now!(), " - $6) \
         RETURNING epoch"
    );
    /// The living replica that has a place.
    OWNER = concat!(
        "SELECT replicas.id, number, address, name, flags, epoch FROM executor_places JOIN replicas ON replicas.id = executor_places.replica \
         WHERE user_uid = $1 AND service = $2 AND seen_at > ", now!(), " - $3"
    );
    /// The epoch at which a replica has a place.
    EPOCH = "SELECT epoch FROM executor_places WHERE user_uid = $1 AND service = $2 AND replica = $3";
    /// Gives a place back.
    RELEASE = "DELETE FROM executor_places WHERE user_uid = $1 AND service = $2 AND replica = $3 AND epoch = $4";
    /// Tells all replicas something.
    TELL = "SELECT CAST(pg_notify($1, $2) AS TEXT)";
}
