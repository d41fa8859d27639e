//! The administrators' list of users: filters and order, which act in the database on all users.

use sqlx::FromRow;

use super::model::{Source, UserListing};
use crate::condition::Reason;
use crate::connection::Connection;
use crate::container::StatusWord;
use crate::error::DbError;
use crate::ids::Uid;
use crate::object::{self, is_unready, status_columns};
use crate::statement::{fetch_all, fetch_optional, like_pattern, run, scalar, statements};
use crate::user::KIND;

/// The objects that belong to a user, their statuses, and what else is known.
macro_rules! join_all {
    () => {
        "JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
         LEFT JOIN objects co ON co.kind = 'container' AND co.uid = u.uid \
         LEFT JOIN object_status s ON s.kind = 'container' AND s.uid = u.uid \
         LEFT JOIN object_status us ON us.kind = 'user' AND us.uid = u.uid \
         LEFT JOIN objects ao ON ao.kind = 'agent-config' AND ao.uid = u.uid \
         LEFT JOIN object_status acs ON acs.kind = 'agent-config' AND acs.uid = u.uid \
         LEFT JOIN objects ko ON ko.kind = 'skill-set' AND ko.uid = u.uid \
         LEFT JOIN object_status ks ON ks.kind = 'skill-set' AND ks.uid = u.uid \
         LEFT JOIN containers c ON c.uid = u.uid \
         LEFT JOIN container_facts f ON f.uid = u.uid \
         LEFT JOIN workspace_usage w ON w.uid = u.uid \
         LEFT JOIN directory_users d ON d.uid = u.uid "
    };
}

/// The image that a container is pinned to.
macro_rules! image_id {
    () => {
        "coalesce(c.image_id, CASE WHEN f.image_ref = c.image_ref THEN f.image_id END)"
    };
}

/// True if one of them is there and not ready.
macro_rules! any_unready {
    () => {
        concat!(
            "(",
            is_unready!("o", "us"),
            " OR ",
            is_unready!("co", "s"),
            " OR ",
            is_unready!("ao", "acs"),
            " OR ",
            is_unready!("ko", "ks"),
            ")"
        )
    };
}

/// Reason of one that is not ready; NULL if it is.
macro_rules! unready_part {
    ($object:literal, $status:literal, $name:literal) => {
        concat!(
            "CASE WHEN ",
            is_unready!($object, $status),
            " THEN coalesce(",
            $status,
            ".conditions, '[]') END AS ",
            $name,
            ", CASE WHEN ",
            $object,
            ".generation > coalesce(",
            $status,
            ".observed_generation, 0) THEN 1 ELSE 0 END AS ",
            $name,
            "_behind, "
        )
    };
}

/// Columns of a user with all that belongs to it.
macro_rules! select_listing {
    ($($rest:expr),+) => {
        concat!(
            "SELECT u.uid, u.name, u.source, u.disabled, u.disabled & 1 AS disabled_here, u.disabled_at, u.disabled_by, d.missing_since, c.stopped_at, c.stopped_by, \
             u.created_at, u.last_login_at, o.deleted_at, ",
            unready_part!("o", "us", "user_part"),
            unready_part!("ao", "acs", "agent_config_part"),
            unready_part!("ko", "ks", "skill_set_part"),
            "w.used_bytes, coalesce(w.complete, 0) AS used_complete, c.desired, coalesce(c.debug, 0) AS debug, coalesce(c.image_ref, '') AS image_ref, coalesce(co.generation, 0) AS generation, f.ip, \
             CASE WHEN f.engine_id IS NOT NULL THEN f.image_ref END AS observed_image, CASE WHEN f.engine_id IS NOT NULL THEN f.image_id END AS observed_image_id, ", status_columns!(), ", \
             ", image_id!(), " AS image_id \
             FROM users u ",
            join_all!(),
            $($rest),+
        )
    };
}

