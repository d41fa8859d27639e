//! Killed while what all containers share is made: the network, and the proof of the data directory.

use crate::support::engine::NETWORK;
use crate::support::{Engine, Stage, eventually, seconds};

#[tokio::test]
async fn engine_killed_while_network_or_proof_is_made_the_next_start_makes_them() {
    for step in ["CreateNetwork", "ProbeDataDir"] {
        for moment in ["before", "after"] {
            let engine = Engine::claim();
            let stage = Stage::new();
            let point = format!("engine.{step}.{moment}");
            let mut doomed = stage.serve(&engine).env("AGENTYARD_FAULT", &point).spawn();
            doomed.died_of_fault(&point).await;
            // It may have died before it could tell its password.
            let reset = stage
                .command()
                .run(&["reset-password", "admin", "--random"])
                .await;
            assert!(reset.status.success(), "{point}: {}", reset.stderr);
            let password = reset.stdout.trim().strip_prefix("password: ").unwrap();
            let service = stage.serve(&engine).spawn().after_init(password).await;
            let admin = service.admin().await;
            admin.create_user("bob").await;
            engine.the_running("bob");
            assert_eq!(engine.ours().len(), 1, "{point}: no probe is left");
            assert!(!stage.data().join("probe").exists(), "{point}");
        }
    }
}

#[tokio::test]
async fn engine_killed_while_the_network_is_made_anew_the_next_start_makes_it() {
    for (number, point) in [
        "engine.RemoveNetwork.before",
        "engine.RemoveNetwork.after",
        "engine.CreateNetwork.before",
        "engine.CreateNetwork.after",
    ]
    .into_iter()
    .enumerate()
    {
        let engine = Engine::claim();
        let stage = Stage::new();
        let service = stage.serve(&engine).start().await;
        let admin = service.admin().await;
        let subnet = || {
            let format = "{{(index .IPAM.Config 0).Subnet}}";
            engine.ask(&["network", "inspect", "-f", format, NETWORK])
        };
        let is = async |wanted: &str| {
            let seen = eventually(
                "the network has its subnet",
                seconds(30),
                async || match subnet() {
                    Some(found) if found == wanted => Ok(()),
                    other => Err(format!("{other:?}")),
                },
            );
            seen.await;
        };
        is("10.88.0.0/16").await;
        service.passes(&admin, "engine", 1).await;
        service.kill9().await;

        let mut doomed = stage
            .serve(&engine)
            .env("AGENTYARD_FAULT", point)
            .start()
            .await;
        let wanted = format!("10.77.{number}.0/24");
        let change = format!(r#"{{"container.network_subnet":"{wanted}"}}"#);
        let form = [("config", change.as_str())];
        let _ = admin
            .at(&doomed.client())
            .try_post("/api/config", &form)
            .await;
        doomed.died_of_fault(point).await;

        let service = stage.serve(&engine).start().await;
        let admin = admin.at(&service.client());
        is(&wanted).await;
        admin.create_user("bob").await;
        let bob = admin.user("bob").await.unwrap();
        let prefix = format!("10.77.{number}.");
        assert!(bob["ip"].as_str().unwrap().starts_with(&prefix), "{bob}");
    }
}
