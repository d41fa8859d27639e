//! Makes a data directory ready: key, database, first superadmin, first configuration. Idempotent.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use schema::adapter::store as adapters;
use schema::audit::{self, About, Author, ChainKey, Entry, Outcome};
use schema::backup::Allowed;
use schema::clock::{Clock, SystemClock};
use schema::config::history::SavedBy;
use schema::config::{Config, Problem, find, keys, parse_patch, query as config, sealing};
use schema::db::{Backend, Db, Tx};
use schema::error::{DbError, OpenError, chain};
use schema::home::{self, HomeError};
use schema::ids::{Kind, UserName};
use schema::secrets::{MASTER_KEY_FILE, MasterKey, SecretsError};
use schema::{group, meta, mode_switch, object, user};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use serde_json::{Value, json};
use tracing::warn;

use crate::base_adapter;
use crate::cli::suggest;
use crate::settings::{LogFormat, Settings};

/// The first superadmin.
pub const FIRST_SUPERADMIN: &str = "admin";

/// What is ready.
pub struct Prepared {
    /// The database.
    pub db: Db,
    /// Seals secrets.
    pub master_key: Arc<MasterKey>,
    /// Marks what this installation owns in the world.
    pub instance_id: String,
    /// Signs sessions.
    pub session_secret: SecretSlice<u8>,
    /// The first superadmin, if this start created one.
    pub first: First,
}

/// The first superadmin.
pub enum First {
    /// There was one before.
    Existing,
    /// Created with the password of a file.
    Given,
    /// Created with a random password, which is printed once.
    Random(SecretString),
}

/// Why it could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The data directory.
    #[error("cannot create the data directory {place}: {source}")]
    DataDir {
        /// Which.
        place: String,
        /// Why.
        source: std::io::Error,
    },
    /// Something in the data directory, or the directory itself, is not the service's.
    #[error("{0}")]
    Home(#[from] HomeError),
    /// Others own the data directory, or may write in it.
    #[error("the data directory {0} is not used: {1}")]
    NotOurs(String, String),
    /// The master key.
    #[error("{0}")]
    Secrets(#[from] SecretsError),
    /// The master key is not the one under which the database's secrets are sealed.
    #[error(
        "the key file {0} does not belong to this database: its secrets are sealed under another master key; \
         restore the file that belongs to it from its own backup"
    )]
    OtherKey(String),
    /// The database could not be opened.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The database failed.
    #[error("the database failed")]
    Db(#[from] DbError),
    /// A `--set`.
    #[error("--set {given}: {rule}")]
    Set {
        /// The key.
        given: String,
        /// What it must be.
        rule: String,
    },
    /// The adapter.
    #[error("{0}")]
    Adapter(String),
    /// The file with the first password.
    #[error("the password file {place}: {problem}")]
    PasswordFile {
        /// Which.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// Hashing the first password.
    #[error("cannot hash the first password: {0}")]
    Hash(String),
}

impl PrepareError {
    /// Whether the data must not be touched and starting again changes nothing (exit code 78).
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Open(error) => error.is_refusal(),
            Self::Home(error) => error.is_refusal(),
            Self::NotOurs(..)
            | Self::Secrets(_)
            | Self::OtherKey(_)
            | Self::Set { .. }
            | Self::Adapter(_)
            | Self::PasswordFile { .. } => true,
            Self::DataDir { .. } | Self::Db(_) | Self::Hash(_) => false,
        }
    }
}