/// The state of a container in one word. Must agree with [`crate::container::status_word`]; a test compares them.
macro_rules! status_word {
    () => {
        concat!(
            "CASE WHEN o.deleted_at IS NOT NULL THEN 'deleting' \
             WHEN coalesce(s.observed_generation, 0) < coalesce(co.generation, 0) THEN \
             CASE WHEN coalesce(s.conditions, '') NOT LIKE '%\"type\":\"Paused\",\"status\":\"True\"%' AND NOT ",
            is_paused!(),
            " THEN ",
            under_way!(),
            " WHEN s.ready = 'False' AND s.needs_action = 1 THEN 'failed' ELSE 'unknown' END \
             WHEN s.ready_since IS NULL THEN ",
            under_way!(),
            " WHEN s.ready = 'True' THEN CASE WHEN ",
            is_paused!(),
            " THEN 'unknown' WHEN ",
            is_desired!(),
            " THEN 'running' ELSE 'stopped' END \
             WHEN s.ready = 'Unknown' THEN 'unknown' WHEN s.needs_action = 1 THEN 'failed' ELSE ",
            under_way!(),
            " END"
        )
    };
}

/// True if a container is to run.
macro_rules! is_desired {
    () => {
        "(coalesce(c.desired, '') = 'running' AND u.disabled = 0)"
    };
}

/// True if no container is reconciled.
macro_rules! is_paused {
    () => {
        "EXISTS (SELECT 1 FROM paused_reconcilers p WHERE p.name = '*' OR p.name = 'container')"
    };
}

macro_rules! under_way {
    () => {
        concat!(
            "CASE WHEN ",
            is_desired!(),
            " THEN 'starting' ELSE 'stopping' END"
        )
    };
}

/// The users of a [`UserFilter`].
macro_rules! matching {
    ($($rest:expr),+) => {
        concat!(
            "WHERE u.role = 'user' AND u.name_key LIKE $1 ESCAPE '!' AND u.name_key LIKE $2 ESCAPE '!' \
             AND ($3 = 0 OR $3 = CASE WHEN ", any_unready!(), " THEN 2 ELSE 1 END) \
             AND ($4 = '' OR $4 = ", status_word!(), ") \
             AND ($5 = '' OR s.conditions LIKE $5 OR us.conditions LIKE $5 OR acs.conditions LIKE $5 OR ks.conditions LIKE $5) \
             AND ($6 = '' OR u.uid IN (WITH RECURSIVE below (uid) AS (SELECT uid FROM user_groups WHERE uid = $6 \
             UNION SELECT g.uid FROM user_groups g JOIN below b ON g.parent_uid = b.uid) \
             SELECT m.user_uid FROM below b JOIN group_members m ON m.group_uid = b.uid)) \
             AND ($7 = '' OR replace($7, '<' || c.image_ref || '>', '') <> $7 OR ", image_id!(), " LIKE $8) \
             AND ($9 = '' OR u.source = $9) \
             AND ($10 = 0 OR $10 = CASE WHEN u.disabled <> 0 THEN 2 ELSE 1 END) ",
            $($rest),+
        )
    };
}

/// The order by a number; before it those of whom it is not known.
macro_rules! order_by_number {
    ($sign:literal) => {
        concat!(
            "CASE $13 WHEN '",
            $sign,
            "created_at' THEN u.created_at WHEN '",
            $sign,
            "last_login_at' THEN coalesce(u.last_login_at, -1) \
             WHEN '",
            $sign,
            "used' THEN coalesce(w.used_bytes, -1) END"
        )
    };
}

/// The order by a text.
macro_rules! order_by_text {
    ($sign:literal) => {
        concat!(
            "CASE $13 WHEN '",
            $sign,
            "status' THEN ",
            status_word!(),
            " WHEN '",
            $sign,
            "image' THEN coalesce(c.image_ref, '') END"
        )
    };
}

