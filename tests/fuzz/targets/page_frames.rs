//! Frames of pages that come and go are accepted or refused, and all pages show the same in the end.
#![no_main]

libfuzzer_sys::fuzz_target!(|frames: &[u8]| api::fuzzing::check_page_frames(frames));
