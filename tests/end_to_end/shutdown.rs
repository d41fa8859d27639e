//! The service ends when asked to, whoever is still listening to it.

use crate::support::{Engine, PATIENCE, Stage, seconds};

const GRACE: std::time::Duration = seconds(10);

#[tokio::test]
async fn engine_asked_to_end_with_an_open_log_stream_it_ends_in_time_and_leaves_containers_alone() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let mut service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    admin.create_user("bob").await;
    let running = engine.the_running("bob");
    let mut stream = admin
        .stream("/api/admin/container/logs?username=bob&follow=true")
        .await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let piece = stream.next().await.unwrap().unwrap();
    assert!(!piece.is_empty());

    service.terminate();
    let status = service.ended_within(GRACE).await;
    assert_eq!(status.code(), Some(0), "{status}");
    // The stream has an end, too.
    let rest = async { while let Some(Ok(_)) = stream.next().await {} };
    tokio::time::timeout(PATIENCE, rest).await.unwrap();
    assert_eq!(engine.the_running("bob"), running);
    assert!(!stage.data().join("admin.sock").exists());
}

#[tokio::test]
async fn service_manager_is_notified_of_readiness_and_end() {
    let stage = Stage::new();
    let socket = stage.path().join("notify.sock");
    let manager = tokio::net::UnixDatagram::bind(&socket).unwrap();
    let receive = async |line: &str| {
        let mut buffer = [0; 4096];
        let received = async {
            loop {
                let count = manager.recv(&mut buffer).await.unwrap();
                let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                if text.lines().any(|found| found.starts_with(line)) {
                    return text;
                }
            }
        };
        tokio::time::timeout(PATIENCE, received).await.unwrap()
    };
    let mut service = stage
        .alone()
        .env("NOTIFY_SOCKET", &socket.display().to_string())
        .env("WATCHDOG_USEC", "600000")
        .start()
        .await;
    let first = receive("READY=1").await;
    assert!(
        first.contains("WATCHDOG=1\nSTATUS=serving at http"),
        "{first}"
    );
    receive("WATCHDOG=1").await;
    service.terminate();
    receive("STOPPING=1").await;
    assert_eq!(service.ended_within(GRACE).await.code(), Some(0));
}

#[tokio::test]
async fn asked_to_end_while_a_request_waits_it_ends_in_time() {
    let stage = Stage::new();
    let mut service = stage.alone().start().await;
    let admin = service.admin().await;
    let waiting = {
        let admin = admin.clone();
        async move {
            let form = [("username", "bob"), ("wait", "100")];
            admin.try_post("/api/admin/users/create", &form).await
        }
    };
    let ending = async {
        // The request is under way as soon as its user is there.
        crate::support::until("bob is recorded", seconds(20), async || {
            admin.user("bob").await.is_some()
        })
        .await;
        service.terminate();
        service.ended_within(GRACE).await
    };
    let (answer, status) = tokio::join!(waiting, ending);
    assert_eq!(status.code(), Some(0), "{status}");
    // What was recorded is either answered, or the connection ended: never a made-up success.
    if let Ok(answer) = answer {
        answer.pending();
    }
}

#[tokio::test]
async fn idle_connections_do_not_hold_the_end_up() {
    let stage = Stage::new();
    let mut service = stage.alone().start().await;
    let mut idle = Vec::new();
    for _ in 0..5 {
        idle.push(
            tokio::net::TcpStream::connect(service.address())
                .await
                .unwrap(),
        );
    }
    service.client().get("/api/health").await.expect(200);
    service.terminate();
    let status = service.ended_within(GRACE).await;
    assert_eq!(status.code(), Some(0), "{status}");
}