/// Makes the data directory, readable by its owner only; leaves an existing one as it is. All that can be checked without a
/// database is checked before anything is written.
///
/// # Errors
/// When it cannot be made or must not be used.
pub fn data_dir(settings: &Settings) -> Result<(), PrepareError> {
    parse_sets(&settings.set)?;
    let is_new = match &settings.database {
        Backend::Sqlite(file) => {
            // Cut off to nothing it would become a new one.
            let is_empty = |file: std::fs::Metadata| file.is_file() && file.len() == 0;
            file.symlink_metadata().is_err() || file.metadata().is_ok_and(is_empty)
        }
        // Asked later: that takes the server.
        Backend::Postgres(_) => false,
    };
    home::check_data_dir(&settings.data_dir, is_new)?;
    if is_new {
        base_adapter::read(&settings.adapter).map_err(PrepareError::Adapter)?;
    }
    let place = || settings.data_dir.display().to_string();
    let failed = |source| PrepareError::DataDir {
        place: place(),
        source,
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&settings.data_dir)
        .map_err(failed)?;
    // Whoever may write in it may plant what is in it. A group of its own is how volumes are mounted.
    let metadata = std::fs::metadata(&settings.data_dir).map_err(failed)?;
    let (owner, us) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != us && owner != 0 {
        return Err(PrepareError::NotOurs(
            place(),
            format!("it belongs to user {owner}, and the service runs as user {us}"),
        ));
    }
    if metadata.mode() & 0o002 != 0 {
        let mode = metadata.mode() & 0o7777;
        return Err(PrepareError::NotOurs(
            place(),
            format!("its mode is {mode:04o}, so others might plant files in it; make it 0700"),
        ));
    }
    if metadata.mode() & 0o005 != 0 {
        let (place, mode) = (place(), metadata.mode() & 0o7777);
        warn!(
            "every user of this machine can look into {place} (its mode is {mode:04o}); make it 0700"
        );
    }
    Ok(())
}

/// Makes everything ready that is not; repeats change nothing.
///
/// # Errors
/// See [`PrepareError`]; nothing is half done in the database.
pub async fn prepare(settings: &Settings) -> Result<Prepared, PrepareError> {
    let wanted = parse_sets(&settings.set)?;
    refuse_lost_tables(settings).await?;
    let db = Db::open(settings.database.clone()).await?;
    let now = SystemClock.now();
    let mut tx = db.begin().await?;
    // A key that is missing where secrets are sealed under it is lost, not new.
    let master_key = Arc::new(if meta::has_sealed(&mut tx).await? {
        MasterKey::load(&settings.data_dir)?
    } else {
        MasterKey::load_or_create(&settings.data_dir)?
    });
    let trail = ChainKey::of(&master_key);
    let (instance_id, fresh) = meta::ensure_instance_id(&mut tx).await?;
    if fresh {
        audit::install(&mut tx, &trail).await?;
    }
    let session_secret = meta::ensure_session_secret(&mut tx, &master_key).await;
    let session_secret = session_secret.map_err(|error| match error {
        DbError::Sealed(_) => {
            let file = settings.data_dir.join(MASTER_KEY_FILE);
            PrepareError::OtherKey(file.display().to_string())
        }
        error => error.into(),
    })?;
    // Before the adapter, as whoever saves the configuration does.
    config::lock(&mut tx).await?;
    // Whoever makes groups or users meanwhile waits, and finds the mode that is set here.
    group::lock(&mut tx).await?;
    sealing::seal_plain(&mut tx, &master_key).await?;
    let adapter = meta::ensure(&mut tx, "adapter", &settings.adapter).await?;
    let author = Author::local(rustix::process::getuid().as_raw(), "init");
    let by = SavedBy {
        actor: &author.actor,
        at: now,
    };
    let activated = ensure_adapter(&mut tx, adapter, by).await?;
    object::ensure_singles(&mut tx, now).await?;
    let is_first = user::superadmin_count(&mut tx).await? == 0;
    let given = match &settings.admin_password_file {
        Some(path) if is_first => {
            let path = path.clone();
            let read = tokio::task::spawn_blocking(move || read_password(&path)).await;
            Some(read.map_err(|e| PrepareError::Hash(e.to_string()))??)
        }
        _ => None,
    };
    let first = if is_first {
        let (first, hashed) = match given {
            Some(given) => (First::Given, given),
            None => {
                let random = schema::secrets::random_password()?;
                (First::Random(random.clone()), random)
            }
        };
        let hash = tokio::task::spawn_blocking(move || {
            api::auth::password::hash_blocking(&hashed).map_err(|e| e.to_string())
        })
        .await
        .map_err(|e| PrepareError::Hash(e.to_string()))?
        .map_err(PrepareError::Hash)?;
        let name: UserName = FIRST_SUPERADMIN.parse().map_err(DbError::InvalidName)?;
        user::create_superadmin(&mut tx, &name, &SecretString::from(hash), now).await?;
        first
    } else {
        First::Existing
    };
    let allowed = Allowed {
        named: settings.backup_directories.clone(),
        before: None,
    };
    let set = set_missing(&mut tx, &master_key, wanted, &allowed, by).await?;
    if let Some(about) = about(is_first, activated, &set) {
        let entry = Entry::new(author, about, Outcome::Ok, now);
        audit::append(&mut tx, &trail, &entry).await?;
    }
    tx.commit().await?;
    // What is sealed by now serves; bytes of before are tried again at the next start.
    if let Err(error) = sealing::scrub(&db).await {
        let error = chain(&error);
        warn!(
            error,
            "the database still holds bytes of values in the clear"
        );
    }
    Ok(Prepared {
        db,
        master_key,
        instance_id,
        session_secret: SecretSlice::from(session_secret.to_vec()),
        first,
    })
}

