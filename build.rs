//! Builds the console with Node for the feature `console`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources of the console; `src/generated` is made from them.
const SOURCES: [&str; 9] = [
    "../src/chat/snapshots/api__chat__schema_document__tests__chat_schema.snap.json",
    "../src/openapi/snapshots/openapi.snap.json",
    "build",
    "index.html",
    "login.html",
    "package-lock.json",
    "scripts",
    "src",
    "vite.config.ts",
];
/// Oldest version of Node that builds it.
const NODE: (u32, u32) = (20, 19);

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_CONSOLE").is_none() {
        return Ok(());
    }
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let console = root.join("api/console");
    for source in SOURCES {
        watch(&console.join(source))?;
    }
    if let Err(error) = build(
        &console,
        &PathBuf::from(env::var("OUT_DIR")?).join("console"),
    ) {
        return Err(format!(
            "the console cannot be built: {error}. It needs Node.js {}.{} or newer with npm; \
             `cargo build --no-default-features` builds the service without it",
            NODE.0, NODE.1
        )
        .into());
    }
    Ok(())
}

/// Watches a file, or all files below a folder but those that the build makes.
fn watch(path: &Path) -> Result<(), Error> {
    if path.ends_with("generated") {
        return Ok(());
    }
    if !path.is_dir() {
        println!("cargo:rerun-if-changed={}", path.display());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        watch(&entry?.path())?;
    }
    Ok(())
}

fn build(console: &Path, out: &Path) -> Result<(), Error> {
    check_node()?;
    // Several builds of this checkout may run at once.
    let lock = fs::File::create(console.join(".build-lock"))?;
    lock.lock()?;
    let (wanted, installed) = (
        console.join("package-lock.json"),
        console.join("node_modules/.installed-lock.json"),
    );
    if fs::read(&wanted)? != fs::read(&installed).unwrap_or_default() {
        run(
            console,
            &["ci", "--no-audit", "--no-fund", "--loglevel=error"],
        )?;
        fs::copy(&wanted, &installed)?;
    }
    let out = out.to_str().ok_or("the build folder's path is no UTF-8")?;
    run(
        console,
        &[
            "run",
            "--silent",
            "build",
            "--",
            "--emptyOutDir",
            "--outDir",
            out,
        ],
    )
}

fn check_node() -> Result<(), Error> {
    let output = Command::new("node").arg("--version").output();
    let output = output.map_err(|error| format!("node cannot be started ({error})"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mut parts = version.trim_start_matches('v').split('.');
    let mut part = || parts.next()?.parse::<u32>().ok();
    match (part(), part()) {
        (Some(major), Some(minor)) if (major, minor) >= NODE => Ok(()),
        _ => Err(format!("Node.js {version} is too old").into()),
    }
}

fn run(console: &Path, args: &[&str]) -> Result<(), Error> {
    let output = Command::new("npm").args(args).current_dir(console).output();
    let output = output.map_err(|error| format!("npm cannot be started ({error})"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "`npm {}` failed\n{}{}",
        args.join(" "),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
    .into())
}