statements! {
    /// One page of users with their containers, by name.
    LIST = select_listing!(matching!("ORDER BY u.name_key LIMIT $11 OFFSET $12"));
    /// The same in another order.
    LIST_SORTED = select_listing!(matching!(
        "ORDER BY ", order_by_text!(""), ", ", order_by_text!("-"), " DESC, ", order_by_number!(""), ", ", order_by_number!("-"), " DESC, \
         CASE $13 WHEN '-name' THEN u.name_key END DESC, u.name_key LIMIT $11 OFFSET $12"
    ));
    /// Number of users of `LIST` without paging.
    COUNT = concat!("SELECT count(*) FROM users u ", join_all!(), matching!(""));
    /// The same if the filter is one of names only.
    COUNT_BY_NAME = "SELECT count(*) FROM users u WHERE u.role = 'user' AND u.name_key LIKE $1 ESCAPE '!' AND u.name_key LIKE $2 ESCAPE '!'";
    /// Number of users that are not ready.
    COUNT_UNREADY = concat!(
        "SELECT count(DISTINCT o.uid) FROM objects o LEFT JOIN object_status s ON s.kind = o.kind AND s.uid = o.uid \
         WHERE o.kind IN ('user', 'container', 'agent-config', 'skill-set') AND ",
        is_unready!("o", "s")
    );
    /// Users by the state of their container; of each state how many users are ready with all that belongs to them.
    COUNT_BY_STATUS = concat!(
        "SELECT status, count(*) AS n, CAST(sum(is_ready) AS BIGINT) AS ready FROM (SELECT ",
        status_word!(),
        " AS status, CASE WHEN ",
        any_unready!(),
        " THEN 0 ELSE 1 END AS is_ready FROM users u ",
        join_all!(),
        "WHERE u.role = 'user') words GROUP BY status"
    );
    /// One user, as `LIST` gives it.
    LISTING = select_listing!("WHERE u.role = 'user' AND u.uid = $1");
}

/// Users to list; the default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserFilter {
    /// Case-insensitive substring of the name.
    pub search: String,
    /// Another one.
    pub name: String,
    /// All that belongs to them is ready, or something is not.
    pub ready: Option<bool>,
    /// State of the container.
    pub status: Option<StatusWord>,
    /// Reason of a condition of something that belongs to them.
    pub reason: Option<Reason>,
    /// A group that they are in, or one in which that is.
    pub group: Option<Uid>,
    /// Their image.
    pub image: Option<ImageFilter>,
    /// Where they come from.
    pub source: Option<Source>,
    /// They may not sign in.
    pub disabled: Option<bool>,
}

/// An image, by its full reference or by its id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFilter {
    /// Full reference; empty if it can only be an id.
    pub reference: String,
    /// The beginning of an id (`sha256:…`); empty if it can only be a reference.
    pub id: String,
}

/// The key of an order.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum UserSort {
    /// Name.
    #[default]
    Name,
    /// State of the container, by its word.
    Status,
    /// Reference of the image.
    Image,
    /// Time of creation.
    CreatedAt,
    /// Time of the last sign-in; users who never signed in come first.
    LastLoginAt,
    /// Bytes on the disk; what was not measured comes first.
    Used,
}

/// An order of users; those that are equal in it are ordered by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UserOrder {
    /// Its key.
    pub by: UserSort,
    /// The last one comes first.
    pub descending: bool,
}

impl UserFilter {
    /// Those whose names contain a text.
    pub fn search(text: &str) -> Self {
        Self {
            search: text.to_owned(),
            ..Self::default()
        }
    }
}

/// Values of the parameters of a filter.
struct Values {
    search: String,
    name: String,
    ready: i64,
    status: &'static str,
    reason: String,
    group: String,
    image: String,
    image_id: String,
    source: String,
    disabled: i64,
}

/// 0: no matter; 1: it is so; 2: it is not.
fn choice(is: Option<bool>) -> i64 {
    is.map_or(0, |is| if is { 1 } else { 2 })
}

impl Values {
    async fn of(connection: &mut Connection, filter: &UserFilter) -> Result<Self, DbError> {
        let reason = match filter.reason {
            // A whole reconciler that is paused leaves no condition in the rows.
            Some(Reason::PausedByOperator) if is_paused(connection).await? => String::new(),
            Some(reason) => format!("%\"reason\":\"{reason}\"%"),
            None => String::new(),
        };
        let (image, image_id) = match &filter.image {
            None => (String::new(), String::new()),
            // No reference is equal to it.
            Some(image) if image.reference.is_empty() => ("-".to_owned(), pattern_of_id(&image.id)),
            Some(image) => (spellings(&image.reference), pattern_of_id(&image.id)),
        };
        Ok(Self {
            search: like_pattern(&filter.search),
            name: like_pattern(&filter.name),
            ready: choice(filter.ready),
            status: filter.status.map_or("", Into::into),
            reason,
            group: filter
                .group
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            image,
            image_id,
            source: filter
                .source
                .map(|source| source.to_string())
                .unwrap_or_default(),
            disabled: choice(filter.disabled.map(|disabled| !disabled)),
        })
    }
}

