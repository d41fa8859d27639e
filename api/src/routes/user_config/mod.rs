//! What users set up of their own agents: channels, and cookies of web sites.
//!
//! Handlers record what is wanted, and the agent-config reconciler writes the files. Which channels there are and what
//! fields they have is told by the active adapter; which of them users may set up is decided by an administrator,
//! who enables them in the global settings.

mod channels;
mod chatapp;
mod cookies;
mod domain;
mod fields;
mod forms;
mod save;
#[cfg(test)]
mod tests;

use crate::access::Op;
use crate::dispatch::Binder;

/// Binds the handlers.
#[must_use]
pub fn bind(binder: Binder) -> Binder {
    binder
        .bind(Op::ChatAppRead, chatapp::read)
        .bind(Op::ChatAppSave, chatapp::save)
        .bind(Op::OwnChannels, channels::list)
        .bind(Op::OwnFieldsRead, fields::read)
        .bind(Op::OwnFieldsSave, fields::save)
        .bind(Op::CookiesSave, cookies::save)
        .bind(Op::CookiesList, cookies::list)
        .bind(Op::CookiesDelete, cookies::delete)
}
