use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use super::*;
use crate::settings::CommonArgs;

/// A server that answers one connection after the other with what is written down for it. Gives the
/// `Last-Event-ID` of each.
struct Scripted {
    server: Server,
    asked: JoinHandle<Vec<Option<String>>>,
    _dir: tempfile::TempDir,
}

fn scripted(answers: Vec<String>) -> Scripted {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("admin.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let asked = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut last_id = None;
            for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                let line = line.unwrap();
                if line.is_empty() {
                    break;
                }
                if let Some(id) = line.strip_prefix("last-event-id: ") {
                    last_id = Some(id.to_owned());
                }
            }
            asked.push(last_id);
            stream.write_all(answer.as_bytes()).unwrap();
        }
        asked
    });
    let common = CommonArgs {
        admin_socket: Some(socket),
        ..CommonArgs::default()
    };
    Scripted {
        server: Server::resolve(&common).unwrap(),
        asked,
        _dir: dir,
    }
}

/// Events until the connection ends.
fn events(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}")
}

fn change(id: &str, name: &str) -> String {
    format!("id: {id}\ndata: {{\"object\":\"container/{name}\",\"ready\":\"True\"}}\n\n")
}

fn object(name: &str) -> Change {
    Change::Object(format!("container/{name}"))
}

#[tokio::test]
async fn l57_a_watch_goes_on_where_it_was_after_a_break_and_looks_again_after_a_restart() {
    let scripted = scripted(vec![
        events(&format!(
            "event: open\nid: x-9\ndata: {{}}\n\n{}",
            change("x-8", "a")
        )),
        // Cut in the middle of an event: it is not understood, and comes again.
        events(&format!(
            ": hello\n\nevent: open\nid: x-9\ndata: {{}}\n\n{}data: {{",
            change("x-9", "b")
        )),
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n".to_owned(),
        String::new(),
        events(&format!(
            "event: open\nid: y-1\ndata: {{}}\n\n{}",
            change("y-2", "c")
        )),
        events("event: resync\nid: y-5\ndata: {}\n\n:\nid:y-6\n\n"),
        events(&change("y-7", "d")),
    ]);
    let mut watch = Watch::since(&scripted.server, Some("x-7".to_owned()));
    let mut changes = Vec::new();
    for _ in 0..6 {
        changes.push(watch.next().await.unwrap());
    }
    let expected = [
        object("a"),
        object("b"),
        Change::Everything,
        object("c"),
        Change::Everything,
        object("d"),
    ];
    assert_eq!(changes, expected);
    let ids = scripted.asked.join().unwrap();
    let ids: Vec<&str> = ids.iter().map(|id| id.as_deref().unwrap()).collect();
    assert_eq!(ids, ["x-7", "x-8", "x-9", "x-9", "x-9", "y-2", "y-6"]);
}

#[tokio::test]
async fn a_server_that_answers_and_closes_at_once_is_not_asked_without_a_pause() {
    let mut answers = vec![events(""); 3];
    answers.push(events(&change("x-8", "a")));
    let scripted = scripted(answers);
    let mut watch = Watch::since(&scripted.server, Some("x-7".to_owned()));
    let began = Instant::now();
    assert_eq!(watch.next().await.unwrap(), object("a"));
    assert!(began.elapsed() >= SHORTEST * 3, "{:?}", began.elapsed());
}

#[tokio::test]
async fn without_a_place_to_continue_from_everything_is_read_first() {
    let scripted = scripted(vec![events(&format!(
        "event: open\nid: x-3\ndata: {{}}\n\n{}",
        change("x-4", "a")
    ))]);
    let mut watch = Watch::since(&scripted.server, None);
    assert_eq!(watch.next().await.unwrap(), Change::Everything);
    assert_eq!(watch.next().await.unwrap(), object("a"));
    assert_eq!(scripted.asked.join().unwrap(), [None]);
}

#[tokio::test]
async fn a_server_without_a_watch_is_asked_again_and_again() {
    let missing = r#"{"success":false,"error":"there is nothing here","code":"not_found"}"#;
    let length = missing.len();
    let answer = format!("HTTP/1.1 404 Not Found\r\ncontent-length: {length}\r\n\r\n{missing}");
    let scripted = scripted(vec![answer]);
    let mut watch = Watch::since(&scripted.server, None);
    for _ in 0..2 {
        assert_eq!(watch.next().await.unwrap(), Change::Everything);
    }
}

#[tokio::test]
async fn a_refusal_is_the_servers_own_sentence() {
    let refusal = r#"{"success":false,"error":"too many watchers","code":"busy"}"#;
    let length = refusal.len();
    let answer =
        format!("HTTP/1.1 429 Too Many Requests\r\ncontent-length: {length}\r\n\r\n{refusal}");
    let scripted = scripted(vec![answer]);
    let mut watch = Watch::since(&scripted.server, None);
    let failure = watch.next().await.unwrap_err();
    assert_eq!(failure.to_string(), "too many watchers");
}

#[tokio::test]
async fn what_was_begun_is_begun_again_when_the_server_is_back() {
    let scripted = scripted(Vec::new());
    let mut watch = Watch::since(&scripted.server, None);
    let mut tries = 0;
    let done = watch.patiently(async || {
        tries += 1;
        match tries {
            1 => Err(Failure::Unavailable("away".to_owned())),
            _ => Ok(tries),
        }
    });
    assert_eq!(done.await.unwrap(), 2);
    let refused = watch.patiently(async || Err::<(), _>(Failure::Failed("no".to_owned())));
    assert!(refused.await.is_err());
}

#[test]
fn an_id_names_the_history_it_belongs_to() {
    assert_eq!(instance("a1-b2-17"), instance("a1-b2-18"));
    assert_ne!(instance("a1-17"), instance("a2-17"));
    assert_eq!(instance("odd"), "odd");
}
