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

/// Runs a query to its end on a connection or transaction.
macro_rules! finish {
    ($query:ident.$finish:ident($connection:expr)) => {{
        let connection: &mut $crate::connection::Connection = $connection;
        match connection.statement() {
            Ok((raw, link)) => {
                let result = link.bound($query.$finish(raw)).await;
                connection.ended(&result);
                result
            }
            Err(error) => Err(error),
        }
    }};
}
pub(crate) use finish;

/// Runs a statement with these values on a connection or transaction.
macro_rules! run {
    ($query:ident.$finish:ident($connection:expr, $statement:expr $(, $value:expr)*)) => {{
        let query = sqlx::$query($statement)$(.bind($value))*;
        $crate::statement::finish!(query.$finish($connection))
    }};
}
pub(crate) use run;

/// Runs a statement for its effect; returns how many rows it has changed.
macro_rules! execute {
    ($($argument:expr),+ $(,)?) => {
        $crate::statement::run!(query.execute($($argument),+)).map(|done| done.rows_affected())
    };
}
pub(crate) use execute;

/// So many rows one statement writes.
pub(crate) const ROWS: usize = 50;

/// The statement that inserts [`ROWS`] rows for one that inserts one: `… VALUES ($1, …)…`, in which no value stands twice.
pub(crate) fn of_many_rows(statement: &str) -> String {
    let (head, rest) = statement
        .split_once(" VALUES (")
        .unwrap_or((statement, ")"));
    let (row, tail) = rest.split_once(')').unwrap_or((rest, ""));
    let width = row.matches('$').count();
    let row = |number: usize| {
        let values = (1..=width).map(|at| format!("${}", number * width + at));
        format!("({})", values.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    format!("{head} VALUES {}{tail}", rows.join(", "))
}

/// Inserts a row for each of `$rows` with as few statements as that takes; returns the only column of what the statement returns.
/// The statement is a constant that inserts one row.
macro_rules! insert_rows {
    ($connection:expr, $statement:ident, $rows:expr, |$row:pat_param| $($value:expr),+ $(,)?) => {{
        static MANY: std::sync::LazyLock<String> =
            std::sync::LazyLock::new(|| $crate::statement::of_many_rows($statement));
        let connection: &mut $crate::connection::Connection = $connection;
        let mut returned = Vec::new();
        let mut chunks = $rows.chunks_exact($crate::statement::ROWS);
        for chunk in &mut chunks {
            let mut query = sqlx::query_scalar(MANY.as_str());
            for $row in chunk {
                query = query$(.bind($value))+;
            }
            returned.append(&mut $crate::statement::finish!(query.fetch_all(connection))?);
        }
        for $row in chunks.remainder() {
            returned.append(&mut $crate::statement::scalars!(connection, $statement, $($value),+)?);
        }
        Ok::<_, $crate::error::DbError>(returned)
    }};
}
pub(crate) use insert_rows;

/// Reads the one row that there is.
macro_rules! fetch_one {
    ($($argument:expr),+ $(,)?) => { $crate::statement::run!(query_as.fetch_one($($argument),+)) };
}
pub(crate) use fetch_one;

/// Reads a row, if there is one.
macro_rules! fetch_optional {
    ($($argument:expr),+ $(,)?) => { $crate::statement::run!(query_as.fetch_optional($($argument),+)) };
}
pub(crate) use fetch_optional;

/// Reads all rows.
macro_rules! fetch_all {
    ($($argument:expr),+ $(,)?) => { $crate::statement::run!(query_as.fetch_all($($argument),+)) };
}
pub(crate) use fetch_all;

/// Reads the only column of the one row that there is.
macro_rules! scalar {
    ($($argument:expr),+ $(,)?) => { $crate::statement::run!(query_scalar.fetch_one($($argument),+)) };
}
pub(crate) use scalar;

/// Reads the only column of a row, if there is one.
macro_rules! scalar_optional {
    ($($argument:expr),+ $(,)?) => { $crate::statement::run!(query_scalar.fetch_optional($($argument),+)) };
}
pub(crate) use scalar_optional;

/// Reads the only column of all rows.
macro_rules! scalars {
    ($($argument:expr),+ $(,)?) => { $crate::statement::run!(query_scalar.fetch_all($($argument),+)) };
}
pub(crate) use scalars;

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
        crate::api_token::query::STATEMENTS,
        crate::archive::query::STATEMENTS,
        crate::audit::query::STATEMENTS,
        crate::census::STATEMENTS,
        crate::change::query::STATEMENTS,
        crate::config::history::STATEMENTS,
        crate::config::query::STATEMENTS,
        crate::config::sealing::STATEMENTS,
        crate::container::ends::STATEMENTS,
        crate::container::query::STATEMENTS,
        crate::directory::query::STATEMENTS,
        crate::event::STATEMENTS,
        crate::group::query::STATEMENTS,
        crate::image::query::STATEMENTS,
        crate::mcp_token::query::STATEMENTS,
        crate::meta::STATEMENTS,
        crate::mode_switch::query::STATEMENTS,
        crate::object::problem::STATEMENTS,
        crate::object::query::STATEMENTS,
        crate::operation::query::STATEMENTS,
        crate::rollout::held::STATEMENTS,
        crate::rollout::query::STATEMENTS,
        crate::session::query::STATEMENTS,
        crate::skill::BINDING_STATEMENTS,
        crate::skill::IMPACT_STATEMENTS,
        crate::skill::query::STATEMENTS,
        crate::skill_repository::query::STATEMENTS,
        crate::skill_set::query::STATEMENTS,
        crate::usage::query::STATEMENTS,
        crate::user::listing::STATEMENTS,
        crate::user::query::STATEMENTS,
        crate::whitelist::query::STATEMENTS,
    ]
    .concat()
}

/// Statements that only PostgreSQL ever runs.
pub fn postgres_only() -> Vec<(&'static str, &'static str)> {
    let mut all = vec![
        ("census::SIZE_ON_POSTGRES", crate::census::SIZE_ON_POSTGRES),
        ("lease::ACQUIRE", crate::lease::ACQUIRE),
        ("lease::RENEW", crate::lease::RENEW),
        ("lease::RELEASE", crate::lease::RELEASE),
        ("lease::HOLDER", crate::lease::HOLDER),
        ("meta::NOTIFY", crate::meta::NOTIFY),
    ];
    all.extend(crate::replica::query::STATEMENTS);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_for_one_row_becomes_one_for_many() {
        let many = of_many_rows("INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT (a) DO NOTHING");
        let begin = "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4), ($5, $6), ";
        assert!(many.starts_with(begin), "{many}");
        assert!(
            many.ends_with(", ($99, $100) ON CONFLICT (a) DO NOTHING"),
            "{many}"
        );
    }
}