/// Reads the first superadmin's password: the file without the line break at its end.
fn read_password(path: &std::path::Path) -> Result<SecretString, PrepareError> {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    let wrong = |problem: String| PrepareError::PasswordFile {
        place: path.display().to_string(),
        problem,
    };
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let metadata = file.metadata().map_err(|error| wrong(error.to_string()))?;
    if metadata.is_file() && metadata.mode() & 0o004 != 0 {
        let rule = "every user of the machine can read it; make its mode 0600";
        return Err(wrong(rule.to_owned()));
    }
    let mut text = String::new();
    let limit = api::auth::password::MAX_BYTES as u64 + 3;
    file.take(limit)
        .read_to_string(&mut text)
        .map_err(|error| wrong(error.to_string()))?;
    let length = text.trim_end_matches(['\r', '\n']).len();
    text.truncate(length);
    let password = SecretString::from(text);
    api::auth::password::check_rules("password", &password)
        .map_err(|error| wrong(error.to_string()))?;
    Ok(password)
}

/// Refuses a PostgreSQL database without tables when the data directory belongs to an installation: others would be made in
/// it, with a first superadmin, and know of none of its users.
async fn refuse_lost_tables(settings: &Settings) -> Result<(), PrepareError> {
    let Backend::Postgres(url) = &settings.database else {
        return Ok(());
    };
    // Looked at first: another replica makes the tables before it marks the directory.
    let marked = home::check_data_dir(&settings.data_dir, true);
    if marked.is_err() && Db::has_no_tables(url).await? {
        marked?;
    }
    Ok(())
}

/// Puts the adapter that this installation began with into effect, unless somebody brought another one. When it
/// can no longer be read, the one in effect stays. Returns the version that is put into effect now.
async fn ensure_adapter(
    tx: &mut Tx,
    wanted: String,
    by: SavedBy<'_>,
) -> Result<Option<String>, PrepareError> {
    let read = tokio::task::spawn_blocking(move || base_adapter::read(&wanted)).await;
    match read.map_err(|error| error.to_string()).flatten() {
        Ok(adapter) => {
            let activated = adapters::ensure_base(tx, &adapter, by).await?;
            Ok(activated.then(|| adapter.index.adapter_version.to_string()))
        }
        Err(problem) if adapters::state(tx).await?.active.is_some() => {
            warn!(problem, "the adapter in effect stays");
            Ok(None)
        }
        Err(problem) => Err(PrepareError::Adapter(problem)),
    }
}

