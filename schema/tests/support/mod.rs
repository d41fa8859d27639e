//! A fresh database for each test: a SQLite file, or a database of its own on a real PostgreSQL.

pub mod skills;

use schema::db::{Backend, Db, fixture};
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
    Yard {
        db: fixture::open_sqlite(dir.path()).await.unwrap(),
        key: key(&dir),
        backend: Backend::Sqlite(fixture::sqlite_path(dir.path())),
        dir,
    }
}

pub async fn postgres() -> Yard {
    let url = std::env::var("AGENTYARD_TEST_POSTGRES_URL").expect(
        "no PostgreSQL for this test: start it with `make services-up` and run the tests with `make run-tests FILTER=…`",
    );
    let name = format!("t_{}", schema::ids::Uid::random());
    let server = url::Url::parse(&url).unwrap();
    let template = postgres_template(&server).await;
    run_on(
        &server,
        format!("CREATE DATABASE {name} TEMPLATE {template}"),
    )
    .await;
    let dir = tempfile::tempdir().unwrap();
    let backend = Backend::Postgres(database_url(&server, &name));
    Yard {
        db: Db::open(backend.clone()).await.unwrap(),
        key: key(&dir),
        dir,
        backend,
    }
}

fn database_url(server: &url::Url, name: &str) -> String {
    let mut url = server.clone();
    url.set_path(name);
    url.into()
}

async fn run_on(server: &url::Url, statement: String) {
    let mut connection = sqlx::PgConnection::connect(server.as_str()).await.unwrap();
    let ran = sqlx::query(AssertSqlSafe(statement)).execute(&mut connection);
    ran.await.unwrap();
    connection.close().await.unwrap();
}

/// Name of a migrated database, made by the first test that needs it.
async fn postgres_template(server: &url::Url) -> String {
    let name = format!("template_{}", fixture::migrations_digest());
    let mut guard = sqlx::PgConnection::connect(server.as_str()).await.unwrap();
    let locked = sqlx::query("SELECT pg_advisory_lock(20240612)").execute(&mut guard);
    locked.await.unwrap();
    let exists = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)");
    let exists: bool = exists.bind(&name).fetch_one(&mut guard).await.unwrap();
    if !exists {
        let new = format!("new_{}", schema::ids::Uid::random());
        run_on(server, format!("CREATE DATABASE {new}")).await;
        let db = Db::open(Backend::Postgres(database_url(server, &new))).await;
        db.unwrap().close().await;
        run_on(server, format!("ALTER DATABASE {new} RENAME TO {name}")).await;
    }
    guard.close().await.unwrap();
    name
}

/// Runs each named test on both databases. The PostgreSQL half needs the test services.
macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(crate::support::sqlite().await).await; })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(crate::support::postgres().await).await; })+
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
