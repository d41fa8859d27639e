//! Frames of the real program, as they become entries.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Line {
    at: u64,
    from: String,
    frame: Value,
}

fn features(scene: &str) -> Vec<ChatFeature> {
    let version = scene.split_once('-').map(|(version, _)| version);
    match version {
        Some("0.2.4") => Vec::new(),
        Some("0.2.7") => vec![
            ChatFeature::Pictures,
            ChatFeature::Parallel,
            ChatFeature::Usage,
        ],
        Some("0.2.8") => vec![
            ChatFeature::Pictures,
            ChatFeature::Parallel,
            ChatFeature::Usage,
            ChatFeature::Files,
        ],
        _ => ALL.to_vec(),
    }
}

/// Plays a scene: what it becomes, and what still runs a second and a minute after its last frame.
fn play(name: &str, text: &str) -> String {
    let mut scene = Scene::new(&features(name));
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Line>(line).unwrap());
    let mut session = None;
    let mut asked = 0;
    for line in lines {
        while scene.passed + Duration::from_millis(500) < Duration::from_millis(line.at) {
            scene.passed += Duration::from_millis(500);
            let now = scene.now();
            scene.talk.tick(now);
        }
        let own = line.frame.get("session_id").cloned();
        match &*line.from {
            "client" => {
                let content = line.frame["payload"]["content"].as_str();
                session = session.or(own.clone());
                if let Some(content) = content.filter(|_| own == session) {
                    let content = content.lines().next().unwrap_or_default();
                    asked += 1;
                    let _ = scene.say_as(&format!("c{asked}"), content);
                }
            }
            "agent" if own.is_none() || own == session => scene.hear(line.frame),
            _ => {}
        }
    }
    let mut shown = String::new();
    for entry in scene.shown() {
        let short: String = entry.replace('\n', "⏎").chars().take(150).collect();
        writeln!(shown, "{short}").unwrap();
    }
    scene.pass(30);
    if scene.talk.is_running() {
        shown.push_str("still running after 30 s\n");
    }
    shown
}

#[test]
fn recorded_frames_become_entries() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/chat/talk/tests/recorded");
    let mut played = BTreeMap::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|it| it == "jsonl") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            played.insert(name.clone(), play(&name, &text));
        }
    }
    assert!(played.len() > 90, "only {} scenes", played.len());
    insta::assert_yaml_snapshot!(played);
}