/// What the audit trail says of a preparation, if it changed anything.
fn about(superadmin: bool, adapter: Option<String>, set: &[String]) -> Option<About> {
    let superadmin = superadmin.then(|| format!("{}/{FIRST_SUPERADMIN}", user::Role::Superadmin));
    let active = || format!("{}/{}", Kind::Adapter, adapters::OBJECT_NAME);
    let config = (!set.is_empty()).then(|| "config".to_owned());
    let changed = [superadmin, adapter.as_ref().map(|_| active()), config];
    let mut changed = changed.into_iter().flatten();
    let mut about = About::whole(changed.next()?);
    for other in changed {
        about = about.and_whole(other);
    }
    let adapter = adapter.map(|version| format!("version {version}"));
    let set = (!set.is_empty()).then(|| format!("changed: {}", set.join(", ")));
    let detail: Vec<String> = [adapter, set].into_iter().flatten().collect();
    Some(about.detail(detail.join("; ")))
}

/// Gives keys a value that have none yet; returns which. The caller holds the configuration.
async fn set_missing(
    tx: &mut Tx,
    master_key: &MasterKey,
    wanted: Vec<(String, Value)>,
    allowed: &Allowed,
    by: SavedBy<'_>,
) -> Result<Vec<String>, PrepareError> {
    let (stored, _) = config::load(tx, master_key).await?;
    let present = Config::from_stored(stored);
    // Together: one may belong to another.
    let missing = wanted.into_iter().filter(|(key, _)| !present.is_set(key));
    let changes = parse_patch(&Value::Object(missing.collect()))
        .and_then(|patch| patch.resolve(&present))
        .map_err(|problems| refused(&problems))?;
    if let Some(Some(directory)) = changes.get(&keys::backup::DIRECTORY)
        && let Err(rule) = allowed.permit(Path::new(&directory))
    {
        return Err(PrepareError::Set {
            given: keys::backup::DIRECTORY.row.key.to_owned(),
            rule,
        });
    }
    let mode = &keys::web::AUTH_MODE;
    let after = present.clone().apply(&changes);
    let missing = after.missing_for_mode();
    if !missing.is_empty() {
        return Err(refused(&missing));
    }
    let switches = after.get(mode) != present.get(mode);
    if switches {
        meta::take_guard(tx, "names").await?;
        if !mode_switch::purge(tx).await?.is_nothing() {
            return Err(PrepareError::Set {
                given: mode.row.key.to_owned(),
                rule:
                    "a change of the mode removes all users and groups; change it with \"agentyard auth switch\""
                        .to_owned(),
            });
        }
    }
    config::save(tx, master_key, &changes, None, by).await?;
    Ok(changes.0.keys().map(|&key| key.to_owned()).collect())
}

fn refused(problems: &[Problem]) -> PrepareError {
    let rules: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
    let keys: Vec<&str> = problems.iter().map(|p| p.key.as_str()).collect();
    PrepareError::Set {
        given: keys.join(", "),
        rule: rules.join("; "),
    }
}

/// Reads `key=value` pairs. A value is JSON where the key is not text, else text as it stands.
fn parse_sets(sets: &[String]) -> Result<Vec<(String, Value)>, PrepareError> {
    sets.iter()
        .map(|set| {
            let wrong = |key: &str, rule: &str| PrepareError::Set {
                given: key.to_owned(),
                rule: rule.to_owned(),
            };
            let (key, text) = set
                .split_once('=')
                .ok_or_else(|| wrong(set, "use KEY=VALUE"))?;
            let unknown = || {
                let guess = suggest::did_you_mean(&suggest::closest_keys(key));
                let rule = format!("unknown key{guess}; `agentyard config schema` lists the keys");
                wrong(key, &rule)
            };
            let def = find(key).ok_or_else(unknown)?;
            let value = def.value_of_text(text);
            let value = value.map_err(|problem| refused(&[problem]))?;
            parse_patch(&json!({ key: value.clone() })).map_err(|problems| refused(&problems))?;
            Ok((key.to_owned(), value))
        })
        .collect()
}

