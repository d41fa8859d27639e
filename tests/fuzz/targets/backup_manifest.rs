//! The manifest of a backup of strangers, its head on the first line, is refused in a sentence or understood in whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schema::backup::{BackupError, Line, escape, parse_manifest, unescape};

/// Longest refusal, in bytes.
const REFUSAL: usize = 1300;

fuzz_target!(|manifest: &[u8]| {
    let end = manifest
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(manifest.len());
    let (head, lines) = manifest.split_at(end);
    let lines = lines.get(1..).unwrap_or_default();
    match parse_manifest(head, lines) {
        Ok((head, count)) => {
            assert_eq!(count, head.entries);
            assert!(count <= lines.split_inclusive(|byte| *byte == b'\n').count() as u64);
            for line in lines
                .split_inclusive(|byte| *byte == b'\n')
                .take(count as usize)
            {
                let line: Line = serde_json::from_slice(line).unwrap();
                assert!(line.mode_bits() <= 0o7777);
                assert_eq!(unescape(&escape(&line.to_path())), line.to_path());
            }
            assert!(head.left_out.unread() <= head.left_out.total());
            let written = serde_json::to_vec(&head).unwrap();
            assert_eq!(parse_manifest(&written, lines).unwrap(), (head, count));
        }
        Err(error @ BackupError::NotABackup { .. }) => {
            let said = error.to_string();
            assert!(
                said.len() <= REFUSAL && !said.contains(char::is_control),
                "{said:?}"
            );
        }
        Err(other) => panic!("{other:?}"),
    }
});
