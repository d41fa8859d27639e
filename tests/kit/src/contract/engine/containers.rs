//! Containers: creating, starting, stopping, naming, removing.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{
    AgentNetwork, Bind, ContainerFiles, ContainerState, Containers, EngineError, Images,
    LABEL_OWNER, Limits, LogLimits,
};

use super::{Hand, Stage};

const GRACE: Duration = Duration::from_secs(5);

pub async fn the_engine_tells_its_version_and_size<S: Stage>(stage: &S) {
    let info = stage.engine().info().await.unwrap();
    assert_eq!(info.too_old, None, "{info:?}");
    assert!(!info.version.is_empty());
    assert!(info.cpus > 0 && info.memory_bytes > 0, "{info:?}");
    assert!(info.limits == Limits::ALL, "{info:?}");
}

pub async fn a_container_lives_from_creation_to_removal<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let name = stage.name("life");
    let id = stage.create("life", "u1").await;
    let created = stage.see(&name).await;
    assert_eq!(created.container.id, id);
    assert_eq!(created.container.name, name);
    assert_eq!(created.container.state, ContainerState::Created);
    assert_eq!((created.started_at, created.exit_code), (None, None));
    stage.expect_listed(&[created.container]).await;

    for _ in 0..2 {
        stage.start(&id).await;
    }
    let running = stage.see(&id).await;
    assert_eq!(running.container.state, ContainerState::Running);
    assert!(running.started_at.is_some());
    assert_eq!(running.exit_code, None);
    assert!(running.container.networks[stage.network()].is_some());
    stage.expect_listed(&[running.container]).await;

    // The agent installs its handler a moment after it was started.
    tokio::time::sleep(Duration::from_millis(500)).await;
    for _ in 0..2 {
        engine.stop(&id, GRACE).await.unwrap();
    }
    let stopped = stage.see(&id).await;
    assert_eq!(stopped.container.state, ContainerState::Exited);
    assert_eq!(stopped.exit_code, Some(0));
    assert!(stopped.finished_at >= stopped.started_at);
    stage.expect_listed(&[stopped.container]).await;

    stage.start(&id).await;
    assert_eq!(stage.see(&id).await.exit_code, None);
    for _ in 0..2 {
        engine.remove(&id).await.unwrap();
    }
    assert_eq!(engine.inspect(&id).await.unwrap(), None);
    assert_eq!(engine.inspect(&name).await.unwrap(), None);
    stage.expect_listed(&[]).await;
}

pub async fn l58_settings_are_read_back_as_they_were_given<S>(stage: &S)
where
    S: Stage<Engine: Images>,
{
    let engine = stage.engine();
    let mut wanted = stage.settings("u1");
    wanted.command = Some(vec!["/bin/echo-agent".to_owned(), "--debug".to_owned()]);
    wanted
        .environment
        .insert("TOKEN".to_owned(), "a=b c\"d".to_owned());
    wanted.hostname = Some("alice".to_owned());
    wanted.user = Some("1000:1001".to_owned());
    wanted.nano_cpus = 250_000_000;
    wanted.capabilities = vec!["CHOWN".to_owned(), "SETUID".to_owned()];
    wanted.log = LogLimits {
        max_size_mb: 2,
        max_files: 4,
    };
    wanted.binds.push(Bind {
        source: stage.home().display().to_string(),
        target: "/a-read-only-one".to_owned(),
        read_only: true,
    });
    wanted.binds.sort_by(|a, b| a.target.cmp(&b.target));
    wanted.image = engine.image("echo:1").await.unwrap().unwrap().id;
    let id = engine
        .create(&stage.name("settings"), &wanted)
        .await
        .unwrap();
    for round in ["created", "running", "stopped"] {
        match round {
            "running" => engine.start(&id).await.unwrap(),
            "stopped" => engine.stop(&id, Duration::ZERO).await.unwrap(),
            _ => {}
        }
        let seen = stage.see(&id).await;
        assert_eq!(seen.deviations, Vec::<&str>::new());
        let mut read = seen.settings;
        for (name, value) in &wanted.environment {
            assert_eq!(read.environment.get(name), Some(value), "{round}");
        }
        for (name, value) in &wanted.labels {
            assert_eq!(read.labels.get(name), Some(value), "{round}");
        }
        // The image's own are in there too.
        read.environment.clone_from(&wanted.environment);
        read.labels.clone_from(&wanted.labels);
        assert_eq!(read, wanted, "{round}");
    }
}

