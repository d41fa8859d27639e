//! `exec` and `cp`, on the server's machine, with the engine.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::ends;
use crate::support::{Client, Engine, Stage, seconds, until};

/// The command line `exec …` as a process of its own.
fn exec(stage: &Stage, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentyard"));
    command
        .arg("exec")
        .arg("--data-dir")
        .arg(stage.data())
        .args(arguments)
        .env("TERM", "xterm")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Waits until a program runs in alice's container, or does not any more.
async fn until_runs(engine: &Engine, program: &str, runs: bool) {
    let id = engine.the_running("alice").id;
    until(
        &format!("{program} runs: {runs}"),
        seconds(20),
        async || {
            let listed = engine.docker(&["top", &id, "-o", "pid,args"]);
            listed.contains(program) == runs
        },
    )
    .await;
}

/// Entries of `exec` in the audit trail: object and detail, newest first.
async fn programs(admin: &Client) -> Vec<String> {
    let trail = admin.get("/api/admin/audit?search=exec&page_size=50").await;
    let entries = trail.expect(200)["entries"].clone();
    let entries = entries.as_array().unwrap().iter();
    entries
        .filter(|entry| entry["action"] == "exec")
        .map(|entry| {
            let of = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            assert!(of("actor").starts_with("socket:"), "{entry}");
            format!("{} {}", of("object"), of("detail"))
        })
        .collect()
}

async fn read_until(terminal: &mut tokio::fs::File, wanted: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    let reading = async {
        while !text.contains(wanted) {
            let read = terminal.read(&mut buffer).await.unwrap_or(0);
            assert!(read > 0, "the terminal ended: {text:?}");
            text += &String::from_utf8_lossy(&buffer[..read]);
        }
    };
    tokio::time::timeout(seconds(20), reading)
        .await
        .expect(wanted);
    text
}

/// A terminal: our end, and the file of the other.
fn terminal() -> (tokio::fs::File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed())
        .open(name.to_str().unwrap())
        .unwrap();
    (tokio::fs::File::from_std(File::from(ours)), theirs)
}

fn in_terminal(mut command: Command, theirs: &File) -> Child {
    command
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs.try_clone().unwrap())
        .stderr(theirs.try_clone().unwrap());
    command.spawn().unwrap()
}