/// True if nothing of a kind that belongs to users is reconciled.
async fn is_paused(connection: &mut Connection) -> Result<bool, DbError> {
    let paused = object::paused_reconcilers(connection).await?;
    let concerns = |name: &str| {
        name == "*" || name == "user" || KIND.parts.iter().any(|kind| kind.as_str() == name)
    };
    Ok(paused.iter().any(|name| concerns(name)))
}

/// All spellings of a full reference with which users may have been stored, each as `<…>`.
fn spellings(reference: &str) -> String {
    let hub = reference.strip_prefix("docker.io/");
    let library = hub.and_then(|rest| rest.strip_prefix("library/"));
    let below_hub = library.map(|rest| format!("docker.io/{rest}"));
    let names = [Some(reference), hub, library, below_hub.as_deref()];
    let names = names.into_iter().flatten();
    let each = names.flat_map(|name| [Some(name), name.strip_suffix(":latest")]);
    each.flatten().map(|name| format!("<{name}>")).collect()
}

fn pattern_of_id(id: &str) -> String {
    match id {
        "" => String::new(),
        // Ids of some engines name the repository before the digest.
        id if id.starts_with("sha256:") => format!("%{id}%"),
        id => format!("{id}%"),
    }
}

/// Runs a statement with the parameters of a filter.
macro_rules! filtered {
    ($query:ident.$finish:ident($connection:expr, $statement:expr, $values:expr $(, $more:expr)*)) => {{
        let values: &Values = $values;
        run!($query.$finish(
            $connection, $statement, &values.search, &values.name, values.ready, values.status, &values.reason,
            &values.group, &values.image, &values.image_id, &values.source, values.disabled $(, $more)*
        ))
    }};
}

/// One page of users with their containers, by name, with the total. `search` is a case-insensitive substring.
pub async fn list(
    connection: &mut Connection,
    search: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<UserListing>, i64), DbError> {
    let filter = UserFilter::search(search);
    list_filtered(connection, &filter, UserOrder::default(), limit, offset).await
}

/// One page of the users of a filter with their containers, with the total.
pub async fn list_filtered(
    connection: &mut Connection,
    filter: &UserFilter,
    order: UserOrder,
    limit: i64,
    offset: i64,
) -> Result<(Vec<UserListing>, i64), DbError> {
    let total = count(connection, filter).await?;
    let values = Values::of(connection, filter).await?;
    let rows = if order == UserOrder::default() {
        filtered!(query_as.fetch_all(connection, LIST, &values, limit, offset))?
    } else {
        let key: &str = order.by.into();
        let key = match order.descending {
            true => format!("-{key}"),
            false => key.to_owned(),
        };
        filtered!(query_as.fetch_all(connection, LIST_SORTED, &values, limit, offset, key))?
    };
    Ok((rows, total))
}

/// Counts users of a filter.
pub async fn count(connection: &mut Connection, filter: &UserFilter) -> Result<i64, DbError> {
    let values = Values::of(connection, filter).await?;
    let by_name = UserFilter {
        search: filter.search.clone(),
        name: filter.name.clone(),
        ..UserFilter::default()
    };
    if *filter == by_name {
        return scalar!(connection, COUNT_BY_NAME, &values.search, &values.name);
    }
    filtered!(query_scalar.fetch_one(connection, COUNT, &values))
}

/// Counts all users that are not ready.
pub async fn count_unready(connection: &mut Connection) -> Result<i64, DbError> {
    scalar!(connection, COUNT_UNREADY)
}

/// Number of users in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct StatusCount {
    /// State of the container, as [`list`] filters by it.
    pub status: StatusWord,
    /// Number of users.
    pub n: i64,
    /// Number of those who are ready with all that belongs to them.
    pub ready: i64,
}

/// Counts all users by the state of their container, in one statement.
pub async fn count_by_status(connection: &mut Connection) -> Result<Vec<StatusCount>, DbError> {
    fetch_all!(connection, COUNT_BY_STATUS)
}

/// One user, as lists have it.
pub async fn listing(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Option<UserListing>, DbError> {
    fetch_optional!(connection, LISTING, uid)
}