pub async fn l58_optional_settings_left_out_are_read_back_as_none<S>(stage: &S)
where
    S: Stage<Engine: Images>,
{
    let engine = stage.engine();
    let mut wanted = stage.settings("u1");
    wanted.image = engine.image("echo:1").await.unwrap().unwrap().id;
    wanted.user = None;
    wanted.binds.clear();
    wanted.memory_bytes = 0;
    wanted.pids_limit = 0;
    let id = engine
        .create(&stage.name("minimal"), &wanted)
        .await
        .unwrap();
    engine.start(&id).await.unwrap();
    let read = stage.see(&id).await.settings;
    assert_eq!(
        (read.memory_bytes, read.nano_cpus, read.pids_limit),
        (0, 0, 0)
    );
    assert_eq!(read.user, None);
    assert_eq!(read.binds, []);
    assert_eq!(read.capabilities, Vec::<String>::new());
    assert_eq!(read.network, stage.network());
    assert!(read.command.is_some(), "the image's own is in force");
}

pub async fn a_listing_shows_only_the_owners_containers_stopped_ones_included<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let one = stage.run("one", "u1").await;
    let two = stage.create("two", "u2").await;
    let next = stage.create("one.next", "u1").await;
    let mut foreign = stage.settings("u1");
    let other = format!("{}-other", stage.owner());
    foreign.labels.insert(LABEL_OWNER.to_owned(), other.clone());
    let foreign = engine
        .create(&stage.name("foreign"), &foreign)
        .await
        .unwrap();

    let ids = async |owner: &str, uid: Option<&str>| {
        let mut ids: Vec<_> = engine.list(owner, uid).await.unwrap();
        ids.sort_by(|a, b| a.name.cmp(&b.name));
        ids.into_iter().map(|c| c.id).collect::<Vec<_>>()
    };
    assert_eq!(
        ids(stage.owner(), None).await,
        [one.clone(), next.clone(), two.clone()]
    );
    assert_eq!(ids(stage.owner(), Some("u1")).await, [one, next]);
    assert_eq!(ids(stage.owner(), Some("u2")).await, [two]);
    assert_eq!(ids(stage.owner(), Some("u")).await, Vec::<String>::new());
    assert_eq!(ids(&other, None).await, std::slice::from_ref(&foreign));
    engine.remove(&foreign).await.unwrap();
}

pub async fn l30_a_taken_name_is_reported_and_its_bearer_left_alone<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let id = stage.run("taken", "u1").await;
    let again = engine
        .create(&stage.name("taken"), &stage.settings("u2"))
        .await;
    assert!(matches!(again, Err(EngineError::NameTaken(_))), "{again:?}");
    let other = stage.create("other", "u2").await;
    let renamed = engine.rename(&other, &stage.name("taken")).await;
    assert!(
        matches!(renamed, Err(EngineError::NameTaken(_))),
        "{renamed:?}"
    );
    let bearer = stage.see(&stage.name("taken")).await.container;
    assert_eq!((bearer.id, bearer.state), (id, ContainerState::Running));
}

