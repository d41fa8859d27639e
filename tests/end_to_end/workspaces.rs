//! Contents of workspaces: those of the service reach the agent, and those of the agent reach the user: files, skills, and
//! archives of users who are gone.

use crate::support::service::Launch;
use crate::support::{Engine, Stage, eventually, seconds};

/// Runs a command line, which must succeed; returns what it prints.
async fn run_command(launch: &Launch, line: &[&str]) -> String {
    let finished = launch.run(line).await;
    assert!(finished.status.success(), "{line:?}: {}", finished.stderr);
    finished.stdout
}

#[tokio::test]
async fn engine_files_skills_and_archives_reach_the_agent() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let command = stage.command();
    let password = admin.create_user("alice").await;
    let alice = service.client().signed_in("alice", &password).await;
    let workspace = "/root/.agent/workspace";
    let in_agent = |user: &str, script: &str| {
        let container = format!("agentyard-{user}");
        engine.by_hand(&["exec", &container, "sh", "-c", script])
    };

    // A file goes in and is the agent's; one of the agent's comes out.
    let letter = stage.path().join("letter.txt");
    std::fs::write(&letter, "dear agent").unwrap();
    run_command(
        &command,
        &["cp", letter.to_str().unwrap(), "alice:letter.txt"],
    )
    .await;
    let read = in_agent(
        "alice",
        &format!("cat {workspace}/letter.txt; echo answer >{workspace}/answer.txt"),
    );
    assert_eq!(read, "dear agent");
    let answer = alice.get("/api/files/download?path=answer.txt").await;
    assert_eq!(answer.text(), "answer\n");

    // A skill is there for the agent, and goes when it is taken away.
    let skill = stage.path().join("greeting");
    std::fs::create_dir(&skill).unwrap();
    let manifest = "---\nname: greeting\ndescription: A test\nversion: 1.0.0\n---\n";
    std::fs::write(skill.join("SKILL.md"), manifest).unwrap();
    run_command(&command, &["skill", "upload", skill.to_str().unwrap()]).await;
    let look = format!("cat {workspace}/skills/greeting/SKILL.md || true");
    for (verb, expected) in [("bind", manifest.trim()), ("unbind", "")] {
        run_command(&command, &["skill", verb, "greeting", "--user", "alice"]).await;
        eventually(verb, seconds(30), async || match in_agent("alice", &look) {
            found if found == expected => Ok(()),
            found => Err(found),
        })
        .await;
    }

    // The archive of a user who is gone comes back to another one's agent.
    admin.create_user("bob").await;
    let form = [("username", "alice"), ("wait", "60")];
    admin
        .post("/api/admin/users/delete", &form)
        .await
        .expect(200);
    assert_eq!(engine.of("alice"), []);
    let archives = run_command(&command, &["archive", "list", "-o", "name"]).await;
    let archive = archives.trim().strip_prefix("archive/").unwrap().to_owned();
    run_command(&command, &["archive", "restore", &archive, "--to", "bob"]).await;
    let found = in_agent("bob", &format!("cat {workspace}/restored-*/letter.txt"));
    assert_eq!(found, "dear agent");
}
