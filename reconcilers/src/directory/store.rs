//! What the directory reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::audit::About;
use schema::directory::{
    self, DirectoryFacts, KnownGroup, KnownUser, OBJECT_NAME, Request, UserChange, object_uid,
};
use schema::error::DbError;
use schema::ids::{Generation, Kind, PlainName, Timestamp, Uid, UidPart};
use schema::object;
use schema::user::{Source, Template};

use super::DirectoryReconciler;
use crate::runtime::Reconciler;
use crate::stores::Database;

/// The directory object, of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectoryRow {
    /// Generation of the object.
    pub generation: Generation,
    /// The newest request.
    pub request: Request,
    /// What is remembered.
    pub facts: DirectoryFacts,
}

impl DirectoryRow {
    /// Whether the newest request waits for its answer.
    pub fn is_unanswered(&self) -> bool {
        self.request.token != self.facts.answered
    }
}

/// Everybody and every group that the service knows, of one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Ordinary users.
    pub users: Vec<KnownUser>,
    /// Groups.
    pub groups: Vec<KnownGroup>,
    /// Names of superadmins, in lower case.
    pub superadmins: Vec<String>,
}

/// Changes of one page.
#[derive(Debug, Clone, PartialEq)]
pub struct UserPage {
    /// What is to become of whom.
    pub changes: Vec<UserChange>,
    /// What new users get.
    pub template: Template,
    /// When the directory was asked: who was here since then is there.
    pub asked_at: Timestamp,
    /// Of which part the uids of new users are.
    pub uids: UidPart,
}

impl<'a> From<&'a UserPage> for directory::Page<'a> {
    fn from(page: &'a UserPage) -> Self {
        Self {
            changes: &page.changes,
            template: &page.template,
            asked_at: page.asked_at,
            uids: page.uids,
        }
    }
}

/// The directory object and users who come from it. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait DirectoryStore: Send + Sync + 'static {
    /// The object; `None` before the first start.
    async fn directory_row(&self) -> Result<Option<DirectoryRow>, DbError>;
    /// Who is known, in one scan of each.
    async fn known(&self) -> Result<Known, DbError>;
    /// Makes changes of users, and of the groups that they are in.
    async fn apply_users(&self, page: &UserPage, now: Timestamp) -> Result<(), DbError>;
    /// Makes and removes groups.
    async fn apply_groups(
        &self,
        add: &[PlainName],
        remove: &[Uid],
        now: Timestamp,
    ) -> Result<(), DbError>;
    /// Remembers what came of it.
    async fn save_directory_facts(&self, facts: &DirectoryFacts) -> Result<(), DbError>;
}

/// The action that the audit trail names.
const SYNC: &str = "directory_sync";
/// Most names in an entry of the audit trail.
const NAMED: usize = 20;

/// What a page does, with the names of those who lose something.
fn described(changes: &[UserChange]) -> String {
    let (mut added, mut changed, mut identified) = (0_usize, 0_usize, 0_usize);
    let (mut disabled, mut removed) = (Vec::new(), Vec::new());
    for change in changes {
        match change {
            UserChange::Add(_) => added += 1,
            UserChange::Update { .. } | UserChange::Rename { .. } => changed += 1,
            UserChange::Identify { .. } => identified += 1,
            UserChange::Disable { name, .. } => disabled.push(name.as_str()),
            UserChange::Remove { name, .. } => removed.push(name.as_str()),
        }
    }
    let mut parts = Vec::new();
    let counts = [
        (added, "added"),
        (changed, "changed"),
        (identified, "identified"),
    ];
    for (count, what) in counts {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    for (names, what) in [(disabled, "disabled"), (removed, "deleted")] {
        if names.is_empty() {
            continue;
        }
        let more = if names.len() > NAMED { ", …" } else { "" };
        let shown: Vec<&str> = names.iter().take(NAMED).copied().collect();
        parts.push(format!(
            "{} {what} ({}{more})",
            names.len(),
            shown.join(", ")
        ));
    }
    parts.join("; ")
}

#[async_trait]
impl DirectoryStore for Database {
    async fn directory_row(&self) -> Result<Option<DirectoryRow>, DbError> {
        let mut snapshot = self.db.snapshot().await?;
        let Some(object) = object::get(&mut snapshot, Kind::Directory, &object_uid()).await? else {
            return Ok(None);
        };
        Ok(Some(DirectoryRow {
            generation: object.generation,
            request: directory::requested(&mut snapshot).await?,
            facts: directory::facts(&mut snapshot).await?,
        }))
    }

    async fn known(&self) -> Result<Known, DbError> {
        let mut snapshot = self.db.snapshot().await?;
        Ok(Known {
            users: directory::known(&mut snapshot).await?,
            groups: directory::groups(&mut snapshot).await?,
            superadmins: directory::superadmins(&mut snapshot).await?,
        })
    }

    async fn apply_users(&self, page: &UserPage, now: Timestamp) -> Result<(), DbError> {
        if let [UserChange::Rename { from, listed, .. }] = page.changes.as_slice() {
            let action = directory::RENAME;
            let mut tx = self.begin_as(DirectoryReconciler::NAME, action).await?;
            if directory::apply(&mut tx, Source::Ldap, page.into(), &self.master_key, now).await?
                == 0
            {
                return Ok(());
            }
            return tx.commit(directory::about_rename(from, &listed.name)).await;
        }
        let mut tx = self.begin_as(DirectoryReconciler::NAME, SYNC).await?;
        directory::apply(&mut tx, Source::Ldap, page.into(), &self.master_key, now).await?;
        let about = About::object(Kind::Directory, OBJECT_NAME);
        tx.commit(about.detail(described(&page.changes))).await
    }

    async fn apply_groups(
        &self,
        add: &[PlainName],
        remove: &[Uid],
        now: Timestamp,
    ) -> Result<(), DbError> {
        let mut tx = self.begin_as(DirectoryReconciler::NAME, SYNC).await?;
        directory::settle_groups(&mut tx, Source::Ldap, add, remove, now).await?;
        let detail = format!(
            "{} groups added; {} groups deleted",
            add.len(),
            remove.len()
        );
        let about = About::object(Kind::Directory, OBJECT_NAME);
        tx.commit(about.detail(detail)).await
    }

    async fn save_directory_facts(&self, facts: &DirectoryFacts) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        directory::save_facts(&mut tx, facts).await?;
        tx.commit().await
    }
}
