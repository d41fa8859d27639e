use schema::home::Homes;
use schema::ids::Uid;
use serde_json::{Value, json};

use super::*;
use crate::routes::test_support::{Yard, yard};
use crate::testing::NOW;

const LIST: &str = "/api/admin/archives";
const DAY: Duration = Duration::from_secs(24 * 3600);

fn archive(yard: &Yard, user: &str, days: u32, bytes: Option<u64>) -> String {
    let homes = Homes::open(yard.world.data_dir(), "test").unwrap();
    let (name, uid): (UserName, Uid) = (user.parse().unwrap(), Uid::random());
    homes.ensure(&name, &uid, None).unwrap();
    let at = NOW.minus(DAY * days);
    homes.archive(&name, &uid, at, None, bytes).unwrap();
    format!("{user}@{}", at.to_rfc3339())
}

async fn keep(yard: &Yard, retention: &str) {
    let form = format!("config={{\"archive.retention\":\"{retention}\"}}&wait=0");
    let saved = yard.post("/api/config", &form).await;
    assert!(saved.status.is_success(), "{}", saved.text);
}

#[tokio::test]
async fn archives_are_listed_newest_first_with_sizes() {
    let yard = yard().await;
    assert_eq!(yard.get(LIST).await.is(200)["items"], json!([]));
    let alice = archive(&yard, "alice", 3, Some(4096));
    let bob = archive(&yard, "Bob", 2, None);
    let again = archive(&yard, "alice", 1, Some(0));
    let all = yard.get(LIST).await.is(200);
    let expected = json!({
        "name": alice, "username": "alice", "archived_at": NOW.minus(DAY * 3),
        "size": 4096, "expires_at": null, "state": "archived",
    });
    assert_eq!(all["items"][2], expected);
    let names = |body: &Value| -> Vec<String> {
        let items = body["items"].as_array().unwrap().iter();
        items
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&all), [&*again, &*bob, &*alice]);
    assert_eq!(all["items"][1]["size"], Value::Null, "not measured");
    let found = yard.get(&format!("{LIST}?search=ALI&page_size=1")).await;
    let found = found.is(200);
    assert_eq!((names(&found), &found["total"]), (vec![again], &json!(2)));
}

#[tokio::test]
async fn archives_expire_after_the_retention() {
    let yard = yard().await;
    archive(&yard, "alice", 3, None);
    keep(&yard, "30d").await;
    let item = yard.get(LIST).await.is(200)["items"][0].clone();
    let expires = NOW.minus(DAY * 3).plus(DAY * 30);
    assert_eq!(item["expires_at"], json!(expires));
    let owners = yard.world.data_dir().join("archive/.owners");
    let marker = format!("alice-{}", NOW.minus(DAY * 3).to_basic());
    std::fs::rename(
        owners.join(&marker),
        owners.join(format!(".removing-{marker}")),
    )
    .unwrap();
    let item = yard.get(LIST).await.is(200)["items"][0].clone();
    assert_eq!(item["state"], "removing");
}
