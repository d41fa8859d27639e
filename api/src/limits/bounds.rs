//! The rows. A number here is a promise: `docs/security-model.md` lists it, and `limits::tests` compares them.

use super::{All, Bound, Each, Unit};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Makes a constant of each row, and the list of all.
macro_rules! bounds {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $unit:ident, $each:expr, $all:expr;)*) => {
        $(
            $(#[$doc])*
            pub(crate) const $name: Bound = Bound {
                name: $text,
                unit: Unit::$unit,
                each: $each,
                all: $all,
            };
        )*

        /// All rows.
        #[cfg(test)]
        pub(super) const ROWS: &[(&str, Bound)] = &[$((stringify!($name), $name)),*];
    };
}

use All::{Accounts, Cores, Most, Times};
use Each::{Account, Address, Of, Service};

bounds! {
    /// Bodies of requests with an MCP token: as much as all calls of tools that one user may have under way.
    AGENT_BODIES = "bodies of agents' requests", Bytes, Account(32 * MIB), Most(192 * MIB);
    /// Bodies of requests of ordinary users.
    USER_BODIES = "bodies of users' requests", Bytes, Account(16 * MIB), Most(192 * MIB);
    /// Bodies of requests of superadmins and API tokens.
    SUPERADMIN_BODIES = "bodies of superadmins' requests", Bytes, Account(64 * MIB), Most(192 * MIB);
    /// Bodies of requests without a session.
    GUEST_BODIES = "bodies of requests without a session", Bytes, Address(8 * MIB), Most(128 * MIB);
    /// The same of one neighbourhood: one client may have many addresses of it.
    NEIGHBOUR_BODIES = "bodies of requests without a session, of one /24 or /48", Bytes, Address(16 * MIB), Most(128 * MIB);
    /// Bodies of requests at the admin socket.
    SOCKET_BODIES = "bodies of requests at the admin socket", Bytes, Account(192 * MIB), Most(192 * MIB);
    /// Answers to requests with an MCP token.
    AGENT_ANSWERS = "answers to agents that are not sent yet", Bytes, Account(64 * MIB), Most(512 * MIB);
    /// Answers to ordinary users.
    USER_ANSWERS = "answers to users that are not sent yet", Bytes, Account(32 * MIB), Most(512 * MIB);
    /// Answers to superadmins and API tokens.
    SUPERADMIN_ANSWERS = "answers to superadmins that are not sent yet", Bytes, Account(64 * MIB), Most(192 * MIB);
    /// Answers to requests without a session.
    GUEST_ANSWERS = "answers without a session that are not sent yet", Bytes, Address(16 * MIB), Most(256 * MIB);
    /// The same of one neighbourhood.
    NEIGHBOUR_ANSWERS = "answers without a session that are not sent yet, of one /24 or /48", Bytes, Address(32 * MIB), Most(256 * MIB);
    /// Answers at the admin socket.
    SOCKET_ANSWERS = "answers at the admin socket that are not sent yet", Bytes, Account(192 * MIB), Most(192 * MIB);

    /// Messages of browsers and desktops, until their content is sent to the agent.
    EXECUTOR_ANSWERS = "messages of browsers and desktops", Bytes, Account(64 * MIB), Most(256 * MIB);
    /// Connected browsers and desktops, for each service.
    EXECUTOR_SOCKETS = "WebSockets of browsers or desktops", Number, Account(24), Times(&CONNECTIONS);
    /// Frames that wait to be sent to one executor.
    EXECUTOR_FRAMES = "frames on their way to a browser or desktop", Number, Of(&EXECUTOR_SOCKETS, 64), Times(&EXECUTOR_SOCKETS);

    /// Connections of one listener.
    CONNECTIONS = "connections of one listener", Number, Address(256), Most(10_000);

    /// WebSockets of chat pages.
    CHAT_SOCKETS = "WebSockets of chat pages", Number, Account(8), Most(2000);
    /// Conversations in use, each with a connection to the agent.
    CHAT_ROOMS = "conversations in use", Number, Account(16), Accounts;
    /// Memory of messages between the service, agents and pages while they are read, parsed and sent.
    CHAT_FRAMES = "chat messages on the way from and to agents and from pages", Bytes, Account(64 * MIB), Most(512 * MIB);
    /// Memory of conversations in use, and of what is sent to their pages.
    CHAT_KEPT = "entries of conversations in use, and frames to pages", Bytes, Account(64 * MIB), Most(512 * MIB);
    /// Commands that wait for the chat task of a user.
    CHAT_COMMANDS = "commands of pages to a user's chat task", Number, Account(128), Times(&CHAT_SOCKETS);
    /// Messages that wait for the link to the agent, by the numbers of their entries.
    CHAT_OUTGOING = "messages that wait for the link to an agent", Number, Of(&CHAT_ROOMS, 32), Times(&CHAT_ROOMS);
    /// Events of links that wait for the chat task of a user; the memory of their frames is part of `CHAT_FRAMES`.
    CHAT_LINK_EVENTS = "events of links that wait for a user's chat task", Number, Account(64), Times(&CHAT_ROOMS);
    /// Files of the agent that are fetched at once.
    CHAT_FETCHES = "files of an agent that are fetched at once", Number, Account(2), Times(&CHAT_ROOMS);
    /// Files of the agent that wait to be fetched, those under way included.
    CHAT_FETCHES_WAITING = "files of an agent that wait to be fetched", Number, Account(100), Times(&CHAT_ROOMS);
    /// Messages with pictures that are sent at once.
    CHAT_SENDING = "messages that are sent to an agent at once", Number, Account(1), Times(&CHAT_ROOMS);

    /// Calls to the file system at once.
    FILE_CALLS = "short calls to the file system at once", Number, Account(8), Most(16);
    /// Changes of workspaces at once.
    FILE_CHANGES = "changes of files at once", Number, Account(8), Most(16);
    /// Calls to the file system that may take long.
    LONG_CALLS = "long calls to the file system at once", Number, Account(2), Most(4);
    /// Removals of files, which may take long.
    REMOVALS = "removals of files at once", Number, Account(2), Most(4);
    /// Zip files and exports that are made at once: each takes a thread for as long as it lasts.
    ZIPS = "zip files and exports at once", Number, Account(1), Most(4);
    /// Files that arrive at once: each is a file and a directory that are open.
    ARRIVING = "files that arrive at once", Number, Account(100), Most(400);
    /// Pieces of an answer that a thread has written and the client has not read, 64 KiB each.
    PIECES = "pieces of an answer that a thread writes", Number, Of(&ZIPS, 2), Times(&ZIPS);

    /// Followed logs, and beside them viewed pulls and rollouts.
    FOLLOWS = "logs that are followed, and pulls or rollouts that are viewed", Number, Account(4), Most(200);
    /// Event streams of all objects, for administrators.
    WATCHERS = "event streams of administrators", Number, Service("one superadmin may open all of them; ordinary users have others"), Most(2000);
    /// Event streams of own objects.
    OWN_WATCHERS = "event streams of own objects", Number, Account(8), Most(2000);
    /// Batches of changes that all watchers share.
    WATCH_BATCHES = "batches of changes that a watcher may be behind", Number, Service("all watchers share them"), Most(128);
    /// Plans of users' own containers, each of which asks the engine.
    PLANS = "plans of own containers at once", Number, Account(1), Most(16);
    /// Work that one caller at a time may do, such as verifying the audit trail.
    TURN = "verifications of the audit trail, readings of adapter packages and imports of skills, of each", Number, Service("superadmins take turns"), Most(1);

    /// Streams of an MCP endpoint.
    MCP_STREAMS = "MCP streams", Number, Account(64), Times(&CONNECTIONS);
    /// Streams whose client has gone, and whose requests are still taken.
    MCP_DETACHED = "MCP streams whose client has gone", Number, Account(16), Times(&CONNECTIONS);
    /// Calls of tools, for each service.
    MCP_CALLS = "calls of tools at once, for each service", Number, Account(8), Times(&CONNECTIONS);
    /// Answers that wait in a stream of the first protocol, and requests under way in it.
    MCP_WAITING = "answers that wait in an MCP stream of the first protocol", Number, Of(&MCP_STREAMS, 64), Times(&MCP_STREAMS);
    /// Bytes of those answers.
    MCP_WAITING_BYTES = "bytes of answers that wait in an MCP stream of the first protocol", Bytes, Of(&MCP_STREAMS, 8 * MIB), Times(&MCP_STREAMS);
    /// Calls that are recorded and not written yet.
    MCP_AUDIT = "calls of tools that wait to be written to the audit trail", Number, Service("calls of each user are limited by the second; further ones are refused"), Most(10_000);
    /// Counters of messages and calls.
    MCP_RATES = "counters of messages and calls, of each kind", Number, Service("a user has one of each kind and service"), Most(10_000);
    /// Sessions that have ended.
    MCP_ENDED = "ended MCP sessions that are remembered", Number, Service("the oldest are forgotten, and end again when they are used"), Most(10_000);
    /// Rules in effect for users.
    MCP_POLICIES = "rules in effect for users", Number, Service("a user has one for each service"), Most(10_000);
    /// Pages that users' browsers show.
    MCP_PAGES = "pages that users' browsers show", Number, Service("a user has one"), Most(10_000);
    /// Pictures that are decoded at once.
    PICTURES = "pictures that are decoded at once", Number, Account(1), Most(2);
    /// Users whose turn for pictures is remembered.
    PICTURE_USERS = "users whose turn for pictures is remembered", Number, Service("a user has one"), Most(10_000);
    /// Long texts that are parsed at once.
    PARSES = "long messages that are parsed or written at once", Number, Account(1), Most(2);

    /// Tags of registries.
    TAGS = "repositories whose tags are remembered", Number, Service("superadmins ask for them"), Most(16);
    /// Uses of API tokens that were recorded.
    TOKEN_USES = "uses of API tokens that are remembered", Number, Service("a token has one"), Most(10_000);
    /// Counters of sign-in attempts.
    SIGN_IN_COUNTERS = "counters of sign-in attempts, of each kind", Number, Service("the counters of an address that was used least are forgotten"), Most(100_000);
    /// Passwords that are hashed at once, 19 MiB each.
    HASHES = "passwords that are hashed at once", Number, Service("attempts of each address are limited"), Cores;
    /// Sign-ins that wait for a hash.
    HASHES_WAITING = "sign-ins that wait for a hash", Number, Service("attempts of each address are limited"), Most(64);
    /// Connections of the metrics listener.
    METRICS_CONNECTIONS = "connections of the metrics listener", Number, Service("the listener is for the monitoring system"), Most(8);

    /// Connections of the listener for other replicas.
    REPLICA_CONNECTIONS = "connections of other replicas", Number, Service("requests that they pass on are bounded where they come in"), Most(4096);
    /// Bodies of requests of other replicas.
    REPLICA_BODIES = "bodies of requests of other replicas", Bytes, Service("requests that they pass on are bounded where they come in"), Most(128 * MIB);
    /// Nonces of stamps.
    REPLICA_NONCES = "nonces of stamps that are remembered", Number, Service("only replicas make valid stamps"), Most(200_000);
    /// Places of executors.
    EXECUTOR_PLACES = "places of executors at other replicas that are remembered", Number, Service("a user has one for each service"), Most(100_000);
}
