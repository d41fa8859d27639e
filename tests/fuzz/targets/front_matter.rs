//! Front matter of strangers is parsed or refused, and what is taken is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schema::skill_store::front_matter::parse;

fuzz_target!(|file: &[u8]| {
    // Half of the inputs would begin otherwise and have none.
    let _ = parse(file);
    let framed = [b"---\n", file, b"\n---\n"].concat();
    let Ok(found) = parse(&framed).map(|found| found.front_matter) else {
        return;
    };
    for text in [&found.name, &found.version, &found.license] {
        assert!(text.iter().all(|text| text.chars().count() <= 1024));
    }
    assert!(
        found
            .description
            .iter()
            .all(|text| text.chars().count() <= 4096)
    );
});
