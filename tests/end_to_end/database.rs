//! PostgreSQL goes away while two servers work on it: what needs it is told so at once, everything else goes on,
//! nothing that was accepted is lost, and nobody has to restart anything.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::support::own_postgres::OwnPostgres;
use crate::support::{Client, PATIENCE, Service, Stage, eventually, seconds, until};

/// No request takes longer, whatever happens.
const LONGEST: Duration = seconds(5);
/// A refusal for want of the database takes no longer.
const REFUSED: Duration = seconds(3);
/// Both servers serve again within this time.
const BACK: Duration = seconds(2);

/// Writes that are under way all the time at one server.
struct Traffic {
    goes_on: Arc<AtomicBool>,
    tasks: JoinSet<(Vec<u64>, u64)>,
}

impl Traffic {
    /// Each write is another retention, of `first`, `first + 2`, … hours.
    fn begin(clients: [Client; 2]) -> Self {
        let goes_on = Arc::new(AtomicBool::new(true));
        let mut tasks = JoinSet::new();
        for (first, client) in clients.into_iter().enumerate() {
            let going = Arc::clone(&goes_on);
            tasks.spawn(async move {
                let (mut accepted, mut refused) = (Vec::new(), 0);
                for n in 0.. {
                    if !going.load(Ordering::Relaxed) {
                        break;
                    }
                    let hours = 24_000 + n * 2 + first as u64;
                    let config = format!(r#"{{"audit.retention": "{hours}h"}}"#);
                    match write(&client, &config).await {
                        true => accepted.push(hours),
                        false => refused += 1,
                    }
                    sleep(Duration::from_millis(50)).await;
                }
                (accepted, refused)
            });
        }
        Self { goes_on, tasks }
    }

    /// Ends it; gives what was accepted, and how much was refused.
    async fn end(mut self) -> (BTreeSet<u64>, u64) {
        self.goes_on.store(false, Ordering::Relaxed);
        let (mut accepted, mut refused) = (BTreeSet::new(), 0);
        while let Some(one) = self.tasks.join_next().await {
            let (some, not) = one.unwrap();
            accepted.extend(some);
            refused += not;
        }
        (accepted, refused)
    }
}

/// Whether it was accepted; if not, the database is the reason, and it was said in time.
async fn write(client: &Client, config: &str) -> bool {
    let began = Instant::now();
    let form = [("config", config)];
    let answer = client
        .try_post("/api/config", &form)
        .await
        .expect("an answer");
    let took = began.elapsed();
    assert!(took < LONGEST, "{took:?}");
    // 202: it is saved, but the database went before anybody could see what follows from it.
    if matches!(answer.status.as_u16(), 200 | 202) {
        return true;
    }
    is_refused(&answer.refused(503, "database_unavailable"), took);
    assert_eq!(answer.headers["retry-after"], "2");
    false
}

fn is_refused(body: &Value, took: Duration) {
    assert!(took < REFUSED, "{took:?}: {body}");
    let text = body["error"].as_str().unwrap();
    assert!(text.contains("the database is not available"), "{body}");
}

/// All retentions that were ever saved, in hours.
async fn saved(client: &Client) -> BTreeSet<u64> {
    let mut saved = BTreeSet::new();
    for page in 1.. {
        let path = format!("/api/admin/config/history?page_size=200&page={page}");
        let body = client.get(&path).await.expect(200);
        let text = body.to_string();
        for part in text.split("\"new\":").skip(1) {
            let hours = part
                .split('"')
                .find_map(|word| word.strip_suffix('h')?.parse::<u64>().ok());
            saved.extend(hours);
        }
        if page >= body["total_pages"].as_u64().unwrap() {
            return saved;
        }
    }
    saved
}

/// How long it takes until both answer from the database.
async fn both_serve(clients: &[Client; 2]) -> Duration {
    let began = Instant::now();
    for client in clients {
        eventually("it serves", seconds(10), async || {
            match client.try_get("/api/admin/users").await {
                Ok(answer) if answer.status == 200 => Ok(()),
                Ok(answer) => Err(answer.text()),
                Err(error) => Err(error),
            }
        })
        .await;
    }
    began.elapsed()
}

/// Reads need it as well, and are told so in time; what does not need it goes on.
async fn is_away(clients: &[Client; 2]) {
    for client in clients {
        eventually("it is known", REFUSED, async || {
            let began = Instant::now();
            let answer = client.get("/api/admin/users").await;
            let took = began.elapsed();
            assert!(took < REFUSED, "{took:?}");
            match answer.status.as_u16() {
                503 => {
                    is_refused(&answer.json(), took);
                    Ok(())
                }
                other => Err(other.to_string()),
            }
        })
        .await;
        let began = Instant::now();
        client.get("/api/health").await.expect(200);
        let (status, text) = client.readiness().await;
        assert!(began.elapsed() < seconds(1), "{:?}", began.elapsed());
        assert_eq!(status, 503, "{text}");
        assert!(text.contains("database: unavailable"), "{text}");
    }
}

async fn leaders(clients: &[Client; 2]) -> usize {
    let mut leading = 0;
    for client in clients {
        let body = client.get("/api/admin/reconcile").await.expect(200);
        leading += usize::from(body["leader"]["leading"] == true);
    }
    leading
}

struct Replicas {
    clients: [Client; 2],
    // In the order in which they are to end.
    _services: [Service; 2],
    postgres: OwnPostgres,
    stage: Stage,
}

async fn replicas() -> Replicas {
    let stage = Stage::new();
    let postgres = OwnPostgres::start_new();
    let launch = |name: &str| {
        let socket = stage.path().join(format!("{name}.sock"));
        stage
            .alone()
            .arg("--database-url")
            .arg(postgres.url())
            .arg("--admin-socket")
            .arg(socket.display().to_string())
    };
    let first = launch("first").start().await;
    let admin = first.admin().await;
    until("the first leads", seconds(30), async || {
        let body = admin.get("/api/admin/reconcile").await.expect(200);
        body["leader"]["leading"] == true
    })
    .await;
    let second = launch("second").start().await;
    let at_second = admin.at(&second.client());
    Replicas {
        stage,
        postgres,
        _services: [first, second],
        clients: [admin, at_second],
    }
}

impl Replicas {
    /// The database goes away and comes back while both write.
    async fn survive(
        &self,
        leave: impl FnOnce(&OwnPostgres),
        away: Duration,
        back: impl FnOnce(&OwnPostgres),
    ) {
        let postgres = &self.postgres;
        let mut stream = self.clients[1].stream("/api/admin/watch").await;
        let traffic = Traffic::begin(self.clients.clone());
        sleep(seconds(1)).await;
        leave(postgres);
        let began = Instant::now();
        is_away(&self.clients).await;
        sleep(away.saturating_sub(began.elapsed())).await;
        is_away(&self.clients).await;
        back(postgres);
        let took = both_serve(&self.clients).await;
        assert!(took < BACK, "{took:?}");
        sleep(seconds(1)).await;
        let (accepted, refused) = traffic.end().await;
        assert!(refused > 0 && accepted.len() > 10, "{refused}");
        let saved = saved(&self.clients[1]).await;
        let lost: Vec<_> = accepted.difference(&saved).collect();
        assert!(lost.is_empty(), "{lost:?}");
        // The stream has outlived it, and goes on.
        let name = format!(
            "after-{}",
            Instant::now().duration_since(began).as_nanos() % 1_000_000
        );
        let form = [("username", name.as_str()), ("wait", "0")];
        let created = self.clients[0].post("/api/admin/users/create", &form);
        created.await.pending();
        let mut heard = String::new();
        let reading = async {
            while !heard.contains(&name) {
                let piece = stream.next().await.expect("it goes on").unwrap();
                heard.push_str(std::str::from_utf8(&piece).unwrap());
            }
        };
        tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("the stream says so");
    }
}

#[tokio::test]
async fn engine_postgres_that_is_stopped_is_a_503_at_once_and_a_step_down_and_nothing_is_lost() {
    let replicas = replicas().await;
    let clients = &replicas.clients;
    // Longer than a lease.
    let stop = |postgres: &OwnPostgres| postgres.stop("fast");
    replicas
        .survive(stop, seconds(25), OwnPostgres::start)
        .await;
    until("one leads again", seconds(30), async || {
        leaders(clients).await == 1
    })
    .await;
    for (part, reason) in [
        ("database", "DatabaseUnavailable"),
        ("leadership", "LeaseLost"),
        ("database", "Recovered"),
    ] {
        eventually(reason, seconds(10), async || {
            let events = clients[0].events("service/agentyard").await;
            let told = |event: &Value| event["action"] == part && event["reason"] == reason;
            match events.iter().any(told) {
                true => Ok(()),
                false => Err(format!("{events:?}")),
            }
        })
        .await;
    }
    // It reconciles, too.
    let form = [("username", "zoe"), ("wait", "0")];
    let created = clients[1].post("/api/admin/users/create", &form).await;
    created.pending();
    let home = replicas.stage.data().join("users/zoe");
    let made = eventually("the directory is there", seconds(20), async || {
        if home.exists() {
            return Ok(());
        }
        Err(clients[0].object("user/zoe").await.to_string())
    });
    made.await;
}

#[tokio::test]
async fn engine_postgres_that_is_frozen_is_a_503_in_time_and_nothing_is_lost() {
    let replicas = replicas().await;
    replicas
        .survive(OwnPostgres::freeze, seconds(20), OwnPostgres::thaw)
        .await;
    until("one leads", seconds(30), async || {
        leaders(&replicas.clients).await == 1
    })
    .await;
}

#[tokio::test]
async fn engine_postgres_that_crashes_and_restarts_loses_nothing_that_was_accepted() {
    let replicas = replicas().await;
    let stop = |postgres: &OwnPostgres| postgres.stop("immediate");
    replicas.survive(stop, seconds(3), OwnPostgres::start).await;
    assert_eq!(leaders(&replicas.clients).await, 1, "within its lease");
}

/// Runs statements on a server.
async fn run(postgres: &OwnPostgres, statements: &'static [&'static str]) {
    use sqlx::Connection;
    let mut server = sqlx::PgConnection::connect(&postgres.url()).await.unwrap();
    for statement in statements {
        let done = sqlx::raw_sql(*statement).execute(&mut server).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    server.close().await.unwrap();
}

#[tokio::test]
async fn database_that_takes_no_changes_is_said_and_refused() {
    let postgres = OwnPostgres::start_new();
    let stage = Stage::new();
    let launch = || stage.alone().args(&["--database-url", &postgres.url()]);
    let service = launch().start().await;
    let admin = service.admin().await;
    let retention = |hours| format!(r#"{{"audit.retention": "{hours}h"}}"#);
    let save = async |hours: u32| {
        let config = retention(hours);
        admin.post("/api/config", &[("config", &*config)]).await
    };
    assert!(save(1000).await.status.is_success());
    let takes_changes = async |hours| {
        eventually("changes are saved again", seconds(20), async || {
            let saved = save(hours).await;
            let fine = saved.status.is_success();
            fine.then_some(()).ok_or(saved.text())
        })
        .await;
    };

    let read_only = [
        // All sessions at once.
        (
            &[
                "ALTER SYSTEM SET default_transaction_read_only = on",
                "SELECT pg_reload_conf()",
            ],
            &[
                "ALTER SYSTEM RESET default_transaction_read_only",
                "SELECT pg_reload_conf()",
            ],
        ),
        // Those that begin from now on; one of them is enough to notice it.
        (
            &[
                "ALTER DATABASE postgres SET default_transaction_read_only = on",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'postgres'",
            ],
            &[
                "SET default_transaction_read_only = off",
                "ALTER DATABASE postgres RESET default_transaction_read_only",
            ],
        ),
    ];
    for (hours, (close, open)) in (2000..).step_by(1000).zip(read_only) {
        run(&postgres, close).await;
        let (status, line) = admin.readiness_line("storage: degraded", seconds(20)).await;
        assert!(
            line.contains("changes are refused: the database is read-only"),
            "{status} {line}"
        );
        eventually("a change is refused", seconds(10), async || {
            let saved = save(hours).await.text();
            let refused = saved.contains("storage_failed");
            refused.then_some(()).ok_or(saved)
        })
        .await;
        admin.get("/api/config").await.expect(200);
        let other = Stage::new();
        let refused = other
            .command()
            .run(&[
                "serve",
                "--listen=127.0.0.1:0",
                "--database-url",
                &postgres.url(),
            ])
            .await;
        assert_eq!(refused.status.code(), Some(78), "{}", refused.stderr);
        assert!(refused.stderr.contains("read-only"), "{}", refused.stderr);
        run(&postgres, open).await;
        takes_changes(hours).await;
    }

    run(
        &postgres,
        &["DROP SCHEMA public CASCADE", "CREATE SCHEMA public"],
    )
    .await;
    let (status, line) = admin.readiness_line("storage: failed", seconds(20)).await;
    assert_eq!(status, 503, "{line}");
    assert!(line.contains("tables of the service are missing"), "{line}");
    save(9000).await.refused(503, "storage_failed");
    admin
        .get("/api/config")
        .await
        .refused(503, "storage_failed");
    // A restart would not bring them back, nor make new ones beside directories of users.
    for path in ["/healthz", "/api/health", "/healthz/"] {
        assert_eq!(admin.get(path).await.status, 200, "{path}");
    }
    drop(service);
    let url = postgres.url();
    for command in [&["serve", "--listen=127.0.0.1:0"][..], &["init"]] {
        let again = [command, &["--database-url", &url]].concat();
        let again = stage.command().run(&again).await;
        assert_eq!(
            again.status.code(),
            Some(78),
            "{command:?}: {}",
            again.stderr
        );
        let said = "whose database is missing; restore the database";
        assert!(again.stderr.contains(said), "{command:?}: {}", again.stderr);
    }
    run(&postgres, &[NO_TABLES]).await;
}

/// Fails when a table was made.
const NO_TABLES: &str = "DO $$ BEGIN IF EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = 'public') \
    THEN RAISE 'tables were made'; END IF; END $$";

#[tokio::test]
async fn pooler_that_keeps_no_sessions_is_refused() {
    let postgres = OwnPostgres::start_new();
    for (mode, accepted) in [("transaction", false), ("session", true)] {
        let pooler = postgres.pooler(mode);
        let stage = Stage::new();
        let init = stage
            .command()
            .run(&["init", "--database-url", &pooler.url()])
            .await;
        assert_eq!(init.status.success(), accepted, "{mode}: {}", init.stderr);
        if !accepted {
            assert_eq!(init.status.code(), Some(78), "{}", init.stderr);
            assert!(
                init.stderr.contains("pool_mode to session"),
                "{}",
                init.stderr
            );
        }
    }
}
