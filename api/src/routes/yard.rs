//! A service with accounts in its database, reached as clients reach it.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use schema::container::Desired;
use schema::db::Tx;
use schema::ids::{Uid, UserName};
use schema::user::{self, NewUser, Source, User};
use serde_json::Value;
use warp::filters::BoxedFilter;

use crate::auth::password::hash_cheaply;
use crate::dispatch::Api;
use crate::openapi::conformance;
use crate::server::{Peer, RequestContext, Surface};
use crate::testing::{NOW, World, world};

/// Everybody's password.
pub(in crate::routes) const PASSWORD: &str = "correct horse";

/// The service with the ordinary users `alice` and `bob` and the superadmin `root`.
pub(in crate::routes) struct Yard {
    pub(in crate::routes) world: World,
    filter: BoxedFilter<(crate::reply::Response,)>,
}

/// A request under construction.
pub(in crate::routes) struct Ask<'a> {
    yard: &'a Yard,
    method: String,
    request: warp::test::RequestBuilder,
    who: Option<(&'a str, &'a str)>,
}

/// An answer.
#[derive(Debug)]
pub(in crate::routes) struct Answer {
    pub(in crate::routes) status: StatusCode,
    pub(in crate::routes) headers: HeaderMap,
    pub(in crate::routes) text: String,
    pub(in crate::routes) body: Value,
}

impl Answer {
    /// Status and code of a failure; the code of a success is empty.
    pub(in crate::routes) fn verdict(&self) -> (u16, &str) {
        let code = self.body["code"].as_str().unwrap_or_default();
        (self.status.as_u16(), code)
    }

    /// The cookie that was set, as a client sends it back.
    pub(in crate::routes) fn cookie(&self) -> String {
        let cookie = self.headers[SET_COOKIE].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }
}

/// The context of a request from an address.
pub(in crate::routes) fn from_address(address: &str) -> RequestContext {
    RequestContext {
        peer: Peer {
            addr: Some(address.parse().unwrap()),
            ..Peer::default()
        },
        host: Some("agents.example".to_owned()),
        ..RequestContext::default()
    }
}

/// The context of a request through the admin socket.
pub(in crate::routes) fn from_socket() -> RequestContext {
    RequestContext {
        peer: Peer {
            socket_uid: Some(0),
            surface: Surface::AdminSocket,
            ..Peer::default()
        },
        ..RequestContext::default()
    }
}

pub(in crate::routes) async fn yard() -> Yard {
    let world = world().await.with_database_sessions();
    let api = Api::new(crate::routes::all(), world.deps.clone()).unwrap();
    let filter = api.filter();
    let yard = Yard { world, filter };
    for name in ["alice", "bob"] {
        yard.create_user(name).await;
    }
    yard.create_superadmin("root").await;
    yard
}

impl Yard {
    pub(in crate::routes) async fn tx(&self) -> Tx {
        self.world.db.begin().await.unwrap()
    }

    pub(in crate::routes) async fn create_user(&self, name: &str) -> Uid {
        let uid = Uid::random();
        let new = NewUser {
            uid: uid.clone(),
            name: name.parse().unwrap(),
            source: Source::Local,
            password_hash: Some(hash_cheaply(PASSWORD)),
            image_ref: "echo:1".to_owned(),
            desired: Desired::Running,
        };
        let mut tx = self.tx().await;
        user::create(&mut tx, &new, NOW).await.unwrap();
        tx.commit().await.unwrap();
        uid
    }

    pub(in crate::routes) async fn create_superadmin(&self, name: &str) {
        let hash = hash_cheaply(PASSWORD);
        let mut tx = self.tx().await;
        user::create_superadmin(&mut tx, &name.parse().unwrap(), &hash, NOW)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    pub(in crate::routes) async fn find(&self, name: &str) -> Option<User> {
        let name: UserName = name.parse().unwrap();
        let mut connection = self.world.deps.db.read().await.unwrap();
        user::find(&mut connection, &name).await.unwrap()
    }

    /// An answer as it is.
    pub(in crate::routes) async fn raw(
        &self,
        request: warp::test::RequestBuilder,
    ) -> http::Response<Bytes> {
        request.reply(&self.filter).await
    }

    pub(in crate::routes) fn get(&self, path: &str) -> Ask<'_> {
        Ask {
            yard: self,
            method: "GET".to_owned(),
            request: warp::test::request().path(path),
            who: None,
        }
    }

