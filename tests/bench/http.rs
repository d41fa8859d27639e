//! Requests a second over kept connections, against a bare warp server that answers the same bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use kit::engine::FakeEngine;
use schema::clock::{Clock, SystemClock};
use schema::container::Desired;
use tokio::net::{TcpListener, TcpStream};
use warp::Filter;

use crate::in_process::InProcess;

const CONNECTIONS: usize = 8;
const REQUESTS: usize = 5_000;

pub async fn run() {
    let bench = InProcess::start(FakeEngine::new(Arc::new(SystemClock))).await;
    bench.create_users(1, Desired::Stopped).await;
    let address: SocketAddr = bench
        .service
        .address
        .trim_start_matches("http://")
        .parse()
        .unwrap();
    let cookie = cookie(&bench).await;

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let bare = listener.local_addr().unwrap();
    let health = warp::path!("api" / "health")
        .map(|| warp::reply::json(&serde_json::json!({"status": "ok", "version": "0.1.0"})));
    let server = tokio::spawn(warp::serve(health).incoming(listener).run());

    println!("http: {CONNECTIONS} connections, {REQUESTS} requests each");
    let base = rate(bare, "/api/health", "").await;
    println!("  bare warp             {base:>8.0}/s");
    for path in ["/api/health", "/api/user/info"] {
        let ours = rate(address, path, &cookie).await;
        println!("  {path:<20}  {ours:>8.0}/s   ratio {:.2}", base / ours);
    }
    server.abort();
    bench.stop().await;
}

/// A session as a sign-in would issue it.
async fn cookie(bench: &InProcess) -> String {
    let name: schema::ids::UserName = "user0".parse().unwrap();
    let mut tx = bench.prepared.db.begin().await.unwrap();
    let user = schema::user::find(&mut tx, &name).await.unwrap().unwrap();
    let now = SystemClock.now();
    let issued = schema::session::issue(&mut tx, &user.uid, now, "127.0.0.1", "web")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let signer = api::auth::Signer::new(&bench.prepared.session_secret).unwrap();
    let claims =
        api::auth::session::SessionClaims::new(name, schema::ids::Timestamp::from_secs(issued));
    format!("session={}", claims.to_cookie_value(&signer))
}

async fn rate(address: SocketAddr, path: &'static str, cookie: &str) -> f64 {
    let begin = Instant::now();
    let mut lanes = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let cookie = cookie.to_owned();
        lanes.spawn(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream))
                    .await
                    .unwrap();
            let driver = tokio::spawn(connection);
            for _ in 0..REQUESTS {
                let request = http::Request::get(path)
                    .header("host", "bench")
                    .header("cookie", &cookie)
                    .body(Empty::<Bytes>::new())
                    .unwrap();
                let response = sender.send_request(request).await.unwrap();
                assert_eq!(response.status(), 200);
                response.into_body().collect().await.unwrap();
            }
            driver.abort();
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane.unwrap();
    }
    (CONNECTIONS * REQUESTS) as f64 / begin.elapsed().as_secs_f64()
}
