//! The table of metrics.

use super::{Counter, Gauge, Histogram, Label, Metric};

macro_rules! metrics {
    ($(#[doc = $help:literal] $id:ident: $kind:ident = $name:literal [$($label:ident $(: $values:expr)?),*];)*) => {
        $(
            #[doc = $help]
            pub static $id: $kind = $kind::new(
                $name,
                $help,
                &[$(Label { name: stringify!($label), values: metrics!(@values $($values)?) }),*],
            );
        )*
        /// All metrics, in the order of their page.
        pub static ALL: &[&dyn Metric] = &[$(&$id),*];
    };
    (@values) => { &[] };
    (@values $values:expr) => { $values };
}

/// Results of what succeeds or fails.
const RESULTS: &[&str] = &["success", "failure"];
/// Answers of the service by the first digit of their status.
const CLASSES: &[&str] = &["1xx", "2xx", "3xx", "4xx", "5xx"];
/// Services that executors are connected to.
const SERVICES: &[&str] = &["browser", "computer"];
/// States of a condition.
const READY: &[&str] = &["true", "false", "unknown"];

metrics! {
    /// Version of the service; always 1.
    BUILD_INFO: Gauge = "agentyard_build_info" [version];
    /// 1 if this process leads: it runs the reconcilers.
    LEADER: Gauge = "agentyard_leader" [];
    /// 1 if a leader is known, this process or another.
    LEADER_KNOWN: Gauge = "agentyard_leader_known" [];
    /// Replicas whose flags differ from those that agents have: agents would change when one of them leads.
    REPLICAS_DIFFERING: Gauge = "agentyard_replicas_differing" [];
    /// 1 while a part of the service has a fault, as `/readyz` shows it.
    PART_FAULT: Gauge = "agentyard_part_fault" [part];
    /// Time at which a certificate expires: the service's own (`web`), that of the connection to the engine (`engine`), authorities in settings (`ldap_ca`, `oidc_ca`).
    CERTIFICATE_EXPIRES: Gauge = "agentyard_certificate_expires_timestamp_seconds" [certificate];
    /// Time at which the next API token expires.
    API_TOKEN_EXPIRES: Gauge = "agentyard_api_token_expires_timestamp_seconds" [];

    /// Requests answered, by the pattern of the route (`-`: none matched).
    HTTP_REQUESTS: Counter = "agentyard_http_requests_total" [route, method, status: CLASSES];
    /// Time until the head of an answer; event streams and sockets go on after it.
    HTTP_DURATION: Histogram = "agentyard_http_request_duration_seconds" [route, method];
    /// Answers under way that end with their reader: event streams, and sockets of chats.
    HTTP_STREAMS: Gauge = "agentyard_http_open_streams" [kind: &["events", "chat"]];
    /// Attempts to sign in, with a password or through an identity provider (`limited`: too many attempts).
    SIGN_INS: Counter = "agentyard_sign_ins_total" [method: &["password", "provider"], result: &["success", "refused", "limited", "error"]];

    /// Executors that are connected to this process.
    EXECUTORS: Gauge = "agentyard_executors_connected" [service: SERVICES];
    /// Tool calls under way in this process.
    TOOL_CALLS_OPEN: Gauge = "agentyard_tool_calls_in_progress" [service: SERVICES];
    /// Tool calls that have ended.
    TOOL_CALLS: Counter = "agentyard_tool_calls_total" [service: SERVICES, result: &["ok", "error", "refused", "timed_out", "lost", "cancelled"]];

    /// Users by the state of their agent, as the list of users has it.
    AGENTS: Gauge = "agentyard_agents" [state];
    /// Starts of agents' containers: `requested` (created, started or restarted on request), `ended` (it had ended without a request), `replacement` (another image or other settings).
    AGENT_STARTS: Counter = "agentyard_agent_starts_total" [cause: &["requested", "ended", "replacement"], result: RESULTS];
    /// Ends of agents' containers: `requested`, or without a request: `exit`, `out_of_memory`, `unresponsive` (stopped because it did not answer), `removed` (by hand), `engine` (the engine stopped or was restarted), `replacement` (a new container that failed).
    AGENT_ENDS: Counter = "agentyard_agent_ends_total" [cause: &["requested", "exit", "out_of_memory", "unresponsive", "removed", "engine", "replacement"]];
    /// Processor time of all agents, added up from samples of their containers.
    AGENTS_CPU: Counter = "agentyard_agents_cpu_seconds_total" [];
    /// Memory of all agents that were sampled, without page cache.
    AGENTS_MEMORY: Gauge = "agentyard_agents_memory_bytes" [];
    /// Running containers of agents that have a sample.
    AGENTS_SAMPLED: Gauge = "agentyard_agents_sampled" [];
    /// Running containers of agents.
    AGENTS_RUNNING: Gauge = "agentyard_agents_running" [];
    /// Time of the last pass of samples.
    AGENTS_SAMPLED_AT: Gauge = "agentyard_agents_sampled_timestamp_seconds" [];

    /// Objects by kind, and whether they are as desired.
    OBJECTS: Gauge = "agentyard_objects" [kind, ready: READY];
    /// Objects by kind whose last pass failed and is tried again.
    OBJECTS_FAILING: Gauge = "agentyard_objects_failing" [kind];
    /// Rollouts that have not ended.
    ROLLOUTS: Gauge = "agentyard_rollouts" [phase: &["pulling", "rolling", "paused", "rolling_back", "cancelling"]];
    /// Tasks that have not ended.
    TASKS: Gauge = "agentyard_tasks_in_progress" [];

    /// Passes of reconcilers.
    PASSES: Counter = "agentyard_reconcile_passes_total" [reconciler, result: &["converged", "progressed", "gone", "paused", "interrupted", "transient", "conflict", "terminal"]];
    /// Time of a pass, the save of its status included.
    PASS_DURATION: Histogram = "agentyard_reconcile_pass_duration_seconds" [reconciler];
    /// Steps that passes have taken.
    STEPS: Counter = "agentyard_reconcile_steps_total" [reconciler, step, result: RESULTS];
    /// Objects in the queue of a reconciler: they could run (`ready`), wait for a time (`delayed`), or run.
    QUEUE: Gauge = "agentyard_reconcile_queue" [reconciler, state: &["ready", "delayed", "running"]];
    /// Longest time for which an object has been able to run.
    OLDEST_WAIT: Gauge = "agentyard_reconcile_oldest_wait_seconds" [reconciler];
    /// Objects that a reconciler has in back-off.
    BACKOFFS: Gauge = "agentyard_reconcile_backoffs" [reconciler];
    /// Time of the last pass that found everything as desired.
    LAST_SUCCESS: Gauge = "agentyard_reconcile_last_success_timestamp_seconds" [reconciler];
    /// Time of the last full pass.
    LAST_RESYNC: Gauge = "agentyard_reconcile_last_resync_timestamp_seconds" [reconciler];
    /// 1 if a reconciler is paused.
    PAUSED: Gauge = "agentyard_reconcile_paused" [reconciler];
    /// Passes that have panicked.
    PANICS: Counter = "agentyard_reconcile_panics_total" [reconciler];

    /// 1 if the container engine can be used.
    ENGINE_UP: Gauge = "agentyard_engine_up" [];
    /// 1 if events of the engine arrive.
    ENGINE_EVENTS: Gauge = "agentyard_engine_events_connected" [];
    /// Calls of the engine (`unavailable`: not reached, or no answer in time).
    ENGINE_CALLS: Counter = "agentyard_engine_calls_total" [operation, result: &["success", "unavailable", "error"]];
    /// Time of a call of the engine; of one that streams, until it begins.
    ENGINE_DURATION: Histogram = "agentyard_engine_call_duration_seconds" [operation];

    /// 1 if users come from a directory (`web.auth_mode` is `ldap`).
    DIRECTORY_IN_USE: Gauge = "agentyard_directory_in_use" [];
    /// 1 if users are as the directory has them.
    DIRECTORY_READY: Gauge = "agentyard_directory_ready" [];
    /// Time of the last synchronisation with the directory; on a standby, of the last that has changed something.
    DIRECTORY_SYNCED: Gauge = "agentyard_directory_synced_timestamp_seconds" [];

    /// 1 if the database answers.
    DATABASE_UP: Gauge = "agentyard_database_up" [];
    /// Size of the database.
    DATABASE_SIZE: Gauge = "agentyard_database_size_bytes" [];
    /// Connections to the database.
    DATABASE_CONNECTIONS: Gauge = "agentyard_database_connections" [pool: &["read", "write"], state: &["idle", "in_use"]];
    /// Entries of the audit trail.
    AUDIT_ENTRIES: Gauge = "agentyard_audit_entries" [];
    /// Free space of the data directory's file system.
    DISK_FREE: Gauge = "agentyard_disk_free_bytes" [];
    /// Size of the data directory's file system.
    DISK_TOTAL: Gauge = "agentyard_disk_size_bytes" [];
    /// Time of the last backup that succeeded.
    BACKUP: Gauge = "agentyard_backup_last_success_timestamp_seconds" [];
    /// 1 if the schedule of backups is on.
    BACKUP_SCHEDULED: Gauge = "agentyard_backup_scheduled" [];

    /// Processor time of the service.
    PROCESS_CPU: Counter = "process_cpu_seconds_total" [];
    /// Memory of the service that is in RAM.
    PROCESS_MEMORY: Gauge = "process_resident_memory_bytes" [];
    /// Open files of the service.
    PROCESS_FILES: Gauge = "process_open_fds" [];
    /// Files that the service may have open.
    PROCESS_MAX_FILES: Gauge = "process_max_fds" [];
    /// Time at which the service began.
    PROCESS_START: Gauge = "process_start_time_seconds" [];
}
