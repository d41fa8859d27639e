//! What `SKILL.md` may say.

use std::time::Duration;

use proptest::prelude::*;

use crate::clock::{Clock, SystemClock};
use crate::skill_store::front_matter::{FrontMatter, InvalidFrontMatter, LONGEST, parse, read};

fn of(yaml: &str) -> Result<FrontMatter, InvalidFrontMatter> {
    parse(format!("---\n{yaml}\n---\n# Text\n").as_bytes())
}

#[test]
fn fields_are_taken_as_they_are_written() {
    let whole = of("name: pdf\ndescription: >\n  Fills\n  forms.\nversion: 1.10\nlicense: MIT\nmetadata:\n  author: me\n  level: 3\nother: [1, 2]").unwrap();
    assert_eq!(whole.name.as_deref(), Some("pdf"));
    assert_eq!(whole.description.as_deref(), Some("Fills forms.\n"));
    assert_eq!(whole.version.as_deref(), Some("1.10"));
    assert_eq!(whole.license.as_deref(), Some("MIT"));
    assert_eq!(
        whole.metadata,
        Some(serde_json::json!({"author": "me", "level": 3}))
    );
    for (yaml, version) in [
        ("version: 1", Some("1")),
        ("version: 1.0", Some("1.0")),
        ("version: 2.10", Some("2.10")),
        ("version: 1e3", Some("1e3")),
        ("version: 0x10", Some("0x10")),
        ("version: 1.2.3", Some("1.2.3")),
        ("version: '1.0'", Some("1.0")),
        ("version: 2024-01-31", Some("2024-01-31")),
        ("version:", None),
        ("version: ~", None),
        ("name: x", None),
    ] {
        assert_eq!(of(yaml).unwrap().version.as_deref(), version, "{yaml}");
    }
}

#[test]
fn where_it_begins_and_ends() {
    let named = |name: &str| {
        Ok(FrontMatter {
            name: Some(name.to_owned()),
            ..FrontMatter::default()
        })
    };
    let none = || Ok(FrontMatter::default());
    for (file, found) in [
        ("---\nname: x\n---\n", named("x")),
        ("---\nname: x\n---", named("x")),
        ("---\r\nname: x\r\n---\r\ntext", named("x")),
        ("\u{feff}---\nname: x\n---\n", named("x")),
        ("---  \nname: x\n--- \t\n", named("x")),
        ("---\nname: x\n---\n---\nname: y\n---\n", named("x")),
        ("---\nname: ---x\n---\n", named("---x")),
        ("---\n---\n", none()),
        ("---\n# nothing\n---\n", none()),
        ("", none()),
        ("# Title\n---\nname: x\n---\n", none()),
        ("\n---\nname: x\n---\n", none()),
        ("----\nname: x\n----\n", none()),
        ("---", Err(InvalidFrontMatter::NoEnd)),
        ("---\n", Err(InvalidFrontMatter::NoEnd)),
        ("---\nname: x\n", Err(InvalidFrontMatter::NoEnd)),
        ("---\nname: x\n ---\n", Err(InvalidFrontMatter::NoEnd)),
    ] {
        assert_eq!(parse(file.as_bytes()), found, "{file:?}");
    }
    assert_eq!(
        parse(b"---\nname: x\nb: \xff\n---\n"),
        Err(InvalidFrontMatter::NotUtf8 { line: 3 })
    );
    assert_eq!(parse(b"# a\xe9"), none());
    let long = |length: usize| format!("---\n#{}\n---\n", "x".repeat(length - 2)).into_bytes();
    assert!(parse(&long(LONGEST)).is_ok());
    assert!(read(&*long(LONGEST)).unwrap().is_ok());
    assert_eq!(parse(&long(LONGEST + 1)), Err(InvalidFrontMatter::NoEnd));
    assert_eq!(read(std::io::repeat(b'-')).unwrap(), none());
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (yaml, message) in [
        (
            "- a\n- b",
            "line 2: the front matter is not a map of names and values",
        ),
        (
            "just text",
            "line 2: the front matter is not a map of names and values",
        ),
        (
            "a: 1\nname: [x]",
            "line 3: name is not a text; put it in quotes",
        ),
        (
            "a: 1\nname: 7",
            "line 3: name is not a text; put it in quotes",
        ),
        ("name: true", "line 2: name is not a text; put it in quotes"),
        (
            "description: {a: b}",
            "line 2: description is not a text; put it in quotes",
        ),
        (
            "version: [1, 2]",
            "line 2: version is not a text; put it in quotes",
        ),
        (
            "version: yes\nlicense: 1.0",
            "line 3: license is not a text; put it in quotes",
        ),
        ("name: \"a\\0b\"", "line 2: name has control characters"),
        (
            "a: b: c",
            "line 2, column 5: the front matter is not YAML without tags and names that occur twice",
        ),
        (
            "name: x\nname: y",
            "line 2, column 1: the front matter is not YAML without tags and names that occur twice",
        ),
        (
            "a: !secret b",
            "line 2, column 4: the front matter is not YAML without tags and names that occur twice",
        ),
        ("name: [", ""),
        ("name: \"x", ""),
        ("%YAML 1.2\nname: x", ""),
        ("name: x\n...\nname: y", ""),
        ("name: *nothing", ""),
        ("\tname: x", ""),
    ] {
        let said = of(yaml).unwrap_err().to_string();
        if message.is_empty() {
            assert!(said.starts_with("line "), "{yaml:?}: {said}");
        } else {
            assert_eq!(said, message, "{yaml:?}");
        }
    }
    let text = |length: usize| format!("description: {}", "ä".repeat(length));
    assert!(of(&text(4096)).is_ok());
    assert_eq!(
        of(&text(4097)).unwrap_err().to_string(),
        "line 2: description is longer than it may be"
    );
}

