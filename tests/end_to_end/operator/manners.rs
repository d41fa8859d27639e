//! How the command line behaves, whatever it is asked.

use super::{ends, run, with_users};
use crate::support::Stage;

#[tokio::test]
async fn a_slip_of_the_finger_is_guessed_and_ends_by_code() {
    let stage = Stage::new();
    let (_service, _admin) = with_users(&stage, &["alice"]).await;
    for (line, code, guess) in [
        ("get containerz", 2, "\"container\""),
        ("get container alcie", 1, "\"container/alice\""),
        ("describe container/alcie", 1, "\"container/alice\""),
        ("describe usr/alice", 2, "\"user\""),
        ("descrbe container/alice", 2, "'describe'"),
        ("get users --searchh x", 2, "'--search'"),
        ("wait user/alice --for=condition=Reddy", 2, "\"Ready\""),
        ("get users,containerz", 2, "\"container\""),
    ] {
        let slip = ends(&stage, line, code).await;
        assert!(slip.stderr.contains(guess), "{line}: {}", slip.stderr);
        assert_eq!(slip.stdout, "", "{line}");
        assert!(
            slip.stderr.starts_with("error: "),
            "{line}: {}",
            slip.stderr
        );
    }
}

#[tokio::test]
async fn without_a_server_every_question_says_what_to_do() {
    let stage = Stage::new();
    for line in [
        "get users",
        "get users --watch",
        "get users,groups --sort-by name",
        "describe container/alice",
        "diff",
        "events",
        "wait container/alice --timeout 1s",
        "retry container/alice",
        "pause --all",
        "resume --reconciler user",
        "audit list",
        "audit verify",
        "audit export",
        "config get",
        "config set image.tag=2",
        "config get --modified",
        "config explain image.tag",
        "config set agent.a=1",
        "config history",
        "config rollback 1",
        "config apply",
        "skill list",
        "skill show pdf",
        "skill bind pdf --user alice",
        "skill download pdf",
        "skill upload src/cli/skill",
        "skill repo pull team",
        "group members eng",
        "get executors",
        "executor disconnect 1",
        "user token rotate alice",
        "user create alice",
        "user delete alice --yes",
        "user limits alice",
        "user sessions alice",
        "user reset-password alice --random",
        "superadmin list",
        "superadmin create dora",
        "start container/alice",
        "debug container/alice",
        "logs alice",
        "logs alice -f",
        "top",
        "api-token list",
        "api-token create ci --role read",
        "auth test",
        "auth sync",
        "auth whitelist",
        "auth switch ldap --plan",
    ] {
        let none = ends(&stage, line, 69).await;
        assert!(
            none.stderr.contains("agentyard serve"),
            "{line}: {}",
            none.stderr
        );
        assert_eq!(none.stdout, "", "{line}");
    }
}

#[tokio::test]
async fn every_help_has_examples_and_the_first_has_the_exit_codes() {
    let stage = Stage::new();
    let help = ends(&stage, "--help", 0).await;
    for code in ["0  ", "1  ", "2  ", "69 ", "78 ", "124", "130"] {
        assert!(
            help.stdout.contains(&format!("\n  {code}")),
            "{code}: {}",
            help.stdout
        );
    }
    let commands = help
        .stdout
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() >= 15, "{commands:?}");
    for command in commands {
        let lines = match command {
            "audit" => vec!["audit list", "audit verify", "audit export"],
            "adapter" => vec![
                "adapter show",
                "adapter upload",
                "adapter refresh",
                "adapter rollback",
            ],
            "config" => vec![
                "config get",
                "config explain",
                "config set",
                "config unset",
                "config history",
                "config rollback",
                "config schema",
                "config apply",
            ],
            "image" => vec!["image pull", "image list", "image delete"],
            "rollout" => vec![
                "rollout start",
                "rollout status",
                "rollout pause",
                "rollout resume",
                "rollout rollback",
                "rollout cancel",
            ],
            "skill" => vec![
                "skill list",
                "skill show",
                "skill upload",
                "skill install",
                "skill bind",
                "skill unbind",
                "skill deploy",
                "skill undeploy",
                "skill download",
                "skill remove",
                "skill rollback",
                "skill repo list",
                "skill repo add",
                "skill repo save",
                "skill repo pull",
                "skill repo cancel",
                "skill repo remove",
            ],
            "group" => vec![
                "group list",
                "group create",
                "group delete",
                "group move",
                "group add",
                "group remove",
                "group members",
            ],
            "user" => vec![
                "user create",
                "user delete",
                "user disable",
                "user enable",
                "user limits",
                "user sessions",
                "user reset-password",
                "user token rotate",
            ],
            "superadmin" => vec![
                "superadmin list",
                "superadmin create",
                "superadmin delete",
                "superadmin reset-password",
            ],
            "executor" => vec!["executor disconnect"],
            "model" => vec!["model show", "model set", "model try"],
            "api-token" => vec!["api-token create", "api-token list", "api-token revoke"],
            "context" => vec!["context list", "context use"],
            "backup" => vec!["backup", "backup list", "backup verify"],
            "archive" => vec!["archive list", "archive show", "archive restore"],
            "auth" => vec!["auth test", "auth sync", "auth whitelist", "auth switch"],
            other => vec![other],
        };
        for line in lines {
            let help = ends(&stage, &format!("{line} --help"), 0).await;
            assert!(
                help.stdout.contains("Examples:\n  "),
                "{line}: {}",
                help.stdout
            );
            assert_eq!(help.stderr, "");
        }
    }
}

