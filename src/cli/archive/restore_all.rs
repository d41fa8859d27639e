//! `agentyard archive restore --all`: the archives of a mode switch.

use schema::audit::Writer;
use schema::home::{Archive, archive_handles};
use schema::user::User;

use super::restore::{copy, target};
use super::{RestoreArgs, archives, open_audit_writer};
use crate::cli::local::{Local, blocking, home_failed};
use crate::cli::output::cell::counted;
use crate::cli::output::screen;
use crate::cli::{Failure, Result};
use crate::settings::Settings;

/// Counts of what became of the archives.
#[derive(Debug, Default, PartialEq, Eq)]
struct RestoreCounts {
    restored: u64,
    there: u64,
    without_user: u64,
    failed: u64,
}

impl RestoreCounts {
    fn summary(&self, is_dry_run: bool) -> String {
        let done = if is_dry_run {
            "would be restored"
        } else {
            "restored"
        };
        let mut parts = vec![format!("{} {done}", counted(self.restored, "archive"))];
        for (count, what) in [
            (self.there, "restored before"),
            (self.without_user, "without a user"),
            (self.failed, "failed"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        parts.join(", ")
    }
}

/// Decision about one archive.
enum Decision {
    Restore(User),
    There,
    WithoutUser(Failure),
}

/// Restores all archives of a mode switch, each for the user of that name who exists now. One that fails does not stop the others.
///
/// # Errors
/// When there is no such mode switch, or an archive could not be restored.
pub async fn restore_all(settings: &Settings, local: &Local, args: &RestoreArgs) -> Result {
    let writer = open_audit_writer(settings, local)?;
    let archives = archives(local).await?;
    let handles = archive_handles(&archives);
    let asked = args.from_mode_switch.as_deref().unwrap_or_default();
    let batch = choose_batch(&archives, asked)?;
    screen::print(&format!("archives of the mode switch {batch}:\n"))?;
    let of_batch = archives.iter().zip(&handles);
    let of_batch = of_batch.filter(|(archive, _)| archive.batch() == Some(&batch));
    let mut tally = RestoreCounts::default();
    for (archive, handle) in of_batch {
        let line = restore_one(local, &writer, (archive, handle), args.dry_run, &mut tally).await?;
        screen::print(&format!("  {handle}: {line}\n"))?;
    }
    let summary = tally.summary(args.dry_run);
    screen::print(&format!("{summary}\n"))?;
    match tally.failed {
        0 => Ok(()),
        _ => Err(Failure::Failed(format!(
            "{summary}; correct what is said above, then repeat the command: what was restored is left out"
        ))),
    }
}

/// Returns the batch that was asked for, or the last one.
fn choose_batch(archives: &[Archive], asked: &str) -> Result<String> {
    let batches = archives.iter().filter_map(Archive::batch);
    // Their names begin with the time.
    let chosen = match asked {
        "" => batches.max(),
        asked => batches.into_iter().find(|batch| *batch == asked),
    };
    chosen.map(str::to_owned).ok_or_else(|| {
        Failure::NotFound(match asked {
            "" => "no archive was made by a mode switch".to_owned(),
            asked => format!(
                "no archive of the mode switch {asked}; `agentyard archive list -o json` has the batch of each archive"
            ),
        })
    })
}

async fn restore_one(
    local: &Local,
    writer: &Writer,
    (archive, handle): (&Archive, &str),
    is_dry_run: bool,
    tally: &mut RestoreCounts,
) -> Result<String> {
    let user = match decide_archive(local, archive).await {
        Ok(Decision::Restore(user)) => user,
        Ok(Decision::There) => {
            tally.there += 1;
            return Ok("restored before; left out".to_owned());
        }
        Ok(Decision::WithoutUser(why)) => {
            tally.without_user += 1;
            return Ok(format!("left: {why}"));
        }
        Err(failure) => {
            tally.failed += 1;
            return Ok(format!("failed: {failure}"));
        }
    };
    if is_dry_run {
        tally.restored += 1;
        return Ok(format!("would be restored for {}", user.name));
    }
    match copy(local, writer, (archive.clone(), handle), &user).await {
        Ok(restored) => {
            tally.restored += 1;
            Ok(restored)
        }
        Err(failure) => {
            tally.failed += 1;
            Ok(format!("failed: {failure}"))
        }
    }
}

async fn decide_archive(local: &Local, archive: &Archive) -> Result<Decision> {
    let user = match target(local, &archive.user).await {
        Ok(user) => user,
        Err(why @ (Failure::NotFound(_) | Failure::Failed(_))) => {
            return Ok(Decision::WithoutUser(why));
        }
        Err(failure) => return Err(failure),
    };
    let (homes, archive) = (local.homes.clone(), archive.clone());
    let (name, uid) = (user.name.clone(), user.uid.clone());
    let is_there = blocking(move || {
        let found = homes.is_restored(&archive, &name, &uid);
        found.map_err(home_failed)
    });
    Ok(match is_there.await? {
        true => Decision::There,
        false => Decision::Restore(user),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_mode_switch_is_chosen() {
        let [first, last] = [
            "20260511T114640Z-mode-local-to-ldap",
            "20260512T114640Z-mode-ldap-to-local",
        ];
        let directories = [
            "alice-20260513T114640Z".to_owned(),
            format!("{first}/alice-20260511T114640Z"),
            format!("{last}/bob-20260512T114640Z"),
        ];
        let archives = directories.map(|directory| Archive::parse(&directory).unwrap());
        assert_eq!(choose_batch(&archives, "").unwrap(), last);
        assert_eq!(choose_batch(&archives, first).unwrap(), first);
        for (archives, asked) in [(&archives[..1], ""), (&archives[..], "x")] {
            let refused = choose_batch(archives, asked);
            assert!(matches!(refused, Err(Failure::NotFound(_))), "{asked}");
        }
    }

    #[test]
    fn summary_omits_zero_counts() {
        let all = RestoreCounts {
            restored: 1,
            there: 2,
            without_user: 3,
            failed: 4,
        };
        let text = "1 archive restored, 2 restored before, 3 without a user, 4 failed";
        assert_eq!(all.summary(false), text);
        assert_eq!(
            RestoreCounts::default().summary(true),
            "0 archives would be restored"
        );
    }
}
