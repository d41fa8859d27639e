//! How archives are named on the command line: `alice@2026-05-11T11:46:40Z`.
//!
//! What follows the time in the directory's name follows it here, too (`…Z-5f0c1a`). Two directories of that name, in the
//! archive and in a batch or in two batches, are told apart by the batch behind a slash; it may always be given.

use super::removal::Archive;

/// Why a handle names no archive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// No archive has it.
    #[error("no archive has this name")]
    Unknown,
    /// Several have it; each of these has one.
    #[error("several archives have this name: {}", .0.join(", "))]
    Several(Vec<String>),
}

impl Archive {
    /// The batch that it is in; `None`: in the archive itself.
    pub fn batch(&self) -> Option<&str> {
        self.directory.split_once('/').map(|(batch, _)| batch)
    }

    /// From which mode to which the users of its batch left: `local-to-ldap`.
    pub fn mode_switch(&self) -> Option<&str> {
        let (_, modes) = self.batch()?.split_once("-mode-")?;
        Some(modes)
    }

    /// Unique within the archive, and within a batch.
    fn handle_in_batch(&self) -> String {
        let base = format!("{}-{}", self.user, self.archived_at.to_basic());
        let name = self.directory.rsplit('/').next().unwrap_or_default();
        let suffix = name.strip_prefix(&base).unwrap_or_default();
        format!("{}@{}{suffix}", self.user, self.archived_at.to_rfc3339())
    }

    /// Unique.
    fn handle_with_batch(&self) -> String {
        match self.batch() {
            Some(batch) => format!("{}/{batch}", self.handle_in_batch()),
            None => self.handle_in_batch(),
        }
    }
}

/// The handles of all archives, in their order.
pub fn archive_handles(archives: &[Archive]) -> Vec<String> {
    let short: Vec<String> = archives.iter().map(Archive::handle_in_batch).collect();
    // A later archive may have the name of one that is being removed: that is nothing to choose between.
    let mut places = std::collections::HashMap::new();
    let mut several = std::collections::HashSet::new();
    for (archive, handle) in archives.iter().zip(&short) {
        let first = places.entry(handle.as_str()).or_insert(&archive.directory);
        if **first != archive.directory {
            several.insert(handle.as_str());
        }
    }
    let handle = |(archive, short): (&Archive, &String)| match several.contains(short.as_str()) {
        true => archive.handle_with_batch(),
        false => short.clone(),
    };
    archives.iter().zip(&short).map(handle).collect()
}

/// The archive with this handle; one that is being removed only if no other has it.
///
/// # Errors
/// When there is none, or it does not say which.
pub fn archive_by_handle<'a>(
    archives: &'a [Archive],
    handle: &str,
) -> Result<&'a Archive, HandleError> {
    let with = |of: fn(&Archive) -> String| -> Vec<&'a Archive> {
        let found = archives.iter().filter(|archive| of(archive) == handle);
        found.collect()
    };
    let kept_first = |found: &[&'a Archive]| {
        let kept = found.iter().find(|archive| !archive.removing);
        kept.or(found.first()).copied()
    };
    if let Some(archive) = kept_first(&with(Archive::handle_with_batch)) {
        return Ok(archive);
    }
    let found = with(Archive::handle_in_batch);
    let archive = kept_first(&found).ok_or(HandleError::Unknown)?;
    if found
        .iter()
        .all(|other| other.directory == archive.directory)
    {
        return Ok(archive);
    }
    let handles = found.iter().map(|archive| archive.handle_with_batch());
    Err(HandleError::Several(handles.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: &str = "20260511T114640Z-mode-local-to-ldap";

    fn archives(directories: &[&str]) -> Vec<Archive> {
        let parse = |directory: &&str| Archive::parse(directory).unwrap();
        directories.iter().map(parse).collect()
    }

    #[test]
    fn a_handle_is_user_and_time_and_what_makes_the_directory_unique() {
        let directories = [
            "alice-20260511T114640Z",
            "alice-20260511T114640Z-aaaaaa",
            &format!("Bob@x.org-20260511T114640Z-{}", "a".repeat(32)),
            &format!("{BATCH}/carol-20260511T114640Z"),
        ];
        let archives = archives(&directories);
        let handles = archive_handles(&archives);
        let expected = [
            "alice@2026-05-11T11:46:40Z",
            "alice@2026-05-11T11:46:40Z-aaaaaa",
            &format!("Bob@x.org@2026-05-11T11:46:40Z-{}", "a".repeat(32)),
            "carol@2026-05-11T11:46:40Z",
        ];
        assert_eq!(handles, expected);
        for (archive, handle) in archives.iter().zip(&handles) {
            assert_eq!(archive_by_handle(&archives, handle), Ok(archive));
        }
        let whole = format!("carol@2026-05-11T11:46:40Z/{BATCH}");
        assert_eq!(archive_by_handle(&archives, &whole), Ok(&archives[3]));
        assert_eq!(archives[3].mode_switch(), Some("local-to-ldap"));
        assert_eq!(archives[0].mode_switch(), None);
        for wrong in [
            "alice",
            "",
            "alice@2026-05-11T11:46:4",
            "Alice@2026-05-11T11:46:40Z",
        ] {
            let found = archive_by_handle(&archives, wrong);
            assert_eq!(found, Err(HandleError::Unknown), "{wrong}");
        }
    }

    #[test]
    fn one_name_in_two_places_is_told_apart_by_the_batch() {
        let other = "20260511T114640Z-mode-ldap-to-local";
        let directories = [
            "alice-20260511T114640Z",
            &format!("{BATCH}/alice-20260511T114640Z"),
            &format!("{other}/alice-20260511T114640Z"),
        ];
        let archives = archives(&directories);
        let handles = archive_handles(&archives);
        let expected = [
            "alice@2026-05-11T11:46:40Z".to_owned(),
            format!("alice@2026-05-11T11:46:40Z/{BATCH}"),
            format!("alice@2026-05-11T11:46:40Z/{other}"),
        ];
        assert_eq!(handles, expected);
        for (archive, handle) in archives.iter().zip(&handles) {
            assert_eq!(archive_by_handle(&archives, handle), Ok(archive));
        }
        let several = archive_by_handle(&archives[1..], &handles[0]);
        let both = HandleError::Several(expected[1..].to_vec());
        assert_eq!(several, Err(both));
    }

    #[test]
    fn what_is_being_removed_does_not_hide_a_later_archive_of_its_name() {
        let mut archives = archives(&["alice-20260511T114640Z", "alice-20260511T114640Z"]);
        archives[0].removing = true;
        let handles = archive_handles(&archives);
        assert_eq!(handles[0], handles[1]);
        let found = archive_by_handle(&archives, &handles[0]);
        assert_eq!(found, Ok(&archives[1]));
        archives.truncate(1);
        let found = archive_by_handle(&archives, &handles[0]);
        assert_eq!(found, Ok(&archives[0]));
    }
}
