//! Images and rollouts through the whole dispatcher, with a scripted world and without reconcilers.

mod deletion;
mod inventory;
mod pulls;
mod rollouts;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schema::config::{self, Changes};
use schema::ids::{Timestamp, Uid};
use schema::rollout::{
    self, ImageChoice, NewRollout, Phase, ReadinessPolicy, RolloutKind, TargetState,
};
use serde_json::Value;

use crate::ports::{ImageLimits, Images, LocalImage, PortError};
use crate::routes::test_support::{Yard, yard};
use crate::testing::NOW;

/// The managed repository of these tests.
const OURS: &str = "registry:5000/agent";

/// What the engine has; `None`: it is away.
struct Shelf(Option<Vec<LocalImage>>);

#[async_trait]
impl Images for Shelf {
    async fn list(&self) -> Result<Vec<LocalImage>, PortError> {
        let away = || PortError::EngineUnavailable("no route".into());
        self.0.clone().ok_or_else(away)
    }
}

/// An engine of many nodes, which knows images of agents only and removes none.
struct Nodes(Vec<LocalImage>);

#[async_trait]
impl Images for Nodes {
    fn limits(&self) -> ImageLimits {
        ImageLimits {
            inventory: Some("images of agents"),
            removal: Some("kubelets remove images"),
        }
    }

    async fn list(&self) -> Result<Vec<LocalImage>, PortError> {
        Ok(self.0.clone())
    }
}

/// An image as such an engine knows it: by its digest.
fn remote(digit: char) -> LocalImage {
    let id = format!("{OURS}@{}", id(digit));
    LocalImage {
        repo_digests: vec![id.clone()],
        id,
        size: 0,
        created_at: Timestamp::default(),
        ..local(digit, &[], 0)
    }
}

