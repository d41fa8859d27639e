//! Memory of conversations whose agents and files are hostile.

use schema::home::conversations::LINE;

use super::super::budget::UNWRITTEN;
use super::*;
use crate::chat::stored::Line;

/// Most memory of one conversation: what is kept, what waits to be written, and one entry more of each.
const MOST: usize = 2 * KEPT_BYTES + UNWRITTEN + 2 * LINE;

/// A frame that creates a message of an agent.
fn hostile_frames(number: usize) -> Vec<Value> {
    let id = format!("m{number}-{}", "i".repeat(5000));
    let long = "\u{1}".repeat(300_000);
    let name = "\u{1}".repeat(2000);
    let call = json!({"function": {"name": name, "arguments": name}, "extra_content": {"tool_feedback_explanation": name}});
    let file = json!({"filename": name, "content_type": name, "url": name});
    [
        json!({"message_id": id, "content": long}),
        json!({"message_id": format!("a{number}"), "content": "", "model_name": long}),
        json!({"message_id": format!("b{number}"), "content": long, "kind": "thought"}),
        json!({"message_id": format!("c{number}"), "tool_calls": vec![call; 60]}),
        json!({"message_id": format!("d{number}"), "content": long, "attachments": vec![file; 60]}),
        json!({"message_id": format!("e{number}"), "content": format!("Error processing message: {long}")}),
    ]
    .map(|payload| json!({"type": "message.create", "payload": payload}))
    .to_vec()
}

#[test]
fn hostile_frames_take_bounded_memory_and_short_lines() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    scene.typing("start");
    for number in 0..2 {
        for frame in hostile_frames(number) {
            scene.hear(frame);
            let weight = scene.talk.weight();
            assert!(weight <= MOST, "{weight} bytes");
        }
    }
    let (mut cursor, mut hello) = (Cursor::default(), true);
    while let Some(frame) = scene
        .talk
        .next_frame(&mut cursor, std::mem::take(&mut hello))
    {
        let length = frame.into_json().len();
        assert!(length <= LINE + 100, "{length} bytes");
    }
    for line in scene.lines() {
        assert!(line.len() <= LINE, "{} bytes", line.len());
    }
}

#[test]
fn unwritten_lines_are_bounded() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    for number in 0..50 {
        scene.create(&format!("m{number}"), &"x".repeat(200_000), json!({}));
        let now = scene.now();
        let lines = scene.talk.take_lines(true, now);
        scene.talk.put_lines_back(lines, now);
        assert!(scene.talk.weight() <= MOST);
    }
}

#[test]
fn failed_write_loses_no_entry_in_memory() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    for number in 0..3 {
        scene.create(&format!("m{number}"), &"x".repeat(500_000), json!({}));
    }
    let now = scene.now();
    let lines = scene.talk.take_lines(true, now);
    let number = lines.len();
    assert!(lines.iter().map(Line::weight).sum::<usize>() > UNWRITTEN);
    scene.talk.put_lines_back(lines, now);
    assert_eq!(scene.talk.take_lines(true, now).len(), number);
}

#[test]
fn waiting_messages_are_bounded_by_their_length() {
    let mut scene = Scene::newest();
    scene.talk.set_agent(AgentState::Starting, None, false);
    let long = "\u{1f600}".repeat(100_000);
    scene.say(&long).unwrap();
    scene.say(&long).unwrap();
    assert_eq!(scene.say(&long), Err(RefusalCode::TooManyWaiting));
    scene.say("short").unwrap();
    assert!(scene.talk.weight() <= MOST);
}

#[test]
fn conversation_shrinks_and_keeps_what_is_on_the_way() {
    let mut scene = Scene::newest();
    for number in 0..5 {
        scene
            .say(&format!("{number}{}", "x".repeat(90_000)))
            .unwrap();
    }
    scene.lines();
    scene.talk.shrink_to(0);
    assert_eq!(scene.talk.items.len(), 5, "the link still reads them");
    assert!(scene.delivered().len() >= 5);
    for id in 1..=5 {
        scene.talk.leave_link(id);
    }
    scene.talk.shrink_to(0);
    assert!(scene.talk.items.len() <= 2);
    let frames = scene.frames(&mut Cursor::default(), true);
    assert!(frames[0].contains("\"older\":true"), "{}", &frames[0]);
}

#[test]
fn page_behind_forgotten_entries_begins_anew() {
    let mut scene = Scene::newest();
    scene.say("x").unwrap();
    let mut cursor = Cursor::default();
    let hello = scene.talk.next_frame(&mut cursor, true).unwrap();
    assert!(hello.into_json().contains("\"reset\":true"));
    let first = scene.talk.next_frame(&mut cursor, false).unwrap();
    assert!(first.into_json().contains("\"entry\""));
    for number in 0..2 * KEPT {
        scene.create(&format!("m{number}"), "word", json!({}));
        scene.lines();
    }
    let frames = scene.frames(&mut cursor, false);
    assert!(frames[0].contains("\"reset\":true"), "{}", &frames[0]);
    assert!(frames.len() <= KEPT + 10, "{} frames", frames.len());
    assert_eq!(scene.frames(&mut cursor, false), Vec::<String>::new());
}

#[test]
fn id_that_no_page_may_give_is_not_remembered() {
    let line = |id: u64, length: usize| {
        let client_id = "c".repeat(length);
        json!({"id": id, "at": "2026-05-11T11:46:40Z", "kind": "user", "text": "x", "client_id": client_id, "status": "sent"}).to_string()
    };
    let scene = Scene::load(&ALL, &[line(1, 64), line(2, 65)]);
    let ids: Vec<u64> = scene.talk.accepted.iter().map(|(_, id)| *id).collect();
    assert_eq!(ids, [1]);
}
