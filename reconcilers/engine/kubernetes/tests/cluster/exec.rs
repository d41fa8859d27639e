//! Programs beside agents.

use engine::{Containers, EngineError, ExecSettings};
use futures::StreamExt;
use kit::contract::engine::Stage;
use tokio::io::AsyncWriteExt;

use crate::stage::{ClusterStage, stage};

fn program(script: &str, tty: bool) -> ExecSettings {
    ExecSettings {
        program: ["sh", "-c", script].map(str::to_owned).to_vec(),
        environment: vec!["GREETING=good day".to_owned()],
        stdin: true,
        tty,
        mark: "m1".to_owned(),
    }
}

/// Output and error output of a program with this input, and its code.
async fn run(
    stage: &ClusterStage,
    id: &str,
    settings: &ExecSettings,
    input: &str,
) -> (String, String, i64) {
    let mut exec = stage.engine.exec(id, settings).await.unwrap();
    exec.input.write_all(input.as_bytes()).await.unwrap();
    exec.input.shutdown().await.unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    while let Some(piece) = exec.output.next().await {
        let piece = piece.unwrap();
        assert!(piece.bytes.len() <= 64 * 1024);
        if piece.stderr { &mut err } else { &mut out }.extend_from_slice(&piece.bytes);
    }
    let code = exec.control.exit_code().await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(out), text(err), code)
}

#[tokio::test]
async fn program_gets_input_and_tells_outputs_and_code() {
    let stage = stage().await;
    let id = stage.run("exec", "u1").await;
    let script = "cat; echo \"$GREETING $AGENTYARD_EXEC\"; echo oops >&2; exit 7";
    let seen = run(&stage, &id, &program(script, false), "hello\n").await;
    assert_eq!(
        seen,
        ("hello\ngood day m1\n".to_owned(), "oops\n".to_owned(), 7)
    );
    let large = "head -c 3000000 /dev/zero | tr '\\0' x";
    let (out, _, code) = run(&stage, &id, &program(large, false), "").await;
    assert_eq!((out.len(), code), (3_000_000, 0));
    let missing = ExecSettings {
        program: vec!["/no-such-program".to_owned()],
        ..program("", false)
    };
    let (_, words, code) = run(&stage, &id, &missing, "").await;
    assert!(
        words.contains("no-such-program") && [126, 127].contains(&code),
        "{words} {code}"
    );
    stage.strike().await;
}

#[tokio::test]
async fn terminal_has_the_size_that_was_asked_for() {
    let stage = stage().await;
    let id = stage.run("terminal", "u1").await;
    let settings = program("read go; stty size; exit 3", true);
    let mut exec = stage.engine.exec(&id, &settings).await.unwrap();
    assert_eq!(exec.control.exit_code().await.unwrap(), None);
    exec.control.resize(91, 37).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    exec.input.write_all(b"go\n").await.unwrap();
    let mut out = Vec::new();
    while let Some(piece) = exec.output.next().await {
        out.extend_from_slice(&piece.unwrap().bytes);
    }
    assert!(String::from_utf8_lossy(&out).contains("37 91"), "{out:?}");
    assert_eq!(exec.control.exit_code().await.unwrap(), Some(3));
    stage.strike().await;
}

#[tokio::test]
async fn container_that_does_not_run_runs_no_program() {
    let stage = stage().await;
    let id = stage.create("idle", "u1").await;
    let refused = stage.engine.exec(&id, &program("true", false)).await;
    assert!(matches!(refused, Err(EngineError::Conflict(_))));
    assert_eq!(stage.engine.stats(&id).await.unwrap(), None);
    stage.strike().await;
}
