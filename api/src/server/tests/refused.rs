//! What strangers can have refused: it costs an answer, and hardly a line of the log.

use super::*;

/// Lines of the log at this level.
fn at_level<'a>(text: &'a str, level: &str) -> Vec<&'a str> {
    let level = format!(" {level} ");
    text.lines().filter(|line| line.contains(&level)).collect()
}

/// Everything that is answered to these bytes, until the server closes.
async fn answer_to(running: &Running, bytes: &[u8]) -> String {
    let mut stream = running.connect().await;
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer));
    read.await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn l70_requests_whose_target_has_no_path_are_refused_and_nothing_panics() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let running = serve(hasty()).await;
    let tunnel = b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n";
    let answer = answer_to(&running, tunnel).await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.contains("\r\nallow: GET, HEAD, POST, OPTIONS\r\n"));
    assert!(answer.contains("method_not_allowed") && answer.contains("x-frame-options: DENY"));
    let bare = answer_to(&running, b"GET a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n").await;
    assert!(bare.starts_with("HTTP/1.1 400 "), "{bare}");
    assert!(bare.contains("invalid_request"), "{bare}");
    for other in ["OPTIONS * HTTP/1.1", "GET * HTTP/1.1", "POST a:1 HTTP/1.1"] {
        let request = format!("{other}\r\nhost: t\r\n\r\n");
        let answer = answer_to(&running, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{other}: {answer}");
    }
    let stream = TokioIo::new(running.connect().await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream)
            .await
            .unwrap();
    let refused = async {
        let request = Request::connect("a:1").body(Full::default()).unwrap();
        let status = sender.send_request(request).await.unwrap().status();
        drop(sender);
        status
    };
    let (status, _) = tokio::join!(refused, connection);
    assert_eq!(status, 405);
    running.stop().await;
    let text = lines.text();
    assert!(at_level(&text, "ERROR").is_empty(), "{text}");
}

#[tokio::test]
async fn l70_refused_requests_leave_one_line_a_second_and_their_number() {
    const REQUESTS: usize = 300;
    let lines = Lines::default();
    let guard = lines.collect();
    let running = serve(Limits::default()).await;
    let begun = Instant::now();
    let mut requests = String::new();
    for n in 0..REQUESTS {
        requests.push_str(match n % 3 {
            0 => "GET /nothing HTTP/1.1\r\nhost: t\r\n\r\n",
            1 => "POST /api/admin/container/start HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n\r\n",
            // Refuses nobody, and nobody known sent it.
            _ => "POST /api/logout HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n\r\n",
        });
    }
    let (mut reader, mut writer) = running.connect().await.into_split();
    let write = async { writer.write_all(requests.as_bytes()).await.unwrap() };
    let read = async {
        let (mut piece, mut seen) = (vec![0; 4096], String::new());
        while seen.matches("HTTP/1.1 ").count() < REQUESTS {
            let length = reader.read(&mut piece).await.unwrap();
            assert!(length > 0, "closed early");
            seen.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
    };
    tokio::join!(write, read);
    running.stop().await;
    drop(guard);
    let text = lines.text();
    let mut written = at_level(&text, "INFO");
    written.retain(|line| line.contains("access_log"));
    let seconds = begun.elapsed().as_secs() + 1;
    // The last is written at the end, whenever that is.
    let most = usize::try_from(seconds).unwrap() + 1;
    assert!(written.len() <= most, "{} in {seconds} s", written.len());
    assert!(written[0].contains("status=404") && written[0].contains("client=\"127.0.0.1\""));
    let requests = written.iter().filter(|line| line.contains("status="));
    let left_out = written.iter().map(|line| {
        let (_, number) = line.split_once("left_out=").unwrap_or(("", "0"));
        number.split(' ').next().unwrap().parse::<usize>().unwrap()
    });
    assert_eq!(
        requests.count() + left_out.sum::<usize>(),
        REQUESTS,
        "{text}"
    );
    assert!(at_level(&text, "WARN").is_empty() && at_level(&text, "ERROR").is_empty());
}

/// All that is answered to an upload that is sent to its end before anybody reads.
async fn answer_to_upload(running: &Running, head: &str, body: &[u8]) -> String {
    let mut stream = running.connect().await;
    let head = format!(
        "POST /api/admin/container/start HTTP/1.1\r\nhost: test\r\ncookie: {}\r\nx-csrf-token: {}\r\n\
         content-type: application/x-www-form-urlencoded\r\n{head}\r\n\r\n",
        running.world.cookie("root"),
        running.world.token("root"),
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
    read.await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn l22_an_upload_past_its_limit_gets_its_answer_although_it_is_sent_to_the_end() {
    const SIZE: usize = 20 * 1024 * 1024;
    let running = serve(Limits::default()).await;
    let length = format!("content-length: {SIZE}");
    let answer = answer_to_upload(&running, &length, &vec![b'a'; SIZE]).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.ends_with(r#""success":false}"#), "{answer}");
    let mut chunked = format!("{SIZE:x}\r\n").into_bytes();
    chunked.extend_from_slice(&vec![b'a'; SIZE]);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let answer = answer_to_upload(&running, "transfer-encoding: chunked", &chunked).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.ends_with(r#""success":false}"#), "{answer}");
    running.stop().await;
}

#[tokio::test]
async fn a_request_of_http_1_1_says_once_whom_it_is_for() {
    let running = serve(hasty()).await;
    for (head, status) in [
        ("GET /api/health HTTP/1.1\r\nhost: t\r\n\r\n", 200),
        ("GET /api/health HTTP/1.1\r\n\r\n", 400),
        ("GET http://t/api/health HTTP/1.1\r\n\r\n", 400),
        (
            "GET /api/health HTTP/1.1\r\nhost: t\r\nhost: t\r\n\r\n",
            400,
        ),
        ("GET /api/health HTTP/1.0\r\n\r\n", 200),
        (
            "GET /api/health HTTP/1.0\r\nhost: t\r\nhost: u\r\n\r\n",
            400,
        ),
    ] {
        let answer = answer_to(&running, head.as_bytes()).await;
        assert!(answer.contains(&format!(" {status} ")), "{head}: {answer}");
        assert_eq!(
            answer.contains("invalid_request"),
            status == 400,
            "{answer}"
        );
    }
    running.stop().await;
}
