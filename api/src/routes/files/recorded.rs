//! Changes of a user's workspace, which are recorded before they are made.

use std::sync::Arc;

use schema::audit::About;
use schema::error::DbError;
use schema::home::workspace::{FileError, Workspace};
use schema::usage;

use crate::auth::Account;
use crate::deps::{Dependencies, Deps};
use crate::error::{ApiError, Result};
use crate::files::refused;
use crate::input::Meta;
use crate::quota::Room;

/// A change of the caller's workspace.
pub(super) struct Change<S, T> {
    /// What is changed, and how.
    pub subject: S,
    /// Whether it can be made, as far as can be said before.
    pub check: fn(&Workspace, &S) -> Result<(), FileError>,
    /// Makes it.
    pub make: fn(&Workspace, &S) -> Result<T, FileError>,
    /// It removes something: that may take long, and frees space.
    pub removes: bool,
    /// How much is changed, for the audit trail; none of the user's names.
    pub detail: String,
    /// What it takes of the quota.
    pub room: Option<Room>,
}

impl<S: Send + Sync + 'static, T: Send + 'static> Change<S, T> {
    /// Makes the change. The audit trail says first that it is made, and afterwards if it failed: what cannot be recorded is not done,
    /// but for a removal while the disk that it lies on with the database is full: that is recorded afterwards, or the log says that it cannot
    /// be. Once begun it goes on to its end, also when the client is gone.
    pub(super) async fn make(self, deps: &Deps, account: Account, meta: Meta) -> Result<T> {
        let workspace = deps.files.open(&account).await?;
        let subject = Arc::new(self.subject);
        let (check, checked) = (self.check, Arc::clone(&subject));
        let checking = deps
            .files
            .run(&account, move || check(&workspace, &checked));
        checking.await?.map_err(refused)?;
        let turn = deps.files.change(&account, self.removes).await?;
        let Self {
            make,
            room,
            detail,
            removes,
            ..
        } = self;
        let task_deps = Deps::clone(deps);
        let changing = deps.tasks.spawn(async move {
            let deps = &task_deps;
            let trail = Trail {
                deps,
                account: &account,
                meta: &meta,
            };
            let recorded = match trail.begin(&detail).await {
                Err(DbError::StorageFull(_)) if removes && deps.files.with_database => false,
                recorded => recorded.map(|()| true)?,
            };
            let made = turn.run(move |workspace| make(workspace, &subject)).await;
            if !recorded && let Err(error) = trail.begin(&detail).await {
                tracing::error!(user = %account.name, %error, "files were removed, and that cannot be recorded");
                return Err(error.into());
            }
            let change = trail.end(matches!(made, Ok(Ok(_)))).await;
            if let Err(error) = &change {
                tracing::warn!(user = %account.name, %error, "files were changed, and the end of that cannot be recorded");
            }
            let takes_space = match &made {
                Ok(Err(error)) => matches!(error, FileError::Partly(_)),
                Ok(Ok(_)) | Err(_) => true,
            };
            if let Some(room) = room.filter(|_| takes_space) {
                room.keep(change.ok());
            }
            made?.map_err(refused)
        });
        changing.await.map_err(ApiError::internal)?
    }
}

/// What the audit trail says of a change, and the measuring of the workspace.
struct Trail<'a> {
    deps: &'a Dependencies,
    account: &'a Account,
    meta: &'a Meta,
}

impl Trail<'_> {
    fn about(&self, detail: &str) -> About {
        About::object("workspace", &self.account.name).detail(detail)
    }

    async fn begin(&self, detail: &str) -> Result<(), DbError> {
        let tx = self.meta.begin(self.deps).await?;
        tx.commit(self.about(detail)).await
    }

    /// A measurement that began before this may have missed what was changed. Returns the number of the change.
    async fn end(&self, completed: bool) -> Result<i64, DbError> {
        let uid = &self.account.uid;
        if completed {
            return self.deps.writer.workspace_changed(uid).await;
        }
        let mut tx = self.meta.begin(self.deps).await?;
        let change = usage::changed(&mut tx, uid).await?;
        tx.commit_failed(self.about("")).await?;
        Ok(change)
    }
}
