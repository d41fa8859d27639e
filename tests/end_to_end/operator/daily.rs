//! Ten jobs of an administrator's day as one script: on the server's machine, and from another one.

use std::path::Path;

use tokio::process::Command;

use super::ends;
use super::remote::{Certified, close};
use crate::support::{Engine, Stage};

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/end_to_end/operator/daily-jobs"
);

/// Runs the script with these variables; the command line knows nothing else.
async fn run_jobs(stage: &Stage, variables: &[(&str, &Path)]) {
    let folder = stage.path().join("jobs");
    std::fs::create_dir(&folder).unwrap();
    let mut script = Command::new("bash");
    script.arg(SCRIPT).arg(&folder).env_clear();
    script.env("PATH", std::env::var_os("PATH").unwrap());
    script.env("AGENTYARD", env!("CARGO_BIN_EXE_agentyard"));
    script.env("XDG_CONFIG_HOME", stage.path());
    for (name, value) in variables {
        script.env(name, value);
    }
    let finished = script.kill_on_drop(true).output().await.unwrap();
    let [out, err] = [&finished.stdout, &finished.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(finished.status.success(), "{out}{err}");
}

#[tokio::test]
async fn engine_daily_jobs_are_one_script_on_the_machine() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let _service = stage.serve(&engine).start().await;
    run_jobs(&stage, &[("AGENTYARD_DATA_DIR", &stage.data())]).await;
}

#[tokio::test]
async fn engine_daily_jobs_are_one_script_over_tls_with_a_token() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let certified = Certified::new(&stage);
    let launch = stage.serve(&engine);
    let service = certified.serve(launch).start().await;
    let line = "api-token create jobs --role admin --expires 1d";
    let token = stage.path().join("jobs.token");
    std::fs::write(&token, ends(&stage, line, 0).await.stdout).unwrap();
    close(&token);
    let url = format!("https://localhost:{}", service.address().port());
    let variables = [
        ("AGENTYARD_URL", Path::new(&url)),
        ("AGENTYARD_TOKEN_FILE", &token),
        ("AGENTYARD_CA_FILE", &certified.certificate),
    ];
    run_jobs(&stage, &variables).await;
}
