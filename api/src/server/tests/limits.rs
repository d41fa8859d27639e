//! Clients that are slow, or too many.

use super::*;

#[tokio::test]
async fn l63_connections_that_send_no_whole_request_are_closed() {
    let running = serve(hasty()).await;
    for bytes in [
        b"".as_slice(),
        b"G",
        b"GET /api/health HTTP/1.1\r\nhost: t",
        b"PRI * HTTP",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let patience = patience(&running, bytes).await;
        assert!(
            patience < Duration::from_secs(2),
            "{patience:?} for {bytes:?}"
        );
    }
    running.stop().await;
}

#[tokio::test]
async fn l63_a_connection_kept_alive_must_send_its_next_request_in_time() {
    let running = serve(hasty()).await;
    let request = b"GET /api/health HTTP/1.1\r\nhost: t\r\n\r\nGET /";
    assert!(patience(&running, request).await < Duration::from_secs(2));
    running.stop().await;
}

#[tokio::test]
async fn l63_an_http2_connection_without_open_requests_is_closed() {
    let running = serve(Limits {
        idle: Duration::from_millis(300),
        ..hasty()
    })
    .await;
    let stream = TokioIo::new(running.connect().await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream)
            .await
            .unwrap();
    let tracker = TaskTracker::new();
    let ended = tracker.spawn(async move {
        let _ = connection.await;
        Instant::now()
    });
    let mut ask = async |path: &str| {
        let uri = format!("http://test{path}");
        let request = Request::get(uri).body(Full::default()).unwrap();
        sender.send_request(request).await.unwrap()
    };
    // An answer that goes on is an open request, however quiet.
    let mut events = ask("/readyz").await.into_body();
    let first = events.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "data: first\n\n");
    sleep(Duration::from_millis(900)).await;
    assert_eq!(ask("/api/health").await.status(), 200);
    drop(events);
    let idle_since = Instant::now();
    let closed = timeout(Duration::from_secs(5), ended)
        .await
        .unwrap()
        .unwrap();
    let idle = closed - idle_since;
    assert!((250..2000).contains(&idle.as_millis()), "{idle:?}");
    running.stop().await;
}

#[tokio::test]
async fn l63_a_client_that_reads_no_more_is_given_up() {
    let running = serve(Limits {
        stall: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    let watchers = || running.world.deps.watch.numbers().watchers;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = running.connect().await;
        let request = b"GET /api/login/mode HTTP/1.1\r\nhost: t\r\n\r\n";
        client.write_all(request).await.unwrap();
        client.read_exact(&mut [0; 12]).await.unwrap();
        clients.push(client);
    }
    assert_eq!(watchers(), 2);
    let mut reading = clients.pop().unwrap();
    let reads = async {
        let mut piece = [0; 4096];
        while watchers() == 2 {
            reading.read_exact(&mut piece).await.unwrap();
        }
        // Whoever reads goes on.
        for _ in 0..1000 {
            reading.read_exact(&mut piece).await.unwrap();
        }
    };
    timeout(Duration::from_secs(20), reads).await.unwrap();
    assert_eq!(watchers(), 1);
    running.stop().await;
}

#[tokio::test]
async fn l63_one_client_cannot_take_all_connections() {
    let running = serve(Limits {
        per_client: 2,
        ..Limits::default()
    })
    .await;
    let held = [running.connect().await, running.connect().await];
    sleep(Duration::from_millis(50)).await;
    let mut third = running.connect().await;
    let mut nothing = Vec::new();
    let closed = timeout(Duration::from_secs(5), third.read_to_end(&mut nothing));
    // Closed without an answer; a reset says the same.
    assert_eq!(closed.await.unwrap().unwrap_or_default(), 0);
    drop(held);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(running.send(get("/api/health")).await.status(), 200);
    running.stop().await;
}

#[tokio::test]
async fn a_request_may_take_longer_than_the_time_for_its_head() {
    let running = serve(Limits {
        head: Duration::from_millis(100),
        ..Limits::default()
    })
    .await;
    let mut request = get("/api/config");
    let cookie = running.world.cookie("root").parse().unwrap();
    request.headers_mut().insert("cookie", cookie);
    assert_eq!(running.send(request).await.status(), 200);
    running.stop().await;
}

#[tokio::test]
async fn the_number_of_connections_is_bounded() {
    let running = serve(Limits {
        connections: 2,
        ..Limits::default()
    })
    .await;
    let held = [running.connect().await, running.connect().await];
    sleep(Duration::from_millis(50)).await;
    let mut third = Box::pin(running.send(get("/api/health")));
    assert!(
        timeout(Duration::from_millis(300), &mut third)
            .await
            .is_err()
    );
    drop(held);
    assert_eq!(
        timeout(Duration::from_secs(5), third)
            .await
            .unwrap()
            .status(),
        200
    );
    running.stop().await;
}