#[tokio::test]
async fn completions_load_and_name_the_commands() {
    let stage = Stage::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ends(&stage, &format!("completions {shell}"), 0).await;
        // Scripts of these shells ask the program.
        let words = match shell {
            "bash" | "zsh" | "fish" => ["AGENTYARD_COMPLETE", "agentyard"],
            _ => ["AGENTYARD_COMPLETE", "--"],
        };
        for word in words {
            assert!(script.stdout.contains(word), "{shell}: {word}");
        }
        if shell == "bash" {
            let file = stage.path().join("completions.bash");
            std::fs::write(&file, &script.stdout).unwrap();
            let check = std::process::Command::new("bash")
                .arg("-n")
                .arg(&file)
                .output();
            let check = check.unwrap();
            assert!(
                check.status.success() && check.stderr.is_empty(),
                "{check:?}"
            );
        }
    }
    ends(&stage, "completions tcsh", 2).await;
}

/// Completions that bash proposes for a line, by the script that the program prints.
async fn proposed(stage: &Stage, line: &str) -> Vec<String> {
    let script = ends(stage, "completions bash", 0).await;
    let file = stage.path().join("completions.bash");
    std::fs::write(&file, &script.stdout).unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_agentyard"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source {}; COMP_WORDS=({}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); COMP_TYPE=9; \
         _clap_complete_agentyard agentyard \"${{COMP_WORDS[COMP_CWORD]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file.display(),
        words.join(" ")
    );
    let output = tokio::process::Command::new("bash")
        .args(["--norc", "-c", &script])
        .env("PATH", path)
        .env("AGENTYARD_DATA_DIR", stage.data())
        .output()
        .await
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.lines().map(|word| word.trim_end().to_owned());
    words.filter(|word| !word.is_empty()).collect()
}

#[tokio::test]
async fn bash_completes_what_the_server_has() {
    let stage = Stage::new();
    // Without a server: words of this program, and no complaint.
    let containers = proposed(&stage, "agentyard get conta").await;
    assert_eq!(containers, ["containers"]);
    assert_eq!(
        proposed(&stage, "agentyard describe container/al").await,
        [""; 0]
    );
    let (_service, admin) = super::with_users(&stage, &["alice", "albert", "bob"]).await;
    let form = [("name", "alps")];
    admin
        .post("/api/admin/groups/create", &form)
        .await
        .expect(200);
    for (line, expected) in [
        (
            "agentyard describe container/al",
            &["container/albert", "container/alice"][..],
        ),
        ("agentyard get users al", &["albert", "alice"]),
        ("agentyard exec al", &["albert", "alice"]),
        ("agentyard group delete al", &["alps"]),
        ("agentyard user disable al", &["albert", "alice"]),
        ("agentyard logs bo", &["bob"]),
        ("agentyard config get web.auth", &["web.auth_mode"]),
        ("agentyard config set web.auth", &["web.auth_mode="]),
        ("agentyard restart container/b", &["container/bob"]),
        ("agentyard mo", &["model"]),
    ] {
        let mut found = proposed(&stage, line).await;
        found.sort_unstable();
        assert_eq!(found, expected, "{line}");
    }
}

#[tokio::test]
async fn doctor_checks_a_running_server() {
    let stage = Stage::new();
    let (_service, _admin) = super::with_users(&stage, &[]).await;
    let doctor = super::run(&stage, "doctor -o json").await;
    let found: serde_json::Value = serde_json::from_str(&doctor.stdout).unwrap();
    let checks = found["checks"].as_array().unwrap();
    let of = |name: &str| checks.iter().find(|one| one["check"] == name).unwrap();
    assert_eq!(of("engine")["result"], "failed", "{found}");
    assert_eq!(of("database")["result"], "ok", "{found}");
    assert_eq!(doctor.status.code(), Some(1));
}

#[tokio::test]
async fn manual_pages_are_whole() {
    let stage = Stage::new();
    let page = ends(&stage, "man", 0).await;
    for part in [
        ".TH agentyard 1",
        ".SH NAME",
        ".SH SYNOPSIS",
        ".SH SUBCOMMANDS",
        "Exit codes",
    ] {
        assert!(page.stdout.contains(part), "{part}: {}", page.stdout);
    }
    // Every line that begins with a dot is a request that manual pages know.
    let known = [
        "TH", "SH", "SS", "TP", "PP", "RS", "RE", "br", "ie", "el", "nf", "fi", "B", "I", "IP",
        "UR",
    ];
    for line in page.stdout.lines().filter(|line| line.starts_with('.')) {
        let request = line[1..].split_whitespace().next().unwrap_or_default();
        assert!(known.contains(&request), "{line}");
    }
    let dir = stage.path().join("man1");
    let written = run(&stage, &format!("man --dir {}", dir.display())).await;
    assert!(written.status.success(), "{}", written.stderr);
    for name in ["agentyard.1", "agentyard-get.1", "agentyard-audit-verify.1"] {
        let text = std::fs::read_to_string(dir.join(name)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{name}");
    }
}
