//! `init`, `reset-password`, `status`, and what `serve` refuses.

use crate::support::client::Target;
use crate::support::{Client, Stage, eventually, seconds};

/// The value of a printed line `name: value`, which must be there once.
fn value<'a>(text: &'a str, name: &str) -> &'a str {
    let prefix = format!("{name}: ");
    let found: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .collect();
    assert_eq!(found.len(), 1, "{name}: once in {text}");
    found[0]
}

#[tokio::test]
async fn init_prints_the_password_once_and_serve_takes_it() {
    let stage = Stage::new();
    let first = stage.command().run(&["init"]).await;
    assert!(first.status.success(), "{}", first.stderr);
    assert_eq!(value(&first.stdout, "username"), "admin");
    let password = value(&first.stdout, "password").to_owned();
    assert!(password.len() >= 12, "{password}");
    for file in ["agentyard.db", "master.key"] {
        assert!(stage.data().join(file).exists(), "{file}");
    }
    let again = stage.command().run(&["init"]).await;
    assert!(again.status.success(), "{}", again.stderr);
    assert!(!again.stdout.contains("password: "), "{}", again.stdout);

    let service = stage.alone().spawn();
    let service = service.after_init(&password).await;
    assert_eq!(service.printed("password"), None);
    service.admin().await;
    assert!(!service.log().contains(&password), "never logged");
}

#[tokio::test]
async fn a_first_start_whose_port_is_taken_loses_no_password() {
    let stage = Stage::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let refused = stage
        .alone()
        .args(&["--listen", &listen])
        .run(&["serve"])
        .await;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains(&listen), "{}", refused.stderr);
    assert_eq!(refused.stdout, "");
    let init = stage.command().run(&["init"]).await;
    assert!(init.status.success(), "{}", init.stderr);
    let password = value(&init.stdout, "password");
    let service = stage.alone().spawn().after_init(password).await;
    service.admin().await;
}

#[tokio::test]
async fn key_and_database_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    stage.command().run(&["init"]).await;
    for file in ["agentyard.db", "master.key"] {
        let mode = std::fs::metadata(stage.data().join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file}: {mode:o}");
    }
}

#[tokio::test]
async fn second_serve_on_the_same_data_is_refused_with_a_sentence() {
    let stage = Stage::new();
    let first = stage.alone().start().await;
    let admin = first.admin().await;
    let second = stage
        .alone()
        .args(&["--listen", "127.0.0.1:0"])
        .run(&["serve"])
        .await;
    assert!(!second.status.success());
    assert!(!second.stdout.contains("address: "), "{}", second.stdout);
    assert!(
        second.stderr.contains("data directory") || second.stderr.contains("already"),
        "{}",
        second.stderr
    );
    assert!(!second.stderr.contains("panicked"), "{}", second.stderr);
    // The first one did not notice.
    admin.get("/api/user/info").await.expect(200);
    let status = stage.command().run(&["status"]).await;
    assert!(status.stdout.contains("container"), "{}", status.stderr);
}

#[tokio::test]
async fn l7_password_reset_without_a_server_takes_effect_and_ends_sessions() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let old = service.admin().await;
    service.kill9().await;

    let reset = stage
        .command()
        .run(&["reset-password", "admin", "--random"])
        .await;
    assert!(reset.status.success(), "{}", reset.stderr);
    let password = value(&reset.stdout, "password").to_owned();

    let service = stage.alone().start().await;
    let answer = old.at(&service.client()).get("/api/user/info").await;
    answer.refused(401, "not_signed_in");
    let mut browser = service.client();
    browser.sign_in("admin", stage.password()).await.expect(401);
    service.client().signed_in("admin", &password).await;
}

