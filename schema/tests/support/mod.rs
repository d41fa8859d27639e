//! A fresh database for each test: a SQLite file, or a database of its own on a real PostgreSQL.

use schema::db::{Backend, Db};
use schema::secrets::MasterKey;
use sqlx::{AssertSqlSafe, Connection};

/// What a test of the schema works with.
#[allow(dead_code)] // Not every file of tests needs every part.
pub struct Yard {
    pub db: Db,
    pub key: MasterKey,
    pub dir: tempfile::TempDir,
    pub backend: Backend,
}

fn key(dir: &tempfile::TempDir) -> MasterKey {
    MasterKey::load_or_create(dir.path()).unwrap()
}

pub async fn sqlite() -> Yard {
    let dir = tempfile::tempdir().unwrap();
    let backend = Backend::Sqlite(dir.path().join("agentyard.db"));
    Yard {
        db: Db::open(backend.clone()).await.unwrap(),
        key: key(&dir),
        dir,
        backend,
    }
}

pub async fn postgres() -> Yard {
    let url = std::env::var("AGENTYARD_TEST_POSTGRES_URL").expect(
        "no PostgreSQL for this test: start it with `make services-up` and run under `tests/services/in-netns`",
    );
    let name = format!("t_{}", schema::ids::Uid::random());
    sqlx::any::install_default_drivers();
    let mut admin = sqlx::AnyConnection::connect(&url).await.unwrap();
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .execute(&mut admin)
        .await
        .unwrap();
    let mut url = url::Url::parse(&url).unwrap();
    url.set_path(&name);
    let dir = tempfile::tempdir().unwrap();
    let backend = Backend::Postgres(url.to_string());
    Yard {
        db: Db::open(backend.clone()).await.unwrap(),
        key: key(&dir),
        dir,
        backend,
    }
}

/// Runs each named test on both databases. The PostgreSQL half needs the test services.
macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(super::support::sqlite().await).await; })+
        }
        mod engine_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(super::support::postgres().await).await; })+
        }
    };
}
pub(crate) use on_both_databases;

/// Writes the hash list of a changed package anew.
#[allow(dead_code)]
pub fn repack(files: &mut std::collections::BTreeMap<String, String>) {
    use sha2::{Digest, Sha256};
    files.remove("hash");
    let line = |(path, text): (&String, &String)| {
        format!("{}  {path}\n", hex::encode(Sha256::digest(text)))
    };
    let list = files.iter().map(line).collect();
    files.insert("hash".to_owned(), list);
}

/// Creates a user with everything that belongs to one.
#[allow(dead_code)]
pub async fn user(yard: &Yard, name: &str) -> schema::ids::Uid {
    use schema::user::{self, NewUser, Source};
    let uid = schema::ids::Uid::random();
    let new = NewUser {
        uid: uid.clone(),
        name: name.parse().unwrap(),
        source: Source::Local,
        password_hash: None,
        image_ref: "docker.io/library/agent:1".to_owned(),
        desired: schema::container::Desired::Running,
    };
    let mut tx = yard.db.begin().await.unwrap();
    let now = schema::ids::Timestamp::from_secs(1_778_500_000);
    user::create(&mut tx, &new, now).await.unwrap();
    tx.commit().await.unwrap();
    uid
}