/// Prints a line on standard output, whose reader may have gone.
pub fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Prints facts on standard output in the format of the log.
pub fn say_facts(format: LogFormat, facts: &[(&str, &str)]) {
    match format {
        LogFormat::Text => facts
            .iter()
            .for_each(|(name, value)| say(&format!("{name}: {value}"))),
        LogFormat::Json => {
            let facts = facts.iter().map(|(name, value)| (*name, *value));
            say(&json!(facts.collect::<BTreeMap<_, _>>()).to_string());
        }
    }
}

/// Prints the first superadmin's password, once.
pub fn say_password(prepared: &Prepared, format: LogFormat) {
    if let First::Random(password) = &prepared.first {
        let password = password.expose_secret();
        let facts = [("username", FIRST_SUPERADMIN), ("password", password)];
        say_facts(format, &facts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_file_is_read_without_its_line_break() {
        use std::os::unix::fs::PermissionsExt;
        let open = "every user of the machine can read it";
        for (text, mode, expected) in [
            ("long-enough-1\r\n", 0o600, Ok("long-enough-1")),
            ("long-enough-1", 0o640, Ok("long-enough-1")),
            (" long enough 1 \n", 0o600, Ok(" long enough 1 ")),
            ("long-enough-1", 0o644, Err(open)),
            ("short\n", 0o600, Err("password")),
            ("", 0o600, Err("password")),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read_password(file.path());
            match (read, expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read.expose_secret(), expected),
                (Err(error), Err(expected)) => {
                    let said = error.to_string();
                    assert!(said.contains(expected), "{said}");
                    assert!(text.is_empty() || !said.contains(text), "{said}");
                }
                (read, _) => panic!("{text:?}: {:?}", read.map(|_| "read")),
            }
        }
    }

    #[test]
    fn password_file_that_is_too_long_or_missing_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        assert!(read_password(&path).is_err());
        std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).unwrap();
        assert!(read_password(&path).is_err());
    }

    #[tokio::test]
    async fn password_file_is_read_at_the_first_start_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "long-enough-1\n").unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
        let common = crate::settings::CommonArgs {
            data_dir: Some(dir.path().to_owned()),
            ..Default::default()
        };
        let init = crate::settings::InitArgs {
            adapter: Some("echo".to_owned()),
            admin_password_file: Some(file.path().to_owned()),
            ..Default::default()
        };
        let settings = Settings::resolve(&common, &init, &Default::default()).unwrap();
        let prepared = prepare(&settings).await.unwrap();
        assert!(matches!(prepared.first, First::Given));
        prepared.db.close().await;
        file.close().unwrap();
        let prepared = prepare(&settings).await.unwrap();
        assert!(matches!(prepared.first, First::Existing));
        prepared.db.close().await;
    }

    async fn start(dir: &tempfile::TempDir, set: &[&str]) -> Result<(), PrepareError> {
        let common = crate::settings::CommonArgs {
            data_dir: Some(dir.path().to_owned()),
            ..Default::default()
        };
        let init = crate::settings::InitArgs {
            set: set.iter().map(|&set| set.to_owned()).collect(),
            adapter: Some("echo".to_owned()),
            ..Default::default()
        };
        let settings = Settings::resolve(&common, &init, &Default::default()).unwrap();
        prepare(&settings).await?.db.close().await;
        Ok(())
    }

    #[tokio::test]
    async fn lost_or_other_master_key_is_refused_with_its_remedy() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        start(&dir, &[]).await.unwrap();
        let file = dir.path().join(MASTER_KEY_FILE);
        std::fs::remove_file(&file).unwrap();
        let lost = start(&dir, &[]).await.unwrap_err();
        start(&other, &[]).await.unwrap();
        std::fs::copy(other.path().join(MASTER_KEY_FILE), &file).unwrap();
        let wrong = start(&dir, &[]).await.unwrap_err();
        for (error, says) in [(lost, "does not exist"), (wrong, "another master key")] {
            assert!(error.is_refusal(), "{error:?}");
            let error = error.to_string();
            let parts = [says, &*file.to_string_lossy(), "from its own backup"];
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn a_data_directory_that_others_own_or_may_write_in_is_refused() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let common = crate::settings::CommonArgs {
            data_dir: Some(dir.path().to_owned()),
            ..Default::default()
        };
        let settings = Settings::resolve(&common, &Default::default(), &Default::default());
        let settings = settings.unwrap();
        data_dir(&settings).unwrap();
        let refused = |reason: &str| {
            let error = data_dir(&settings).unwrap_err();
            assert!(error.is_refusal(), "{error:?}");
            assert!(error.to_string().contains(reason), "{error}");
        };
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        refused("its mode is 0777");
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        chown(dir.path(), Some(12_345), None)
            .expect("this test gives a directory away: run it as root");
        refused("it belongs to user 12345");
    }

    /// The names of all files and directories in a directory.
    fn tree(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
        let mut all = Vec::new();
        let mut open = vec![directory.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    open.push(path.clone());
                }
                all.push(path);
            }
        }
        all.sort();
        all
    }

    #[test]
    fn refused_data_directory_stays_as_it_was() {
        use std::os::unix::fs::PermissionsExt;
        type Case = (
            &'static str,
            fn(&std::path::Path),
            &'static [&'static str],
            &'static str,
        );
        let cases: [Case; 7] = [
            (
                "not created by Agentyard",
                |dir| {
                    std::fs::create_dir(dir.join("users")).unwrap();
                    std::fs::write(dir.join("users/letter"), "mine").unwrap();
                },
                &[],
                "echo",
            ),
            (
                "database is missing",
                |dir| {
                    std::fs::create_dir(dir.join("archive")).unwrap();
                    std::fs::write(dir.join("archive/.agentyard"), "{}").unwrap();
                },
                &[],
                "echo",
            ),
            (
                "database is missing",
                |dir| {
                    std::fs::create_dir(dir.join("users")).unwrap();
                    std::fs::write(dir.join("users/.agentyard"), "{}").unwrap();
                    std::fs::write(dir.join("agentyard.db"), "").unwrap();
                },
                &[],
                "echo",
            ),
            (
                "not a directory",
                |dir| std::os::unix::fs::symlink("/nowhere", dir.join("archive")).unwrap(),
                &[],
                "echo",
            ),
            (
                "its mode is 0755",
                |dir| {
                    let skills = dir.join("skills");
                    std::fs::create_dir(&skills).unwrap();
                    std::fs::set_permissions(skills, PermissionsExt::from_mode(0o755)).unwrap();
                },
                &[],
                "echo",
            ),
            ("unknown key", |_| {}, &["no.such=1"], "echo"),
            ("--adapter", |_| {}, &[], "/nowhere"),
        ];
        for (reason, set_up, set, adapter) in cases {
            let dir = tempfile::tempdir().unwrap();
            let common = crate::settings::CommonArgs {
                data_dir: Some(dir.path().to_owned()),
                ..Default::default()
            };
            let init = crate::settings::InitArgs {
                set: set.iter().map(|&set| set.to_owned()).collect(),
                adapter: Some(adapter.to_owned()),
                ..Default::default()
            };
            let settings = Settings::resolve(&common, &init, &Default::default()).unwrap();
            set_up(dir.path());
            let before = tree(dir.path());
            let error = data_dir(&settings).unwrap_err();
            assert!(error.is_refusal(), "{error:?}");
            assert!(error.to_string().contains(reason), "{error}");
            assert_eq!(tree(dir.path()), before, "{reason}");
        }
    }

    #[test]
    fn directory_of_the_system_is_refused_before_it_exists() {
        for directory in ["/", "/..", "/etc", "/home/nobody-at-all"] {
            let common = crate::settings::CommonArgs {
                data_dir: Some(directory.into()),
                ..Default::default()
            };
            let settings = Settings::resolve(&common, &Default::default(), &Default::default());
            let settings = settings.unwrap();
            let error = data_dir(&settings).unwrap_err();
            assert!(error.is_refusal(), "{directory}: {error:?}");
            assert!(matches!(error, PrepareError::Home(_)), "{error}");
        }
        assert!(!std::path::Path::new("/home/nobody-at-all").exists());
    }

    #[tokio::test]
    async fn a_set_of_a_value_that_is_not_available_yet_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = start(&dir, &[r#"mcp.policy={"browser":{"mode":"ask"}}"#]).await;
        let error = error.unwrap_err();
        assert!(error.is_refusal());
        let said = "--set mcp.policy: mcp.policy: browser.mode: ask is not available yet; use off, read-only or auto";
        assert_eq!(error.to_string(), said);
    }

    #[tokio::test]
    async fn set_of_a_backup_directory_that_is_not_allowed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = start(&dir, &["backup.directory=/mnt/backup"]).await;
        let error = error.unwrap_err();
        assert!(error.is_refusal());
        let said = "--set backup.directory: /mnt/backup is in no directory that the server allows";
        assert!(error.to_string().starts_with(said), "{error}");
    }

    #[tokio::test]
    async fn a_set_changes_the_mode_only_while_nobody_is_removed_by_it() {
        let dir = tempfile::tempdir().unwrap();
        let ldap = [
            "web.auth_mode=ldap",
            "ldap.host=dc.example",
            "ldap.base_dn=dc=x",
        ];
        let error = start(&dir, &ldap[..2]).await.unwrap_err();
        let said = "--set ldap.base_dn: ldap.base_dn must be set while web.auth_mode is ldap";
        assert_eq!(error.to_string(), said);
        start(&dir, &[]).await.unwrap();
        let db = Db::open(schema::db::Backend::Sqlite(dir.path().join("agentyard.db")))
            .await
            .unwrap();
        let template = user::Template {
            image_ref: "echo:1".to_owned(),
            desired: schema::container::Desired::Running,
        };
        let alice = template.new_user(&"alice".parse().unwrap(), user::Source::Local, None);
        let mut tx = db.begin().await.unwrap();
        user::create(&mut tx, &alice, SystemClock.now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        db.close().await;
        let error = start(&dir, &ldap).await.unwrap_err();
        assert!(error.to_string().contains("auth switch"), "{error}");
        let empty = tempfile::tempdir().unwrap();
        start(&empty, &ldap).await.unwrap();
    }

    #[tokio::test]
    async fn l72_a_set_moves_no_stored_password_to_another_registry() {
        let dir = tempfile::tempdir().unwrap();
        let password = "image.registry_password=hunter2";
        start(&dir, &[password]).await.unwrap();
        let error = start(&dir, &["image.name=evil.example/agent"]).await;
        let error = error.unwrap_err();
        let said = error.to_string();
        assert!(error.is_refusal() && !said.contains("hunter2"), "{said}");
        let begin = "--set image.registry_password: ";
        assert!(said.starts_with(begin), "{said}");
        // Another repository of the same registry.
        start(&dir, &["image.name=docker.io/team/agent"])
            .await
            .unwrap();
        // Both at once, in any order.
        let dir = tempfile::tempdir().unwrap();
        let both = [password, "image.name=registry.example/agent"];
        start(&dir, &both).await.unwrap();
    }

    #[test]
    fn sets_are_read_by_the_type_of_their_key() {
        let parse = |text: &str| parse_sets(&[text.to_owned()]);
        assert_eq!(parse("image.tag=1").unwrap()[0].1, json!("1"));
        assert_eq!(
            parse("container.memory_limit_mb=256").unwrap()[0].1,
            json!(256)
        );
        assert_eq!(
            parse("container.autostart=false").unwrap()[0].1,
            json!(false)
        );
        assert_eq!(
            parse("image.registry_password=0123").unwrap()[0].1,
            json!("0123")
        );
        for bad in ["image.tag", "no.such=1", "container.memory_limit_mb=much"] {
            let error = parse(bad).unwrap_err();
            assert!(error.is_refusal());
            assert!(error.to_string().starts_with("--set"), "{error}");
        }
    }
}
