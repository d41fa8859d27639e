//! The API's port to the directory, implemented on its driver.

use std::sync::Arc;

use api::ports::{
    CheckStep, CheckedGroup, Directory, DirectoryCheck, DirectoryFailure, DirectoryListing,
    DirectoryPerson, DirectoryUser, DirectoryWanted, SyncPlan, SyncRename,
};
use async_trait::async_trait;
use reconcilers::directory::{DirectoryStore, Preview, preview, settings};
use reconcilers::drivers::ldap::{DirectorySettings, Wanted};
use reconcilers::shared::Shared;
use schema::config::Config;
use schema::directory::{Held, Skipped, SyncResult, SyncScope, UserChange};
use secrecy::SecretString;

/// The directory of the configuration in effect.
pub struct Directories {
    /// Who is known.
    pub store: Arc<dyn DirectoryStore>,
    /// The driver, and the configuration.
    pub shared: Arc<Shared>,
}

fn failure(error: impl std::fmt::Display) -> DirectoryFailure {
    DirectoryFailure(error.to_string())
}

impl Directories {
    async fn settings(&self) -> Result<DirectorySettings, DirectoryFailure> {
        let config = self.shared.config.newest().await.map_err(failure)?;
        settings::of(&config).map_err(failure)
    }
}

#[async_trait]
impl Directory for Directories {
    async fn sign_in(
        &self,
        name: &str,
        password: &SecretString,
    ) -> Result<Option<DirectoryPerson>, DirectoryFailure> {
        let settings = self.settings().await?;
        let found = self.shared.directory.sign_in(&settings, name, password);
        let found = found.await.map_err(failure)?;
        Ok(found.map(|person| DirectoryPerson {
            name: person.name,
            dn: person.dn,
            identity: person.identity,
            groups: person.groups,
        }))
    }

    async fn users(&self) -> Result<DirectoryListing, DirectoryFailure> {
        let settings = self.settings().await?;
        let listing = self.shared.directory.list(&settings).await;
        let listing = listing.map_err(failure)?;
        let users = listing.people.into_iter().map(|person| DirectoryUser {
            username: person.name,
            dn: Some(person.dn),
            groups: person.groups.into_iter().flatten().collect(),
        });
        let left_out = listing.left_out.into_iter().map(|left| Skipped {
            name: left.dn,
            reason: left.reason,
        });
        let notes = listing.notes.into_iter().map(|note| Skipped {
            name: note.name,
            reason: note.reason,
        });
        Ok(DirectoryListing {
            users: users.collect(),
            skipped: left_out.chain(notes).take(SyncResult::NAMED).collect(),
        })
    }

    async fn check(
        &self,
        config: &Config,
        wanted: DirectoryWanted,
    ) -> Result<DirectoryCheck, DirectoryFailure> {
        let settings = settings::of(config).map_err(failure)?;
        let DirectoryWanted { user, group, few } = wanted;
        let wanted = Wanted { user, group, few };
        let check = self.shared.directory.check(&settings, &wanted).await;
        let steps = check.steps.into_iter().map(|step| CheckStep {
            name: step.name,
            ok: step.ok,
            detail: step.detail,
            ms: u64::try_from(step.took.as_millis()).unwrap_or(u64::MAX),
        });
        let steps: Vec<_> = steps.collect();
        let groups = steps.iter().find(|step| step.name == "group_query");
        Ok(DirectoryCheck {
            group_error: groups
                .filter(|step| !step.ok)
                .map(|step| step.detail.clone()),
            steps,
            user_count: check.user_count,
            users: check.users,
            groups: check
                .groups
                .into_iter()
                .map(|group| CheckedGroup {
                    name: group.name,
                    members: group.members,
                    member_count: group.member_count,
                    sub_groups: group.sub_groups,
                })
                .collect(),
        })
    }

    async fn plan(&self, scope: SyncScope) -> Result<SyncPlan, DirectoryFailure> {
        let preview = preview(self.store.as_ref(), &self.shared, scope).await;
        let Preview { diff, replaced } = preview.map_err(failure)?;
        let mut plan = SyncPlan {
            result: diff.result,
            mass_removal: diff.guard.map(|guard| Held {
                digest: guard.digest,
                what: guard.what,
            }),
            ..SyncPlan::default()
        };
        for change in &diff.users {
            let (list, name) = match change {
                UserChange::Add(listed) if replaced.contains(&listed.name.key()) => {
                    plan.result.counts.added -= 1;
                    plan.result.counts.changed += 1;
                    (&mut plan.change, &listed.name)
                }
                UserChange::Add(listed) => (&mut plan.add, &listed.name),
                UserChange::Update { listed, .. } => (&mut plan.change, &listed.name),
                UserChange::Rename { from, listed, .. } => {
                    if plan.rename.len() < SyncPlan::NAMED {
                        plan.rename.push(SyncRename {
                            from: from.to_string(),
                            to: listed.name.to_string(),
                        });
                    }
                    continue;
                }
                // Counted only: nothing of the user changes.
                UserChange::Identify { .. } => continue,
                UserChange::Disable { name, .. } => (&mut plan.disable, name),
                UserChange::Remove { name, .. } => (&mut plan.remove, name),
            };
            if list.len() < SyncPlan::NAMED {
                list.push(name.to_string());
            }
        }
        let added = diff.new_groups.iter().take(SyncPlan::NAMED);
        plan.add_groups = added.map(ToString::to_string).collect();
        let removed = diff.remove_groups.iter().take(SyncPlan::NAMED);
        plan.remove_groups = removed.map(|(_, name)| name.to_string()).collect();
        Ok(plan)
    }
}