pub async fn of_many_creations_under_one_name_one_wins<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let name = stage.name("race");
    let settings = stage.settings("u1");
    let all = (0..8).map(|_| engine.create(&name, &settings));
    let mut won = 0;
    for outcome in futures::future::join_all(all).await {
        match outcome {
            Ok(_) => won += 1,
            Err(EngineError::NameTaken(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(engine.list(stage.owner(), None).await.unwrap().len(), 1);
}

pub async fn renaming_swaps_names_and_may_be_repeated<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let old = stage.run("agent", "u1").await;
    let new = stage.create("agent.next", "u1").await;
    for _ in 0..2 {
        engine
            .rename(&old, &stage.name("agent.prev"))
            .await
            .unwrap();
    }
    for _ in 0..2 {
        engine.rename(&new, &stage.name("agent")).await.unwrap();
    }
    assert_eq!(stage.see(&stage.name("agent")).await.container.id, new);
    assert_eq!(stage.see(&stage.name("agent.prev")).await.container.id, old);
    assert_eq!(
        engine.inspect(&stage.name("agent.next")).await.unwrap(),
        None
    );
}

pub async fn a_refused_creation_leaves_nothing<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let name = stage.name("refused");

    let mut settings = stage.settings("u1");
    settings.image = format!("sha256:{}", "0".repeat(64));
    let outcome = engine.create(&name, &settings).await;
    assert!(
        matches!(outcome, Err(EngineError::NotFound(_))),
        "{outcome:?}"
    );

    let mut settings = stage.settings("u1");
    settings.binds[0].source = stage.home().join("missing").display().to_string();
    let outcome = engine.create(&name, &settings).await;
    assert!(
        matches!(outcome, Err(EngineError::Refused(_))),
        "{outcome:?}"
    );

    for bad in ["x", "-option", ".hidden", "a b"] {
        let outcome = engine.create(bad, &stage.settings("u1")).await;
        assert!(
            matches!(outcome, Err(EngineError::Refused(_))),
            "{bad}: {outcome:?}"
        );
    }
    assert_eq!(engine.list(stage.owner(), None).await.unwrap(), []);
}

pub async fn a_start_that_fails_says_why_and_may_be_repeated<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let mut settings = stage.settings("u1");
    // A directory cannot be mounted over a file.
    settings.binds[0].target = "/bin/echo-agent".to_owned();
    let id = engine
        .create(&stage.name("broken"), &settings)
        .await
        .unwrap();
    for _ in 0..2 {
        let outcome = engine.start(&id).await;
        assert!(
            matches!(
                outcome,
                Err(EngineError::Refused(_) | EngineError::Internal(_))
            ),
            "{outcome:?}"
        );
        let seen = stage.see(&id).await;
        assert_eq!(seen.container.state, ContainerState::Created);
        assert!(seen.error.contains("/bin/echo-agent"), "{seen:?}");
        assert_eq!(seen.exit_code, None);
        assert_eq!(
            seen.container.networks[stage.network()],
            None,
            "no address is kept"
        );
    }
}

/// With an init process in front, a program that does not exist is no failed start but an exit.
pub async fn a_missing_program_is_an_exit_with_code_127<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let mut settings = stage.settings("u1");
    settings.command = Some(vec!["/no-such-program".to_owned()]);
    let id = engine
        .create(&stage.name("broken"), &settings)
        .await
        .unwrap();
    engine.start(&id).await.unwrap();
    let ended = stage
        .until(&id, |seen| seen.container.state == ContainerState::Exited)
        .await;
    assert_eq!(ended.exit_code, Some(127));
}

pub async fn an_exit_code_is_seen<S: Stage>(stage: &S) {
    std::fs::create_dir_all(stage.home().join(".agent")).unwrap();
    std::fs::write(stage.home().join(".agent/crash"), "").unwrap();
    let id = stage.run("crash", "u1").await;
    let ended = stage
        .until(&id, |seen| seen.container.state == ContainerState::Exited)
        .await;
    assert_eq!(ended.exit_code, Some(3));
    assert!(!ended.oom_killed);
    let ran = ended.finished_at.unwrap().since(ended.started_at.unwrap());
    assert!(ran < Duration::from_secs(5), "{ran:?}");
}

