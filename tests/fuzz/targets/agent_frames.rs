//! Frames of hostile agents make a conversation of bounded memory, frames and lines, that all pages and the file show alike.
#![no_main]

libfuzzer_sys::fuzz_target!(|frames: &[u8]| api::fuzzing::check_agent_frames(frames));
