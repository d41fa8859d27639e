//! The engine contract on a real engine, and what only a real one can show.
//!
//! Needs the test services (`make services-up`, `make run-tests`). Without them the tests fail; they never skip.

// The suite is test code although its functions bear no test attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract {
    use crate::real::stage;

    kit::engine_contract!(stage(), tokio::test);
}

mod confinement {
    use std::time::Duration;

    use engine::{
        ContainerFiles, ContainerSettings, ContainerState, Containers, EngineError, LogOptions,
    };
    use futures::StreamExt;

    use crate::real::{RealStage, stage};
    use kit::contract::engine::Stage;

    async fn said(
        stage: &RealStage,
        name: &str,
        settings: &ContainerSettings,
        script: &str,
    ) -> String {
        let mut settings = settings.clone();
        settings.command = Some(["/bin/sh", "-c", script].map(str::to_owned).to_vec());
        let id = stage
            .engine()
            .create(&stage.name(name), &settings)
            .await
            .unwrap();
        stage.engine().start(&id).await.unwrap();
        stage
            .until(&id, |seen| seen.container.state == ContainerState::Exited)
            .await;
        let log = stage
            .engine()
            .logs(&id, &LogOptions::default())
            .await
            .unwrap();
        let chunks: Vec<_> = log.collect().await;
        let bytes: Vec<u8> = chunks
            .into_iter()
            .flat_map(|c| c.unwrap().bytes.to_vec())
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[tokio::test]
    async fn l40_a_process_has_no_capability_and_cannot_gain_any() {
        let stage = stage().await;
        let settings = stage.settings("u1");
        let status = said(&stage, "caps", &settings, "cat /proc/self/status").await;
        assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
        assert!(status.contains("CapBnd:\t0000000000000000"), "{status}");
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        let mut settings = stage.settings("u1");
        settings.capabilities = vec!["CHOWN".to_owned()];
        let status = said(&stage, "chown", &settings, "cat /proc/self/status").await;
        assert!(status.contains("CapEff:\t0000000000000001"), "{status}");
        stage.strike().await;
    }

    /// Runs what takes more memory than it may until it is killed; says whether the engine reports why
    /// within a few seconds.
    async fn eats_memory(stage: &RealStage, name: &str) -> bool {
        let mut settings = stage.settings("u1");
        settings.memory_bytes = 16 << 20;
        settings.command = Some(
            ["/bin/sh", "-c", "exec tail /dev/zero"]
                .map(str::to_owned)
                .to_vec(),
        );
        let id = stage
            .engine()
            .create(&stage.name(name), &settings)
            .await
            .unwrap();
        stage.engine().start(&id).await.unwrap();
        let ended = stage
            .until(&id, |seen| seen.container.state == ContainerState::Exited)
            .await;
        assert_eq!(ended.exit_code, Some(137), "{name}");
        for _ in 0..50 {
            if stage.see(&id).await.oom_killed {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        false
    }

    #[tokio::test]
    async fn seed_home_reads_a_directory_of_an_unstarted_image() {
        let stage = stage().await;
        let mut settings = stage.settings("u1");
        settings.binds.clear();
        let engine = stage.engine();
        let id = engine.create(&stage.name("tree"), &settings).await.unwrap();
        let tree = engine.read_tree(&id, "/srv").await.unwrap().unwrap();
        let parts: Vec<_> = tree.collect().await;
        let bytes: Vec<u8> = parts
            .into_iter()
            .flat_map(|part| part.unwrap().to_vec())
            .collect();
        let mut archive = tar::Archive::new(&*bytes);
        let paths: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(paths, ["srv/", "srv/health"]);
        assert!(engine.read_tree(&id, "/nowhere").await.unwrap().is_none());
        let gone = engine.read_tree("no-such-container", "/srv").await;
        assert!(matches!(gone.err(), Some(EngineError::NotFound(_))));
        stage.strike().await;
    }

    #[tokio::test]
    async fn l40_processes_and_memory_are_limited() {
        let stage = stage().await;
        let mut settings = stage.settings("u1");
        settings.pids_limit = 8;
        let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 2 & done; wait; echo done";
        let text = said(&stage, "forks", &settings, script).await;
        assert!(text.contains("can't fork"), "{text}");

        // The kernel always kills it. That it was for memory is told to the engine by an event, which
        // comes late, or never when the process is gone first.
        let mut told = false;
        for attempt in 0..3 {
            if !told {
                told = eats_memory(&stage, &format!("eater-{attempt}")).await;
            }
        }
        assert!(told, "killed for memory three times, and never told");
        stage.strike().await;
    }

    #[tokio::test]
    async fn l40_containers_cannot_reach_each_other_but_their_gateway() {
        let stage = stage().await;
        let server = stage.run("server", "u1").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let address = stage.see(&server).await.container.networks[stage.network()]
            .clone()
            .unwrap();
        let script = format!(
            "timeout 2 wget -qO- http://{address}:18790/health 2>/dev/null || echo unreachable"
        );
        let text = said(&stage, "client", &stage.settings("u2"), &script).await;
        assert!(
            text.ends_with("unreachable\n") && !text.contains("ok"),
            "{text}"
        );
        // The same request from the gateway's side works, so the agent does serve.
        let request = format!("http://{address}:18790/health");
        let answer = tokio::process::Command::new("/bin/busybox")
            .args(["wget", "-qO-", &request])
            .output()
            .await
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&answer.stdout), "ok\n");
        stage.strike().await;
    }

    #[tokio::test]
    async fn an_agent_writes_its_heartbeat_as_an_arbitrary_user() {
        let stage = stage().await;
        let mut settings = stage.settings("u1");
        settings.user = Some("12345:54321".to_owned());
        std::os::unix::fs::chown(stage.home(), Some(12345), Some(54321)).unwrap();
        let id = stage
            .engine()
            .create(&stage.name("uid"), &settings)
            .await
            .unwrap();
        stage.engine().start(&id).await.unwrap();
        let path = "/home/agent/.agent/heartbeat";
        for attempt in 0.. {
            let heartbeat = stage.engine().read_file(&id, path, 100).await.unwrap();
            if heartbeat.is_some() {
                break;
            }
            assert!(attempt < 100, "no heartbeat");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        stage.strike().await;
    }
}
