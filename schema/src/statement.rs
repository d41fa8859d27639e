//! Named SQL statements.
//!
//! Every statement of the service is a named constant made by `statements!`, portable between
//! SQLite and PostgreSQL, and listed in [`all()`], so that a test can prepare each on both.

/// Declares named statements and the list of them.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        $($(#[$doc])* pub(crate) const $name: &str = $sql;)+
        /// Name and text of every statement of this module.
        pub(crate) const STATEMENTS: &[(&str, &str)] = &[$((stringify!($name), $name)),+];
    };
}
pub(crate) use statements;

/// A LIKE pattern (escape character `!`) that finds `search` as a plain substring of a lower-case column.
pub(crate) fn like_pattern(search: &str) -> String {
    let mut pattern = String::from("%");
    for c in search.to_ascii_lowercase().chars() {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// Every statement of the service, as (name, text).
pub fn all() -> Vec<(&'static str, &'static str)> {
    [
        crate::adapter::store::STATEMENTS,
        crate::agent_config::kept::STATEMENTS,
        crate::agent_config::query::STATEMENTS,
        crate::audit::query::STATEMENTS,
        crate::change::query::STATEMENTS,
        crate::config::history::STATEMENTS,
        crate::config::query::STATEMENTS,
        crate::container::query::STATEMENTS,
        crate::event::STATEMENTS,
        crate::image::query::STATEMENTS,
        crate::meta::STATEMENTS,
        crate::object::query::STATEMENTS,
        crate::operation::query::STATEMENTS,
        crate::rollout::query::STATEMENTS,
        crate::session::query::STATEMENTS,
        crate::user::query::STATEMENTS,
    ]
    .concat()
}

/// Statements that only PostgreSQL ever runs.
pub fn postgres_only() -> Vec<(&'static str, &'static str)> {
    vec![
        ("lease::ACQUIRE", crate::lease::ACQUIRE),
        ("lease::RENEW", crate::lease::RENEW),
        ("lease::RELEASE", crate::lease::RELEASE),
        ("lease::HOLDER", crate::lease::HOLDER),
        ("meta::NOTIFY", crate::meta::NOTIFY),
    ]
}
