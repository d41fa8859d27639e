//! Messages of hostile clients and executors are refused in a sentence, or are the same when they are written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|message: &[u8]| api::fuzzing::check_mcp_messages(message));
