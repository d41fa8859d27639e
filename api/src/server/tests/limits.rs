//! Clients that are slow, or too many.
//!
//! What is a matter of time is asked of connections in memory, on a clock that moves only when nothing
//! is left to do.

use tokio::io::{DuplexStream, duplex};

use super::*;

/// Connections in memory.
struct Quiet {
    world: World,
    signs: Signs,
    stack: Stack,
    graceful: GracefulShutdown,
    limits: Limits,
    connections: TaskTracker,
}

async fn quiet(limits: Limits) -> Quiet {
    let world = world().await;
    let signs = Signs::default();
    let stack = layers::stack(world.api(handlers(&signs)).filter());
    tokio::time::pause();
    Quiet {
        world,
        signs,
        stack,
        graceful: GracefulShutdown::new(),
        limits,
        connections: TaskTracker::new(),
    }
}

impl Quiet {
    fn connect(&self) -> DuplexStream {
        let (near, far) = duplex(64 * 1024);
        let (stack, watcher) = (self.stack.clone(), self.graceful.watcher());
        let peer = Peer::default();
        let talk = connection::talk(far, peer, stack, watcher, self.limits);
        self.connections.spawn(talk);
        near
    }
}

#[tokio::test]
async fn l63_connections_that_send_no_whole_request_are_closed() {
    let quiet = quiet(hasty()).await;
    for bytes in [
        b"".as_slice(),
        b"G",
        b"GET /api/health HTTP/1.1\r\nhost: t",
        b"PRI * HTTP",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let patience = patience(quiet.connect(), bytes).await;
        assert!(
            (250..600).contains(&patience.as_millis()),
            "{patience:?} for {bytes:?}"
        );
    }
}

#[tokio::test]
async fn l63_a_connection_kept_alive_must_send_its_next_request_in_time() {
    let quiet = quiet(hasty()).await;
    let request = b"GET /api/health HTTP/1.1\r\nhost: t\r\n\r\nGET /";
    let patience = patience(quiet.connect(), request).await;
    assert!((250..600).contains(&patience.as_millis()), "{patience:?}");
}

#[tokio::test]
async fn l63_an_http2_connection_without_open_requests_is_closed() {
    let quiet = quiet(Limits {
        idle: Duration::from_millis(300),
        ..hasty()
    })
    .await;
    let stream = TokioIo::new(quiet.connect());
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
    assert!((250..600).contains(&idle.as_millis()), "{idle:?}");
}