#[tokio::test]
async fn engine_programs_run_and_files_are_copied_on_the_machine() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    admin.create_user("alice").await;
    ends(&stage, "wait container/alice --timeout 90s", 0).await;

    // Output, errors and the exit code are the program's; input is passed on only if that is wanted.
    let script = ["alice", "--", "sh", "-c", "echo out; echo err >&2; exit 42"];
    let finished = exec(&stage, &script).output().await.unwrap();
    assert_eq!(finished.status.code(), Some(42), "{finished:?}");
    assert_eq!(
        (finished.stdout.as_slice(), finished.stderr.as_slice()),
        (&b"out\n"[..], &b"err\n"[..])
    );
    let finished = exec(&stage, &["alice", "--", "cat"])
        .output()
        .await
        .unwrap();
    assert_eq!(
        (finished.status.code(), finished.stdout.len()),
        (Some(0), 0),
        "{finished:?}"
    );
    let long = vec![b'x'; 3 << 20];
    let mut cat = exec(&stage, &["-i", "container/alice", "--", "cat"]);
    let mut cat = cat.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = cat.stdin.take().unwrap();
    let sent = long.clone();
    let (written, finished) = tokio::join!(
        async move {
            input.write_all(&sent).await.unwrap();
            drop(input);
        },
        cat.wait_with_output()
    );
    let ((), finished) = (written, finished.unwrap());
    assert!(
        finished.status.success() && finished.stdout == long,
        "{:?}",
        finished.status
    );
    let missing = exec(&stage, &["alice", "--", "no-such-program"])
        .output()
        .await
        .unwrap();
    assert!(
        matches!(missing.status.code(), Some(126 | 127)),
        "{missing:?}"
    );

    // A terminal: its size, its changes, and the way back at the end.
    let (mut ours, theirs) = terminal();
    let size = |columns, rows| {
        let mut size = rustix::termios::tcgetwinsize(&theirs).unwrap();
        (size.ws_col, size.ws_row) = (columns, rows);
        rustix::termios::tcsetwinsize(&theirs, size).unwrap();
    };
    size(91, 33);
    let before = rustix::termios::tcgetattr(&theirs).unwrap();
    let mut shell = in_terminal(exec(&stage, &["-it", "alice", "--", "sh"]), &theirs);
    ours.write_all(b"stty size; echo a-$((40+2))\n")
        .await
        .unwrap();
    let shown = read_until(&mut ours, "a-42").await;
    assert!(shown.contains("33 91"), "{shown:?}");
    let raw = rustix::termios::tcgetattr(&theirs).unwrap();
    assert_ne!(raw.local_modes, before.local_modes);
    // Ctrl-C is the program's.
    ours.write_all(b"sleep 1000\n").await.unwrap();
    until_runs(&engine, "sleep 1000", true).await;
    ours.write_all(b"\x03").await.unwrap();
    until_runs(&engine, "sleep 1000", false).await;
    ours.write_all(b"exit 7\n").await.unwrap();
    assert_eq!(shell.wait().await.unwrap().code(), Some(7));
    let after = rustix::termios::tcgetattr(&theirs).unwrap();
    assert_eq!(after.local_modes, before.local_modes);

    // A client that is ended takes its program with it, and the terminal is as before.
    let mut shell = in_terminal(
        exec(&stage, &["-it", "alice", "--", "sleep", "2000"]),
        &theirs,
    );
    until_runs(&engine, "sleep 2000", true).await;
    let pid = rustix::process::Pid::from_raw(shell.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(shell.wait().await.unwrap().code(), Some(143));
    let after = rustix::termios::tcgetattr(&theirs).unwrap();
    assert_eq!(after.local_modes, before.local_modes);
    until_runs(&engine, "sleep 2000", false).await;
    let mut killed = exec(&stage, &["alice", "--", "sleep", "3000"])
        .spawn()
        .unwrap();
    until_runs(&engine, "sleep 3000", true).await;
    killed.kill().await.unwrap();
    until_runs(&engine, "sleep 3000", false).await;

    let told = programs(&admin).await;
    let expected = [
        "sleep",
        "sleep",
        "sh",
        "no-such-program",
        "cat",
        "cat",
        "sh",
    ];
    let expected = expected.map(|program| format!("container/alice program: {program}"));
    assert_eq!(told, expected);

    // Files and folders, there and back; nothing is replaced by surprise.
    let local = stage.path().join("local");
    std::fs::create_dir_all(local.join("deep/er")).unwrap();
    std::fs::write(local.join("deep/er/a.txt"), "one").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", local.join("link")).unwrap();
    let (from, back) = (local.display().to_string(), stage.path().join("back"));
    let copied = ends(&stage, &format!("cp {from} alice:copied"), 0).await;
    assert_eq!(copied.stdout, "alice:copied: 1 file\n");
    assert!(copied.stderr.contains("link"), "{}", copied.stderr);
    let inside = exec(
        &stage,
        &[
            "alice",
            "--",
            "sh",
            "-c",
            "cat $HOME/.agent/workspace/copied/deep/er/a.txt",
        ],
    );
    let inside = { inside }.output().await.unwrap();
    assert_eq!(inside.stdout, b"one", "{inside:?}");
    let again = ends(&stage, &format!("cp {from}/deep alice:copied"), 1).await;
    assert!(
        again.stderr.contains("alice:copied/deep exists"),
        "{}",
        again.stderr
    );
    ends(
        &stage,
        &format!("cp {from}/deep alice:copied --overwrite"),
        0,
    )
    .await;
    let to = back.display();
    ends(&stage, &format!("cp alice:copied {to}"), 0).await;
    assert_eq!(std::fs::read(back.join("deep/er/a.txt")).unwrap(), b"one");
    ends(
        &stage,
        &format!("cp alice:copied/deep/er/a.txt {to}/b.txt"),
        0,
    )
    .await;
    ends(
        &stage,
        &format!("cp alice:copied/deep/er/a.txt {to}/b.txt"),
        1,
    )
    .await;
    ends(&stage, &format!("cp alice:none {to}/c.txt"), 1).await;
    ends(&stage, &format!("cp {to}/b.txt alice:new/b.txt"), 1).await;
    ends(&stage, &format!("cp {to}/b.txt {to}/c.txt"), 2).await;

    // A container that does not run has no programs.
    let form = [("username", "alice")];
    admin
        .post("/api/admin/container/stop", &form)
        .await
        .converged();
    let refused = async |user: &str| {
        let refused = exec(&stage, &[user, "--", "ls"]).output().await.unwrap();
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        String::from_utf8(refused.stderr).unwrap()
    };
    let stopped = refused("alice").await;
    assert!(
        stopped.contains("container/alice is not running"),
        "{}",
        stopped
    );
    let unknown = refused("nobody").await;
    assert!(unknown.contains("nobody"), "{}", unknown);
    // No superadmin has any of it over HTTP.
    let answer = admin.get("/api/machine/users/alice/files").await;
    answer.refused(404, "not_found");
}