#[tokio::test]
async fn a_password_is_typed_twice_in_a_terminal_and_not_shown() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let command = stage.command();
    let reset = async |typed: &[&str]| {
        command
            .run_in_terminal(&["reset-password", "admin"], typed)
            .await
    };
    let differ = reset(&["a new password", "a new passwort"]).await;
    assert_eq!(differ.status.code(), Some(1));
    assert!(
        differ.stdout.contains("the passwords differ"),
        "{}",
        differ.stdout
    );
    let again = service.admin().await.get("/api/user/info").await;
    again.expect(200);

    let changed = reset(&["a new password", "a new password"]).await;
    assert!(changed.status.success(), "{}", changed.stdout);
    assert_eq!(
        changed.stdout,
        "New password: \nRepeat: \npassword of admin changed; its sessions have ended\n"
    );
    service.client().signed_in("admin", "a new password").await;
    // Without a terminal nobody is asked.
    let none = stage.command().run(&["reset-password", "admin"]).await;
    assert_eq!(none.status.code(), Some(1));
    assert!(none.stderr.contains("use --random"), "{}", none.stderr);
}

#[tokio::test]
async fn l7_password_reset_beside_a_running_server_takes_effect_at_once() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    let form = [("username", "bob"), ("wait", "0")];
    let created = admin.post("/api/admin/users/create", &form).await;
    let body = created.pending();
    let bob = service
        .client()
        .signed_in("bob", body["password"].as_str().unwrap())
        .await;

    for (name, session) in [("bob", &bob), ("admin", &admin)] {
        let reset = stage
            .command()
            .run(&["reset-password", name, "--random"])
            .await;
        assert!(reset.status.success(), "{}", reset.stderr);
        let password = value(&reset.stdout, "password");
        let answer = session.get("/api/user/info").await;
        answer.refused(401, "not_signed_in");
        service.client().signed_in(name, password).await;
    }
    let nobody = stage
        .command()
        .run(&["reset-password", "nobody", "--random"])
        .await;
    assert!(!nobody.status.success());
    assert!(nobody.stderr.contains("nobody"), "{}", nobody.stderr);
    assert!(!nobody.stdout.contains("password: "), "{}", nobody.stdout);
}

#[tokio::test]
async fn status_speaks_of_a_running_server_and_says_when_there_is_none() {
    let stage = Stage::new();
    let none = stage.command().run(&["status"]).await;
    assert_eq!(none.status.code(), Some(69), "{}", none.stderr);
    assert!(none.stderr.contains("agentyard serve"), "{}", none.stderr);
    assert_eq!(none.stdout, "");

    let service = stage.alone().start().await;
    let status = stage.command().run(&["status"]).await;
    // It answers, and says by its code that something is missing: the engine.
    assert_eq!(status.status.code(), Some(69), "{}", status.stderr);
    for word in ["engine", "container", "user"] {
        assert!(status.stdout.contains(word), "{word}: {}", status.stdout);
    }
    let socket = stage.data().join("admin.sock");
    let by_socket = stage
        .command()
        .arg("--admin-socket")
        .arg(socket.display().to_string())
        .run(&["status"])
        .await;
    assert_eq!(by_socket.status.code(), Some(69), "{}", by_socket.stderr);
    assert_eq!(
        by_socket.stdout.lines().count(),
        status.stdout.lines().count()
    );

    // The socket is the administrator's, without cookie or token.
    let operator = Client::new(Target::Unix(socket));
    operator.get("/api/admin/users").await.expect(200);
    drop(service);
}

#[tokio::test]
async fn l3_unreadable_database_is_refused_and_stays_as_it_was() {
    let stage = Stage::new();
    std::fs::create_dir(stage.data()).unwrap();
    let file = stage.data().join("agentyard.db");
    let garbage = b"this is no database".repeat(1000);
    std::fs::write(&file, &garbage).unwrap();
    for subcommand in [
        ["serve", "--listen=127.0.0.1:0"].as_slice(),
        &["init"],
        &["reset-password", "admin", "--random"],
    ] {
        let refused = stage.command().run(subcommand).await;
        assert_eq!(
            refused.status.code(),
            Some(78),
            "{subcommand:?}: {}",
            refused.stderr
        );
        assert!(!refused.stderr.is_empty());
        assert_eq!(refused.stdout, "");
        assert!(std::fs::read(&file).unwrap() == garbage, "{subcommand:?}");
    }
}