#[tokio::test]
async fn l63_a_client_that_reads_no_more_is_given_up() {
    let quiet = quiet(Limits {
        stall: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = quiet.connect();
        let request = b"GET /api/login/mode HTTP/1.1\r\nhost: t\r\n\r\n";
        client.write_all(request).await.unwrap();
        client.read_exact(&mut [0; 12]).await.unwrap();
        clients.push(client);
    }
    assert_eq!(quiet.signs.floods(), 2);
    let mut reading = clients.pop().unwrap();
    let mut piece = [0; 4096];
    let begun = Instant::now();
    while quiet.signs.floods() == 2 {
        reading.read_exact(&mut piece).await.unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    let patience = begun.elapsed();
    assert!((250..600).contains(&patience.as_millis()), "{patience:?}");
    // Whoever reads goes on.
    for _ in 0..1000 {
        reading.read_exact(&mut piece).await.unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(quiet.signs.floods(), 1);
}

type Http2 = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

/// An HTTP/2 connection with streams of so many bytes of window, which answers pings.
async fn http2(quiet: &Quiet, window: u32) -> Http2 {
    let stream = TokioIo::new(quiet.connect());
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (sender, connection) = builder.handshake(stream).await.unwrap();
    quiet.connections.spawn(async {
        let _ = connection.await;
    });
    sender
}

async fn get_over(sender: &mut Http2, path: &str) -> Response<hyper::body::Incoming> {
    let uri = format!("http://test{path}");
    let request = Request::get(uri).body(Full::default()).unwrap();
    sender.send_request(request).await.unwrap()
}

#[tokio::test]
async fn l63_unread_http2_stream_is_reset_and_others_go_on() {
    let quiet = quiet(Limits {
        stall: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    let (mut sender, mut narrow) = (http2(&quiet, 4096).await, http2(&quiet, 16).await);
    let mut events = get_over(&mut sender, "/readyz").await.into_body();
    events.frame().await.unwrap().unwrap();
    let mut reading = get_over(&mut sender, "/api/login/mode").await.into_body();
    let begun = Instant::now();
    let unread = get_over(&mut sender, "/api/login/mode").await.into_body();
    let small = get_over(&mut narrow, "/api/health").await.into_body();
    assert_eq!(quiet.signs.floods(), 2);
    while quiet.signs.floods() == 2 {
        reading.frame().await.unwrap().unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    let patience = begun.elapsed();
    assert!((250..600).contains(&patience.as_millis()), "{patience:?}");
    for mut body in [unread, small] {
        let error = loop {
            match body.frame().await.unwrap() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("body"), "{error}");
    }
    for _ in 0..1000 {
        reading.frame().await.unwrap().unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    // A stream whose producer is quiet is none whose peer does not read.
    let quiet_for = timeout(Duration::from_millis(900), events.frame()).await;
    assert!(quiet_for.is_err());
}

#[tokio::test]
async fn l63_unread_answers_of_one_client_take_its_part_of_memory() {
    // As much as one address may have, at 8 KiB each.
    const MOST: usize = 2048;
    let quiet = quiet(Limits::default()).await;
    let mut unread = Vec::new();
    let mut senders = Vec::new();
    for n in 0..=MOST {
        if n % 100 == 0 {
            senders.push(http2(&quiet, 16).await);
        }
        let answer = get_over(senders.last_mut().unwrap(), "/api/login/mode").await;
        let expected = if n < MOST { 200 } else { 503 };
        assert_eq!(answer.status(), expected, "{n}");
        unread.push(answer);
    }
    // Superadmins have their own.
    let mut request = get("/api/config");
    let cookie = quiet.world.cookie("root").parse().unwrap();
    request.headers_mut().insert("cookie", cookie);
    assert_eq!(send_over(quiet.connect(), request).await.status(), 200);
    sleep(Duration::from_secs(31)).await;
    let again = get_over(senders.last_mut().unwrap(), "/api/login/mode").await;
    assert_eq!(again.status(), 200);
}

#[tokio::test]
async fn a_request_may_take_longer_than_the_time_for_its_head() {
    let quiet = quiet(Limits {
        head: Duration::from_millis(100),
        ..Limits::default()
    })
    .await;
    let mut request = get("/api/config");
    let cookie = quiet.world.cookie("root").parse().unwrap();
    request.headers_mut().insert("cookie", cookie);
    assert_eq!(send_over(quiet.connect(), request).await.status(), 200);
}

/// A connection that the server has accepted: it has answered there.
async fn held(running: &Running) -> TcpStream {
    let mut stream = running.connect().await;
    let request = b"GET /api/health HTTP/1.1\r\nhost: t\r\n\r\n";
    stream.write_all(request).await.unwrap();
    stream.read_exact(&mut [0; 12]).await.unwrap();
    stream
}

#[tokio::test]
async fn l63_one_client_cannot_take_all_connections() {
    let running = serve(Limits {
        per_client: 2,
        ..Limits::default()
    })
    .await;
    let places = [held(&running).await, held(&running).await];
    let mut third = running.connect().await;
    let mut nothing = Vec::new();
    let closed = timeout(Duration::from_secs(20), third.read_to_end(&mut nothing));
    // Closed without an answer; a reset says the same.
    assert_eq!(closed.await.unwrap().unwrap_or_default(), 0);
    drop(places);
    // The places are free once the server has noticed that their connections have ended.
    let served = async {
        let mut first = [0; 12];
        let request = b"GET /api/health HTTP/1.1\r\nhost: t\r\n\r\n";
        loop {
            let mut stream = running.connect().await;
            if stream.write_all(request).await.is_ok()
                && stream.read_exact(&mut first).await.is_ok()
            {
                return first;
            }
        }
    };
    let first = timeout(Duration::from_secs(20), served).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    running.stop().await;
}

#[tokio::test]
async fn the_number_of_connections_is_bounded() {
    let running = serve(Limits {
        connections: 2,
        ..Limits::default()
    })
    .await;
    let mut places = [held(&running).await, held(&running).await];
    let mut third = Box::pin(running.send(get("/api/health")));
    // While others are served, however often, it is not.
    for _ in 0..50 {
        assert!(futures::poll!(&mut third).is_pending());
        let request = b"GET /api/health HTTP/1.1\r\nhost: t\r\n\r\n";
        places[0].write_all(request).await.unwrap();
        places[0].read_exact(&mut [0; 100]).await.unwrap();
    }
    drop(places);
    let answer = timeout(Duration::from_secs(20), third).await.unwrap();
    assert_eq!(answer.status(), 200);
    running.stop().await;
}