pub async fn a_process_that_ignores_the_request_is_killed<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let mut settings = stage.settings("u1");
    let script = "trap '' TERM; while :; do sleep 1; done";
    settings.command = Some(["/bin/sh", "-c", script].map(str::to_owned).to_vec());
    let id = engine
        .create(&stage.name("stubborn"), &settings)
        .await
        .unwrap();
    stage.start(&id).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let begun = tokio::time::Instant::now();
    engine.stop(&id, Duration::from_millis(900)).await.unwrap();
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(900) && took < Duration::from_secs(10),
        "{took:?}"
    );
    assert_eq!(stage.see(&id).await.exit_code, Some(137));
}

pub async fn a_paused_container_is_seen_and_can_be_stopped<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let id = stage.run("paused", "u1").await;
    stage.hand(Hand::Pause(&stage.name("paused"))).await;
    assert_eq!(stage.see(&id).await.container.state, ContainerState::Paused);
    assert_eq!(
        engine.list(stage.owner(), None).await.unwrap()[0].state,
        ContainerState::Paused
    );
    assert!(matches!(
        engine.start(&id).await,
        Err(EngineError::Conflict(_))
    ));
    engine.stop(&id, GRACE).await.unwrap();
    assert_eq!(stage.see(&id).await.container.state, ContainerState::Exited);
}

pub async fn two_removals_at_once_both_succeed<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let id = stage.run("twice", "u1").await;
    let removals = (0..4).map(|_| engine.remove(&id));
    for outcome in futures::future::join_all(removals).await {
        outcome.unwrap();
    }
    assert_eq!(engine.inspect(&id).await.unwrap(), None);
}

pub async fn what_is_done_by_hand_is_seen<S: Stage>(stage: &S) {
    let engine = stage.engine();
    let id = stage.run("hands", "u1").await;
    let name = stage.name("hands");
    stage.hand(Hand::LimitMemory(&name, 48 << 20)).await;
    assert_eq!(stage.see(&id).await.settings.memory_bytes, 48 << 20);
    stage.hand(Hand::AlwaysRestart(&name)).await;
    assert_eq!(stage.see(&id).await.deviations, ["restart_policy"]);
    stage.hand(Hand::Disconnect(&name, stage.network())).await;
    assert_eq!(stage.see(&id).await.container.networks, BTreeMap::new());
    assert_eq!(
        engine.list(stage.owner(), None).await.unwrap()[0].networks,
        BTreeMap::new()
    );
    stage.hand(Hand::Stop(&name)).await;
    assert_eq!(stage.see(&id).await.container.state, ContainerState::Exited);
    stage.hand(Hand::Remove(&name)).await;
    assert_eq!(engine.list(stage.owner(), None).await.unwrap(), []);
}

pub async fn verbs_on_what_is_gone_are_done_or_not_found<S>(stage: &S)
where
    S: Stage<Engine: AgentNetwork + ContainerFiles>,
{
    let engine = stage.engine();
    let gone = "f".repeat(64);
    engine.stop(&gone, GRACE).await.unwrap();
    engine.remove(&gone).await.unwrap();
    engine.remove_network(&gone).await.unwrap();
    assert_eq!(engine.inspect(&gone).await.unwrap(), None);
    let lost = |outcome: Result<(), EngineError>| {
        assert!(
            matches!(outcome, Err(EngineError::NotFound(_))),
            "{outcome:?}"
        );
    };
    lost(engine.start(&gone).await);
    lost(engine.rename(&gone, &stage.name("new")).await);
    lost(engine.read_file(&gone, "/etc/passwd", 10).await.map(|_| ()));
    lost(engine.logs(&gone, &Default::default()).await.map(|_| ()));
    lost(engine.stats(&gone).await.map(|_| ()));
}
