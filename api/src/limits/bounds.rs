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

use All::{Most, Times};
use Each::{Account, Address, Of};

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
    CHAT_ROOMS = "conversations in use", Number, Account(16), Times(&CHAT_SOCKETS);
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
}
