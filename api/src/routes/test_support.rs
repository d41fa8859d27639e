//! Driving the yard's handlers through the whole dispatcher, on a real database without reconcilers:
//! tests write statuses by hand.

use std::sync::Arc;

use http::StatusCode;
use schema::condition::Condition;
use schema::container::{self, ContainerRow, Desired};
use schema::ids::{Epoch, Generation, Kind, Uid};
use schema::object::{self, ObjectRow, StatusRow};
use schema::user::{self, NewUser, Source, User};
use serde_json::Value;

use crate::deps::Dependencies;
use crate::dispatch::Api;
use crate::openapi::conformance;
use crate::testing::{NOW, World, world};

/// A world with clients in it.
pub(crate) struct Yard {
    pub(crate) world: World,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    /// Checks the status and gives the body.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self.body
    }

    /// Checks status and code of a failure.
    #[track_caller]
    pub(crate) fn fails(self, status: u16, code: &str) -> Value {
        let body = self.is(status);
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["success"], false);
        body
    }
}

/// A yard without users.
pub(crate) async fn yard() -> Yard {
    Yard {
        world: world().await,
    }
}

impl Yard {
    /// Changes what the handlers work with; before the first request only.
    pub(crate) fn deps(&mut self) -> &mut Dependencies {
        Arc::get_mut(&mut self.world.deps).unwrap()
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        request: warp::test::RequestBuilder,
        name: &str,
    ) -> Answer {
        let api = Api::new(crate::routes::all(), self.world.deps.clone()).unwrap();
        let request = request
            .method(method)
            .header("cookie", self.world.cookie(name))
            .header("x-csrf-token", self.world.token(name));
        let response = request.reply(&api.filter()).await;
        conformance::check_response(method, &response);
        let text = String::from_utf8_lossy(response.body()).into_owned();
        Answer {
            status: response.status(),
            body: serde_json::from_str(&text).unwrap_or_default(),
            text,
        }
    }

    /// GET as `name`.
    pub(crate) async fn get_as(&self, name: &str, path: &str) -> Answer {
        self.request("GET", warp::test::request().path(path), name)
            .await
    }

    /// GET as superadmin.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_as("root", path).await
    }

    /// POST of form fields as `name`.
    pub(crate) async fn post_as(&self, name: &str, path: &str, body: &str) -> Answer {
        let request = warp::test::request()
            .path(path)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        self.request("POST", request, name).await
    }

    /// POST of form fields as superadmin.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.post_as("root", path, body).await
    }

    /// Creates a running user whose uid is the name.
    pub(crate) async fn user(&self, name: &str) -> Uid {
        self.user_of(name, "registry:5000/agent:v1").await
    }

    /// Creates a running user with this image.
    pub(crate) async fn user_of(&self, name: &str, image: &str) -> Uid {
        let uid = Uid::from(name.to_owned());
        let new = NewUser {
            uid: uid.clone(),
            name: name.parse().unwrap(),
            source: Source::Local,
            password_hash: None,
            image_ref: image.to_owned(),
            desired: Desired::Running,
        };
        let mut tx = self.world.db.begin().await.unwrap();
        user::create(&mut tx, &new, NOW).await.unwrap();
        tx.commit().await.unwrap();
        uid
    }

    /// What a reconciler would save; wakes whoever waits.
    pub(crate) async fn saw(&self, kind: Kind, uid: &Uid, generation: i64, said: Condition) {
        self.saw_all(kind, uid, generation, vec![said]).await;
    }

    /// The same with all of its conditions.
    pub(crate) async fn saw_all(
        &self,
        kind: Kind,
        uid: &Uid,
        generation: i64,
        conditions: Vec<Condition>,
    ) {
        let status = StatusRow {
            observed_generation: Generation(generation),
            conditions,
            ..StatusRow::default()
        };
        let mut tx = self.world.db.begin().await.unwrap();
        let saved = object::save_status(&mut tx, kind, uid, &status, Epoch(1)).await;
        assert!(saved.unwrap());
        tx.commit().await.unwrap();
        self.world.status_ticks.send_modify(|ticks| *ticks += 1);
    }

    /// What the reconcilers do to a deleted user in the end.
    pub(crate) async fn purge(&self, uid: &Uid) {
        let mut tx = self.world.db.begin().await.unwrap();
        assert!(container::purge(&mut tx, uid).await.unwrap());
        assert!(user::purge(&mut tx, uid).await.unwrap());
        tx.commit().await.unwrap();
        self.world.status_ticks.send_modify(|ticks| *ticks += 1);
    }

    /// The account's row.
    pub(crate) async fn account(&self, name: &str) -> Option<User> {
        let mut connection = self.world.deps.db.read().await.unwrap();
        let name = name.parse().unwrap();
        user::find(&mut connection, &name).await.unwrap()
    }

    /// The container's row.
    pub(crate) async fn container(&self, uid: &Uid) -> ContainerRow {
        let mut connection = self.world.deps.db.read().await.unwrap();
        container::get(&mut connection, uid).await.unwrap().unwrap()
    }

    /// The object's row.
    pub(crate) async fn object(&self, kind: Kind, uid: &Uid) -> Option<ObjectRow> {
        let mut connection = self.world.deps.db.read().await.unwrap();
        object::get(&mut connection, kind, uid).await.unwrap()
    }
}
