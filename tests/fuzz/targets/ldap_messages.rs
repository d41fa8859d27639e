//! Answers of a hostile directory come to the LDAP library within their bounds, however they are cut into pieces.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use reconcilers::drivers::ldap::fuzzing::check_answers;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().unwrap());

fuzz_target!(|answers: &[u8]| RUNTIME.block_on(check_answers(answers)));