#[tokio::test]
async fn what_is_not_ours_in_the_data_directory_refuses_the_start() {
    for what in ["users", "archive", "users/.owners", "admin.sock"] {
        let stage = Stage::new();
        let elsewhere = stage.data().with_file_name("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let started = stage.command().start().await;
        drop(started);
        let path = stage.data().join(what);
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path).unwrap(),
            Ok(_) => std::fs::remove_file(&path).unwrap(),
            Err(_) => {}
        }
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        let refused = stage
            .command()
            .run(&["serve", "--listen=127.0.0.1:0"])
            .await;
        assert_eq!(
            refused.status.code(),
            Some(78),
            "{what}: {}",
            refused.stderr
        );
        let name = what.rsplit('/').next().unwrap();
        assert!(refused.stderr.contains(name), "{what}: {}", refused.stderr);
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "{what}");
    }
}

#[tokio::test]
async fn refused_start_leaves_the_directory_as_it_was() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.data().join("users/someone")).unwrap();
    for subcommand in [["serve", "--listen=127.0.0.1:0"].as_slice(), &["init"]] {
        let refused = stage.command().run(subcommand).await;
        assert_eq!(refused.status.code(), Some(78), "{}", refused.stderr);
        let left: Vec<_> = std::fs::read_dir(stage.data()).unwrap().collect();
        assert_eq!(left.len(), 1, "{subcommand:?}: {left:?}");
    }
}

#[tokio::test]
async fn l3_truncated_database_is_refused_and_stays_as_it_was() {
    let stage = Stage::new();
    let init = stage.command().run(&["init"]).await;
    assert!(init.status.success(), "{}", init.stderr);
    let file = stage.data().join("agentyard.db");
    let whole = std::fs::read(&file).unwrap();
    assert!(whole.len() > 8192, "{}", whole.len());
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let cut = std::fs::read(&file).unwrap();
    let refused = stage
        .command()
        .run(&["serve", "--listen=127.0.0.1:0"])
        .await;
    assert_eq!(refused.status.code(), Some(78), "{}", refused.stderr);
    assert!(std::fs::read(&file).unwrap() == cut);
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused_by_name() {
    let stage = Stage::new();
    for (arguments, word) in [
        (
            ["--set", "container.memory_limit_mb=much"],
            "container.memory_limit_mb",
        ),
        (["--set", "no.such.key=1"], "no.such.key"),
        (["--set", "nonsense"], "nonsense"),
        (["--listen", "nowhere"], "nowhere"),
        (["--docker-host", "ftp://x"], "ftp"),
    ] {
        let refused = stage.command().args(&arguments).run(&["serve"]).await;
        assert!(!refused.status.success(), "{arguments:?}");
        assert!(refused.stderr.contains(word), "{word}: {}", refused.stderr);
        assert!(!refused.stderr.contains("panicked"), "{}", refused.stderr);
    }
}

#[tokio::test]
async fn first_values_do_not_overwrite_what_was_saved() {
    let stage = Stage::new();
    let service = stage
        .alone()
        .set("container.pids_limit", "99")
        .start()
        .await;
    let admin = service.admin().await;
    let config = admin.get("/api/config").await.expect(200);
    assert_eq!(config["container"]["pids_limit"], 99);
    let form = [("config", r#"{"container":{"pids_limit":77}}"#)];
    admin.post("/api/config", &form).await.expect(200);
    service.kill9().await;
    let service = stage
        .alone()
        .set("container.pids_limit", "99")
        .start()
        .await;
    let admin = admin.at(&service.client());
    let config = admin.get("/api/config").await.expect(200);
    assert_eq!(config["container"]["pids_limit"], 77);
}

#[tokio::test]
async fn without_an_engine_the_service_says_so_and_goes_on() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    let readiness = service.client().get("/readyz").await;
    assert_eq!(readiness.status, 503, "{}", readiness.text());
    let form = [("username", "bob"), ("wait", "1")];
    let created = admin.post("/api/admin/users/create", &form).await;
    created.pending();
    admin.reason("bob", "EngineUnavailable", seconds(10)).await;
    // The answer waits for no engine, and a home needs none.
    let home = stage.data().join("users/bob");
    let made = eventually("bob has a home", seconds(10), async || {
        home.is_dir().then_some(()).ok_or("none yet".to_owned())
    });
    made.await;
    let form = [("username", "bob"), ("wait", "0")];
    let stop = admin.post("/api/admin/container/stop", &form).await;
    assert!(stop.status.is_success(), "{}", stop.text());
}
