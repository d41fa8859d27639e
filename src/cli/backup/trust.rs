//! Keys of backups, and what they prove.

use std::path::Path;

use schema::backup::{Backup, Keys, Trust};
use schema::error::chain;
use schema::secrets::MasterKey;

use super::backup_failed;
use crate::cli::output::screen;
use crate::cli::{Failure, Result};

/// Refuses a backup that nothing proves to be of the installation whose key this is, unless the caller trusts it. Returns true if it is
/// proven. An older backup in the place of a newer one is proven, too, so the time is said.
pub(super) fn check_trust(backup: &Backup, keys: Option<&Keys>, trusts: bool) -> Result<bool> {
    let trust = backup.trust(keys).map_err(backup_failed)?;
    let shown = backup.path().display();
    let doubt = describe_doubt(backup, trust);
    if doubt.is_none() || trusts {
        let at = backup.head.started_at.to_rfc3339();
        screen::note(&format!("{shown} was made at {at}"));
        warn_of_time(backup);
    }
    match (doubt, trusts) {
        (None, _) => Ok(true),
        (Some(doubt), true) => {
            screen::note(&format!("warning: {shown}: {doubt}"));
            Ok(false)
        }
        (Some(doubt), false) => Err(Failure::Refused(format!(
            "{shown}: {doubt}. Users, passwords, settings and files may not be those that were backed up; nothing was restored. Use another backup, {}or add --trust if \
             only you could write where it was kept",
            match trust {
                Trust::NoKey => "give the master key with --key-file, ",
                _ => "",
            }
        ))),
    }
}

/// Warns of a folder with the name of another time.
pub(super) fn warn_of_time(backup: &Backup) {
    if backup.names_another_time() {
        screen::note(&format!(
            "warning: {}: its folder has the name of another time than its manifest, {}; it may be an older backup in the place of a newer one",
            backup.path().display(),
            backup.head.started_at.to_basic()
        ));
    }
}

/// Reason for which a manifest is not known to be this installation's.
pub(super) fn describe_doubt(backup: &Backup, trust: Trust) -> Option<String> {
    let needed = &backup.head.key.fingerprint;
    Some(match trust {
        Trust::Authentic => return None,
        Trust::NoMac => {
            "its manifest has no MAC: an earlier release made it, or the MAC was removed, and anything in it may have been changed"
                .to_owned()
        }
        Trust::OtherKey => format!(
            "its manifest names another master key, {needed}: another installation made it, and anything in it may have been changed"
        ),
        Trust::NoKey => format!(
            "without the master key {needed} it is not known whether it was changed since it was made"
        ),
        Trust::Changed => "its manifest was changed since it was made".to_owned(),
    })
}

/// Parts that can be restored without the key.
fn without_key(backup: &Backup, problem: &str) -> Failure {
    let (place, fingerprint) = (backup.path().display(), &backup.head.key.fingerprint);
    Failure::Refused(format!(
        "{problem}. Passwords of providers, channels, cookies and repositories are sealed under the key {fingerprint} in the database, and \
         the service does not start without it; nothing was restored. Without the key, the files of users \
         and archives can still be restored, but for the sealed settings files of agents: `agentyard restore {place} --to DIR --trust`, or those of one user \
         with --user NAME --path PATH"
    ))
}

/// Loads the key of a backup. With `trusts` it may be another one than the manifest names.
pub(super) fn load_key(backup: &Backup, file: Option<&Path>, trusts: bool) -> Result<MasterKey> {
    let Some(file) = file else {
        let from = &backup.head.key.file;
        return Err(without_key(
            backup,
            &format!(
                "backups do not contain the master key; give its file with --key-file (originally {from})"
            ),
        ));
    };
    let key = MasterKey::load_file(file).map_err(|error| without_key(backup, &chain(&error)))?;
    match backup.is_key(&key) || trusts {
        true => Ok(key),
        false => Err(without_key(
            backup,
            &format!(
                "{} contains another master key, {}",
                file.display(),
                key.fingerprint()
            ),
        )),
    }
}
