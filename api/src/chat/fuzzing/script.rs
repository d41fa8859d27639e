//! Inputs as scripts: a line is a frame, or a command.

use super::scene::Scene;
use crate::chat::pico::LONGEST_FRAME;

/// Most lines of an input.
const LINES: usize = 400;
/// Most bytes of all frames of an input.
const BYTES: usize = 8 * 1024 * 1024;
/// No text has these bytes: each stands for a long one, which is short or long in memory.
const LONG: [(u8, &[u8], usize); 2] = [(0xfe, b"x", 16 * 1024), (0xff, b"\\u0001", 4096)];

/// Plays a conversation whose agent sends these frames, one a line.
///
/// # Panics
/// When its memory, its frames or its lines are not bounded, or pages and file do not show the same in the end.
pub fn check_agent_frames(input: &[u8]) {
    let mut scene = Scene::load(Vec::new());
    scene.take_page_frame(r#"{"type":"send","client_id":"c","text":"hello"}"#);
    scene.obey(b"p0");
    scene.settle();
    play(input, &mut scene, |scene, frame| {
        match frame.starts_with('1') {
            true => scene.take_page_frame(&frame[1..]),
            false => scene.hear(frame),
        }
    });
    scene.end();
}

/// Plays a conversation whose pages send these frames, one a line.
///
/// # Panics
/// As [`check_agent_frames`].
pub fn check_page_frames(input: &[u8]) {
    let mut scene = Scene::load(Vec::new());
    scene.obey(b"p0");
    play(input, &mut scene, |scene, frame| {
        match frame.starts_with('1') {
            true => scene.hear(&frame[1..]),
            false => scene.take_page_frame(frame),
        }
    });
    scene.end();
}

fn play(input: &[u8], scene: &mut Scene, take: impl Fn(&mut Scene, &str)) {
    let mut bytes = 0;
    for line in input.split(|byte| *byte == b'\n').take(LINES) {
        match line {
            [b'a'..=b'z', ..] => scene.obey(line),
            _ => {
                let frame = lengthen(line);
                bytes += frame.len();
                if bytes > BYTES {
                    break;
                }
                if frame.len() <= LONGEST_FRAME {
                    take(scene, &String::from_utf8_lossy(&frame));
                }
            }
        }
        scene.settle();
    }
}

fn lengthen(line: &[u8]) -> Vec<u8> {
    let mut long = Vec::new();
    for byte in line {
        match LONG.iter().find(|(short, ..)| short == byte) {
            Some((_, part, times)) if long.len() < LONGEST_FRAME => {
                long.extend(part.repeat(*times));
            }
            _ => long.push(*byte),
        }
    }
    long
}
