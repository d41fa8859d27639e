//! Binds the handlers of sign-in, the own account, superadmins and the configuration.

#[cfg(test)]
pub(super) mod testing;

use super::{config, login, mcp_token, own_account, superadmins};
use crate::access::Op;
use crate::dispatch::Binder;

/// Binds them.
#[must_use]
pub fn bind(binder: Binder) -> Binder {
    binder
        .bind(Op::Login, login::login)
        .bind(Op::Logout, login::logout)
        .bind(Op::UserInfo, own_account::info)
        .bind(Op::UserInitStatus, own_account::init_status)
        .bind(Op::UserPassword, own_account::change_password)
        .bind(Op::OwnSessions, own_account::sessions)
        .bind(Op::OwnSessionsRevoke, own_account::revoke_sessions)
        .bind(Op::SuperadminsList, superadmins::list)
        .bind(Op::SuperadminsCreate, superadmins::create)
        .bind(Op::SuperadminsDelete, superadmins::delete)
        .bind(Op::SuperadminsReset, superadmins::reset)
        .bind(Op::ConfigRead, config::read)
        .bind(Op::ConfigSave, config::save)
        .bind(Op::ConfigSchema, config::describe)
        .bind(Op::ConfigHistory, config::history::list)
        .bind(Op::ConfigRollback, config::history::rollback)
        .bind(Op::ConfigApply, config::apply::apply)
        .bind(Op::McpToken, mcp_token::show)
}