/// The worst that is taken and the worst that is refused.
fn worst() -> Vec<(&'static str, String, bool)> {
    let aliases = |levels: usize| {
        let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..=levels {
            let last = format!("*a{}", n - 1);
            yaml += &format!("a{n}: &a{n} [{}]\n", vec![last; 9].join(", "));
        }
        yaml
    };
    vec![
        (
            "as many values as may be",
            "a: [".to_owned() + &"1,".repeat(7_990) + "]",
            true,
        ),
        ("a long text", "a: ".to_owned() + &"x ".repeat(32_000), true),
        (
            "many fields",
            (0..7_900)
                .map(|n| format!("a{n}: b\n").replace("a", ""))
                .collect(),
            true,
        ),
        ("aliases of aliases", aliases(9), false),
        ("a few aliases", aliases(2), true),
        (
            "too many values",
            "a: [".to_owned() + &"1,".repeat(8_000) + "]",
            false,
        ),
        (
            "nested lists",
            "a: ".to_owned() + &"[".repeat(60_000),
            false,
        ),
        (
            "nested maps",
            "a: ".to_owned() + &"{a: ".repeat(15_000),
            false,
        ),
        (
            "33 levels",
            "a: ".to_owned() + &"[".repeat(33) + &"]".repeat(33),
            false,
        ),
        (
            "nested items",
            "a:\n  ".to_owned() + &"- ".repeat(30_000),
            false,
        ),
        (
            "100 nested items",
            "a:\n  ".to_owned() + &"- ".repeat(100),
            false,
        ),
        ("questions", "? ".repeat(30_000), false),
        ("directives", "%TAG !a! x\n".repeat(5_000), false),
        (
            "anchors",
            (0..6_000).map(|n| format!("&a{n} ")).collect(),
            false,
        ),
        ("colons", ":".repeat(60_000), false),
        ("quotes", "\"".repeat(60_000), false),
        (
            "open quotes",
            "a: \"".to_owned() + &"\\\n".repeat(2_000),
            false,
        ),
        ("asterisks", "*a ".repeat(20_000), false),
        ("comments", "#\n".repeat(7_900), true),
        ("tabs", "\t".repeat(60_000), false),
    ]
}

#[test]
fn l65_the_worst_front_matter_takes_no_time() {
    for (what, yaml, taken) in worst() {
        let begun = SystemClock.steady();
        let found = of(&yaml);
        let passed = SystemClock.steady() - begun;
        assert_eq!(found.is_ok(), taken, "{what}: {found:?}");
        assert!(passed < Duration::from_secs(2), "{what}: {passed:?}");
    }
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = parse(&[b"---\n", &bytes[..], b"\n---\n"].concat());
        let _ = parse(&bytes);
    }

    #[test]
    fn nothing_that_looks_like_yaml_makes_it_panic(yaml in "([a-z]{1,3}|[-:?,&*!|>'\"%@` \n#{}\\[\\]~0-9.<=]|name: |version: |\u{85}|\u{feff}){0,60}") {
        if let Ok(found) = of(&yaml) {
            for text in [found.name, found.version, found.license].into_iter().flatten() {
                prop_assert!(text.chars().count() <= 1024);
            }
        }
    }
}