/// `sha256:` and one digit 64 times.
fn id(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

fn local(digit: char, tags: &[&str], age: i64) -> LocalImage {
    LocalImage {
        id: id(digit),
        repo_tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        repo_digests: Vec::new(),
        size: 80_000_000,
        created_at: Timestamp::from_secs(NOW.as_secs() - age),
        is_local: true,
    }
}

/// A yard whose engine has these images.
async fn stocked(images: Option<Vec<LocalImage>>) -> Yard {
    let mut yard = yard().await;
    yard.deps().images = Arc::new(Shelf(images));
    configure(&yard, &[("image.name", OURS.into())]).await;
    yard
}

/// A yard whose engine has many nodes, with these images of agents.
async fn nodes(digits: &[char]) -> Yard {
    let mut yard = yard().await;
    let images = digits.iter().map(|digit| remote(*digit)).collect();
    yard.deps().images = Arc::new(Nodes(images));
    configure(&yard, &[("image.name", OURS.into())]).await;
    yard
}

async fn configure(yard: &Yard, values: &[(&'static str, Value)]) {
    let values = values
        .iter()
        .map(|(key, value)| (*key, Some(value.clone())));
    let changes = Changes(values.collect());
    let key = &yard.world.deps.master_key;
    let mut tx = yard.world.db.begin().await.unwrap();
    config::query::save(&mut tx, key, &changes, None, crate::testing::BY)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// Gives a user an image, by a rollout that has ended.
async fn give(yard: &Yard, user: &str, reference: &str, image_id: Option<String>) {
    let image = ImageChoice {
        reference: reference.to_owned(),
        image_id,
        digest: None,
    };
    let new = NewRollout {
        kind: RolloutKind::Upgrade,
        reference: reference.to_owned(),
        source: None,
        max_unavailable: 1,
        pause_on_failure: true,
        health_timeout: Duration::from_secs(60),
        min_ready: Duration::ZERO,
    };
    let uid = Uid::from(user.to_owned());
    let policy = ReadinessPolicy {
        health_timeout: new.health_timeout,
        min_ready: new.min_ready,
    };
    let mut tx = yard.world.db.begin().await.unwrap();
    let users = std::slice::from_ref(&uid);
    let id = rollout::create(&mut tx, &new, users, "test", NOW)
        .await
        .unwrap();
    rollout::move_target(&mut tx, &id, &uid, &image, policy, NOW)
        .await
        .unwrap();
    let done = TargetState::Done;
    rollout::finish_target(&mut tx, &id, &uid, done, "", NOW)
        .await
        .unwrap();
    let (row, _) = rollout::get(&mut tx, &id).await.unwrap().unwrap();
    let mut facts = row.facts;
    (facts.phase, facts.finished_at) = (Phase::Succeeded, Some(NOW));
    rollout::save_facts(&mut tx, &id, &facts).await.unwrap();
    tx.commit().await.unwrap();
}

/// The values of one field of a list.
fn fields<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap()).collect()
}

/// Every parameter that can be wrong is refused by its name, and nothing is recorded.
#[tokio::test]
async fn l64_what_cannot_be_meant_is_refused_by_the_name_of_its_field() {
    let yard = stocked(Some(Vec::new())).await;
    yard.user("alice").await;
    let long = "a".repeat(600);
    let long = format!("image={long}");
    for (route, body, field) in [
        ("pull", "", "image"),
        ("pull", "image=", "image"),
        ("pull", "image=a%20b", "image"),
        ("pull", "image=A/b", "image"),
        ("pull", "image=a%00b", "image"),
        ("pull", &long, "image"),
        ("pulls/cancel", "image=-x", "image"),
        ("pulls/cancel", "image=a&wait=121", "wait"),
        ("delete", "image=:", "image"),
        ("delete", "image=a&force=maybe", "force"),
        ("migrate", "target=v2", "image"),
        ("migrate", "image=v1", "target"),
        ("migrate", "image=v1&target=@", "target"),
        ("migrate", "image=v1&target=v2&users=nobody", "users"),
        ("migrate", "image=v1&target=v2&users=,", "users"),
        (
            "migrate",
            "image=v1&target=v2&max_unavailable=0",
            "max_unavailable",
        ),
        (
            "migrate",
            "image=v1&target=v2&health_timeout=1",
            "health_timeout",
        ),
        ("upgrade", "all=1", "tag"),
        ("upgrade", "tag=a%20b&all=1", "tag"),
        ("upgrade", "tag=v2", "users"),
        ("upgrade", "tag=v2&all=1&users=alice", "users"),
        ("upgrade", "tag=v2&users=alice,no,body", "users"),
        ("upgrade", "tag=v2&all=x", "all"),
        (
            "upgrade",
            "tag=v2&all=1&max_unavailable=0",
            "max_unavailable",
        ),
        (
            "upgrade",
            "tag=v2&all=1&max_unavailable=1001",
            "max_unavailable",
        ),
        (
            "upgrade",
            "tag=v2&all=1&max_unavailable=-1",
            "max_unavailable",
        ),
        (
            "upgrade",
            "tag=v2&all=1&pause_on_failure=2",
            "pause_on_failure",
        ),
        (
            "upgrade",
            "tag=v2&all=1&health_timeout=4s",
            "health_timeout",
        ),
        (
            "upgrade",
            "tag=v2&all=1&health_timeout=61m",
            "health_timeout",
        ),
        (
            "upgrade",
            "tag=v2&all=1&health_timeout=soon",
            "health_timeout",
        ),
        ("upgrade", "tag=v2&all=1&min_ready=61m", "min_ready"),
        ("rollouts/pause", "if_generation=0", "if_generation"),
        ("rollouts/pause", "id=a%00", "id"),
    ] {
        let path = format!("/api/admin/images/{route}");
        let refused = yard.post(&path, body).await;
        let refused = refused.fails(400, "invalid_parameter");
        assert_eq!(refused["field"], field, "{route} {body}: {refused}");
    }
    for query in [
        "upgrade-candidates",
        "upgrade-candidates?tag=a%20b",
        "users",
        "users?image=",
        "registry?image=a%20b",
        "registry?refresh=x",
        "?all=x",
        "?page=0",
        "pulls?page_size=201",
        "rollouts?page=x",
    ] {
        let path = format!("/api/admin/images/{query}").replace("/?", "?");
        yard.get(&path).await.fails(400, "invalid_parameter");
    }
    let list = yard.get("/api/admin/tasks").await.is(200);
    assert_eq!(list["total"], 0, "nothing was recorded");
}

/// A name with `/` and `:` is one segment of a path when it is percent-encoded.
#[tokio::test]
async fn an_image_is_an_object_that_can_be_looked_at() {
    let yard = stocked(Some(Vec::new())).await;
    let reference = format!("{OURS}:v1");
    let mut tx = yard.world.db.begin().await.unwrap();
    schema::image::request_pull(&mut tx, &reference, "1", None, NOW)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let path = "/api/v1/admin/reconcile/objects/image/registry%3A5000%2Fagent%3Av1";
    let object = yard.get(path).await.is(200);
    assert_eq!(object["object"], format!("image/{reference}"));
    let half = "/api/admin/reconcile/objects/image/registry:5000%2fagent:v1";
    yard.get(half).await.is(200);
    let other = "/api/admin/reconcile/objects/image/registry%3A5000%2Fagent%3Av2";
    yard.get(other).await.fails(404, "not_found");
    yard.get(&format!("/api/admin/reconcile/objects/image/{reference}"))
        .await
        .fails(404, "not_found");
    let events = format!("/api/admin/events?object=image/{reference}");
    yard.get(&events).await.is(200);
}
