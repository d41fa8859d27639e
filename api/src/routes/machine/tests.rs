//! Routes of the admin socket.

use bytes::Bytes;
use http::Response;
use schema::audit::{self, Record};
use serde_json::{Value, json};
use warp::filters::BoxedFilter;

use crate::dispatch::Api;
use crate::openapi;
use crate::route::Verb;
use crate::routes::files::tests::make_home;
use crate::routes::yard::{Yard, from_address, from_socket, yard};
use crate::server::{RequestContext, Surface};

struct Machine {
    yard: Yard,
    filter: BoxedFilter<(crate::reply::Response,)>,
}

async fn machine() -> Machine {
    let yard = yard().await;
    make_home(&yard, "alice").await;
    let routes = [crate::routes::all(), crate::routes::on_machine()];
    let routes = routes.into_iter().flatten().collect();
    let filter = Api::new(routes, yard.world.deps.clone()).unwrap().filter();
    Machine { yard, filter }
}

fn form(path: &str, overwrite: bool, name: &str, content: &[u8]) -> Vec<u8> {
    let mut body = format!(
        "--X\r\nContent-Disposition: form-data; name=\"path\"\r\n\r\n{path}\r\n\
         --X\r\nContent-Disposition: form-data; name=\"overwrite\"\r\n\r\n{overwrite}\r\n\
         --X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(content);
    body.extend_from_slice(b"\r\n--X--\r\n");
    body
}

impl Machine {
    async fn send(
        &self,
        request: warp::test::RequestBuilder,
        from: RequestContext,
    ) -> Response<Bytes> {
        request.extension(from).reply(&self.filter).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let request = warp::test::request().path(path);
        read(&self.send(request, from_socket()).await)
    }

    async fn post(&self, path: &str, body: &Value) -> Response<Bytes> {
        let request = warp::test::request().method("POST").path(path).json(body);
        self.send(request, from_socket()).await
    }

    async fn upload(&self, body: Vec<u8>) -> (u16, Value) {
        let request = warp::test::request()
            .method("POST")
            .path("/api/machine/users/alice/files/upload")
            .header("content-type", "multipart/form-data; boundary=X")
            .body(body);
        read(&self.send(request, from_socket()).await)
    }

    async fn trail(&self) -> Vec<Record> {
        let mut connection = self.yard.world.db.read().await.unwrap();
        audit::following(&mut connection, 0, 10_000).await.unwrap()
    }
}

fn read(response: &Response<Bytes>) -> (u16, Value) {
    let body = serde_json::from_slice(response.body()).unwrap_or_default();
    (response.status().as_u16(), body)
}

#[tokio::test]
async fn machine_routes_are_nowhere_but_on_the_socket() {
    let machine = machine().await;
    let mut cookies = vec![(String::new(), String::new())];
    for name in ["alice", "root"] {
        let cookie = machine.yard.sign_in(name).await;
        cookies.push((cookie, machine.yard.world.token(name)));
    }
    let agents = || {
        let mut context = from_address("10.88.0.7:1");
        context.peer.surface = Surface::Agent;
        context
    };
    for route in crate::routes::on_machine() {
        assert!(route.on_machine, "{route:?}");
        let path = route.path.replace("{username}", "alice");
        let method = route.method();
        for (cookie, token) in &cookies {
            for bearer in ["", "alice:0000", "agentyard_anything"] {
                for context in [from_address("10.0.0.1:1"), agents()] {
                    for path in [path.clone(), path.replace("/api/", "/api/v1/")] {
                        let request = warp::test::request()
                            .method(method.as_str())
                            .path(&path)
                            .header("cookie", cookie)
                            .header("x-csrf-token", token)
                            .header("authorization", format!("Bearer {bearer}"))
                            .header("upgrade", "websocket");
                        let (status, body) = read(&machine.send(request, context.clone()).await);
                        assert_eq!(
                            (status, &body["code"]),
                            (404, &json!("not_found")),
                            "{route:?}"
                        );
                    }
                }
            }
        }
        // There it exists, and its answer is about the user.
        let path = path.replace("alice", "carol");
        let (status, body) = match route.verb {
            Verb::Get => machine.get(&path).await,
            _ => read(
                &machine
                    .post(&path, &json!({"path": "x", "name": "x"}))
                    .await,
            ),
        };
        let text = body["error"].as_str().unwrap_or_default();
        let is_there = status == 415 || text.contains("carol");
        assert!(is_there, "{route:?}: {status} {body}");
    }
    let document = openapi::document(&crate::routes::all())
        .unwrap()
        .to_string();
    assert!(!document.contains("/api/machine"));
}

#[tokio::test]
async fn copies_take_the_way_of_users_files_and_are_recorded() {
    let machine = machine().await;
    let files = "/api/machine/users/alice/files";
    assert_eq!(machine.get(files).await.1["kind"], "directory");
    let made = machine
        .post(&format!("{files}/mkdir"), &json!({"name": "notes"}))
        .await;
    assert_eq!(read(&made).0, 200, "{made:?}");
    let (status, answer) = machine.upload(form("notes", false, "a.txt", b"one")).await;
    assert_eq!(status, 200, "{answer}");
    // Nothing is replaced unless that is wanted, no limit is passed, and no path leaves the workspace.
    let (status, _) = machine.upload(form("notes", false, "a.txt", b"two")).await;
    assert_eq!(status, 409);
    let (status, _) = machine.upload(form("notes", true, "a.txt", b"two")).await;
    assert_eq!(status, 200);
    let (status, _) = machine.upload(form("../x", false, "a.txt", b"x")).await;
    assert_eq!(status, 400);
    let long = vec![0; 32 * 1024 * 1024 + 1];
    assert_eq!(machine.upload(form("", false, "long", &long)).await.0, 413);
    let workspace = "users/alice/.agent/workspace";
    let workspace = machine.yard.world.data_dir().join(workspace);
    std::os::unix::fs::symlink("/etc", workspace.join("etc")).unwrap();
    let passwd = json!({"path": "etc/passwd"});
    let linked = machine.post(&format!("{files}/download"), &passwd).await;
    assert_eq!(read(&linked).1["code"], "symbolic_link");
    let kind = |path: &str| format!("{files}?path={path}");
    assert_eq!(machine.get(&kind("notes/a.txt")).await.1["kind"], "other");
    assert_eq!(machine.get(&kind("etc")).await.1["kind"], "other");
    assert_eq!(machine.get(&kind("none")).await.1["kind"], Value::Null);
    let download = format!("{files}/download");
    let file = machine
        .post(&download, &json!({"path": "notes/a.txt"}))
        .await;
    assert_eq!(file.body().as_ref(), b"two");
    let folder = machine.post(&download, &json!({"path": "notes"})).await;
    assert_eq!(folder.headers()["content-type"], "application/zip");

    let trail = machine.trail().await;
    let mut told: Vec<_> = trail
        .iter()
        .map(|record| &record.entry)
        .filter(|entry| entry.action.starts_with("copy_"))
        .map(|entry| {
            assert_eq!(entry.actor, "socket:0");
            assert_eq!(entry.object, "workspace/alice");
            assert!(!entry.detail.contains("a.txt"), "{entry:?}");
            entry.action.as_str()
        })
        .collect();
    told.sort_unstable();
    let expected = [
        "copy_in",
        "copy_in",
        "copy_mkdir",
        "copy_out",
        "copy_out",
        "copy_out",
    ];
    assert_eq!(told, expected);
}