    pub(in crate::routes) fn post(&self, path: &str, form: &[(&str, &str)]) -> Ask<'_> {
        let encode = |text: &str| {
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
                .to_string()
        };
        let pairs: Vec<String> = form
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        let mut ask = self.get(path).method("POST");
        ask.request = ask
            .request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(pairs.join("&"));
        ask
    }

    pub(in crate::routes) fn upload(&self, path: &str, file: &[u8]) -> Ask<'_> {
        self.multipart(path, crate::routes::adapter::tests::body(file))
    }

    /// A form whose boundary is `X`.
    pub(in crate::routes) fn multipart(&self, path: &str, body: Vec<u8>) -> Ask<'_> {
        let mut ask = self.get(path).method("POST");
        ask.request = ask
            .request
            .header(CONTENT_TYPE, "multipart/form-data; boundary=X")
            .body(body);
        ask
    }

    pub(in crate::routes) fn post_json(&self, path: &str, body: &Value) -> Ask<'_> {
        self.post_raw(path, "application/json", &body.to_string())
    }

    pub(in crate::routes) fn post_raw(&self, path: &str, kind: &str, body: &str) -> Ask<'_> {
        let mut ask = self.get(path).method("POST");
        ask.request = ask.request.header(CONTENT_TYPE, kind).body(body);
        ask
    }

    pub(in crate::routes) fn login(&self, name: &str, password: &str) -> Ask<'_> {
        let form = [("username", name), ("password", password)];
        self.post("/api/login", &form)
    }

    /// Signs in and gives the cookie.
    pub(in crate::routes) async fn sign_in(&self, name: &str) -> String {
        let answer = self.login(name, PASSWORD).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.cookie()
    }

    /// Changes where users come from, without a test, after the plan was read.
    pub(in crate::routes) async fn switch_mode(&self, root: &str, config: &Value) -> Answer {
        let config = config.to_string();
        let save = async |more: [(&str, &str); 2]| {
            let form = [("config", &*config), more[0], more[1]];
            self.post("/api/config", &form)
                .with("root", root)
                .send()
                .await
        };
        let plan = save([("dry_run", "1"), ("force", "1")]).await;
        let confirm = plan.body["purge"]["confirm"].as_str().unwrap();
        save([("confirm", confirm), ("force", "1")]).await
    }

    /// Whether a cookie is good for anything.
    pub(in crate::routes) async fn lives(&self, cookie: &str) -> bool {
        let mut ask = self.get("/api/user/info");
        ask.request = ask.request.header(COOKIE, cookie);
        match ask.send().await.status.as_u16() {
            200 => true,
            401 => false,
            other => panic!("{other}"),
        }
    }
}

impl<'a> Ask<'a> {
    /// With the session of this cookie, and its CSRF token.
    pub(in crate::routes) fn with(mut self, name: &'a str, cookie: &'a str) -> Self {
        self.who = Some((name, cookie));
        self
    }

    pub(in crate::routes) fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub(in crate::routes) fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self.request = self.request.method(method);
        self
    }

    pub(in crate::routes) fn context(mut self, context: RequestContext) -> Self {
        self.request = self.request.extension(context);
        self
    }

    pub(in crate::routes) async fn send(self) -> Answer {
        let mut request = self.request;
        if let Some((name, cookie)) = self.who {
            request = request
                .header(COOKIE, cookie)
                .header("x-csrf-token", self.yard.world.token(name));
        }
        let response: http::Response<Bytes> = request.reply(&self.yard.filter).await;
        conformance::check_response(&self.method, &response);
        let text = String::from_utf8_lossy(response.body()).into_owned();
        Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: serde_json::from_str(&text).unwrap_or(Value::Null),
            text,
        }
    }
}
