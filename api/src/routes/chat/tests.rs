//! Conversations whose files are hostile, over the routes.

use std::fs;
use std::path::PathBuf;

use schema::home::conversations::ConversationId;
use serde_json::{Value, json};

use crate::routes::files::tests::make_home;
use crate::routes::yard::{Answer, Yard, yard};

const AT: &str = "2026-05-11T11:46:40Z";

struct Reader {
    yard: Yard,
    cookie: String,
    folder: PathBuf,
    id: ConversationId,
}

impl Reader {
    async fn new() -> Self {
        let yard = yard().await;
        make_home(&yard, "alice").await;
        let id = ConversationId::new();
        let top = yard.world.data_dir();
        let folder = top.join(format!("users/alice/.agent/workspace/conversations/{id}"));
        fs::create_dir_all(&folder).unwrap();
        Self {
            cookie: yard.sign_in("alice").await,
            yard,
            folder,
            id,
        }
    }

    fn write(&self, lines: &[String]) {
        let content = lines.join("\n") + "\n";
        fs::write(self.folder.join("entries.jsonl"), content).unwrap();
    }

    async fn get(&self, route: &str) -> Answer {
        let path = format!("/api/agent/chat/{route}&id={}", self.id);
        self.yard
            .get(&path)
            .with("alice", &self.cookie)
            .send()
            .await
    }
}

fn answer(id: usize, text: &str) -> String {
    json!({"id": id, "at": AT, "kind": "answer", "text": text}).to_string()
}

fn ids(answer: &Answer) -> Vec<u64> {
    let entries = answer.body["entries"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| entry["id"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn entries_of_hostile_lines_are_few_and_small() {
    let reader = Reader::new().await;
    let call = json!({"name": "", "arguments": "", "cut": false, "explanation": null});
    let attachment = json!({"path": "", "name": "", "size": null, "picture": false});
    let mut lines = vec![
        json!({"id": 1, "at": AT, "kind": "user", "text": "", "status": "sent", "attachments": vec![attachment; 17_000]}).to_string(),
        json!({"id": 2, "at": AT, "kind": "answer", "text": "", "model": "m".repeat(900_000)}).to_string(),
    ];
    lines.extend((3..9).map(|id| {
        json!({"id": id, "at": AT, "kind": "tools", "calls": vec![&call; 17_000]}).to_string()
    }));
    reader.write(&lines);
    let answer = reader.get("entries?limit=200").await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(ids(&answer), [5, 6, 7, 8], "4 MiB of lines");
    assert_eq!(answer.body["older"], json!(true));
    let calls = answer.body["entries"][0]["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 50);
    let older = reader.get("entries?limit=200&before=3").await;
    assert_eq!(ids(&older), [1, 2]);
    let [user, long] = [0, 1].map(|at| &older.body["entries"][at]);
    assert_eq!(user["attachments"].as_array().unwrap().len(), 20);
    assert!(long["model"].as_str().unwrap().len() <= 6000);
}

#[tokio::test]
async fn entries_behind_junk_are_not_read() {
    let reader = Reader::new().await;
    let mut lines = vec![answer(1, "before")];
    lines.extend(vec!["1".to_owned(); 6000]);
    lines.push(answer(2, "after"));
    reader.write(&lines);
    let answer = reader.get("entries?limit=200").await;
    assert_eq!(
        (ids(&answer), &answer.body["older"]),
        (vec![2], &json!(false))
    );
}

#[tokio::test]
async fn export_has_the_newest_state_of_all_entries_in_order() {
    let reader = Reader::new().await;
    reader.write(&[
        answer(2, "two, old"),
        answer(1, "one"),
        answer(3, "gone"),
        "junk".to_owned(),
        json!({"id": 3, "removed": true}).to_string(),
        answer(2, "two"),
    ]);
    let path = format!("/api/agent/chat/export?format=json&id={}", reader.id);
    let exported = reader.yard.get(&path).with("alice", &reader.cookie);
    let text = exported.send().await.text;
    let entries: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let texts: Vec<_> = entries.iter().map(|entry| &entry["text"]).collect();
    assert_eq!(texts, ["one", "two"]);
}
