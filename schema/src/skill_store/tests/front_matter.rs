//! What `SKILL.md` may say.

use std::time::Duration;

use proptest::prelude::*;

use crate::clock::{Clock, SystemClock};
use crate::skill_store::front_matter::{
    FrontMatter, InvalidFrontMatter, LONGEST, Reading, parse, read,
};

fn of(yaml: &str) -> Result<FrontMatter, InvalidFrontMatter> {
    reading_of(yaml).map(|reading| reading.front_matter)
}

fn reading_of(yaml: &str) -> Result<Reading, InvalidFrontMatter> {
    parse(format!("---\n{yaml}\n---\n# Text\n").as_bytes())
}

fn fields_of(file: &[u8]) -> Result<FrontMatter, InvalidFrontMatter> {
    parse(file).map(|reading| reading.front_matter)
}

/// A file of the cases.
fn case(name: &str) -> Vec<u8> {
    let cases = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/skill_store/tests/cases/skills"
    );
    std::fs::read(std::path::Path::new(cases).join(name)).unwrap()
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
        ("# Title\n---\nname: x\n---\n", named("x")),
        ("\n---\nname: x\n---\n", named("x")),
        ("# Title\n---\nother: x\n---\n", none()),
        ("---\rname: x\r---\rtext", named("x")),
        ("----\nname: x\n----\n", none()),
        ("---", Err(InvalidFrontMatter::NoEnd)),
        ("---\n", Err(InvalidFrontMatter::NoEnd)),
        ("---\nname: x\n", Err(InvalidFrontMatter::NoEnd)),
        ("---\nname: x\n ---\n", Err(InvalidFrontMatter::NoEnd)),
    ] {
        assert_eq!(fields_of(file.as_bytes()), found, "{file:?}");
    }
    assert_eq!(
        parse(b"---\nname: x\nb: \xff\n---\n"),
        Err(InvalidFrontMatter::NotUtf8 { line: 3 })
    );
    assert_eq!(fields_of(b"# a\xe9"), none());
    let long = |length: usize| format!("---\n#{}\n---\n", "x".repeat(length - 2)).into_bytes();
    assert!(parse(&long(LONGEST)).is_ok());
    assert!(read(&*long(LONGEST)).unwrap().is_ok());
    assert_eq!(parse(&long(LONGEST + 1)), Err(InvalidFrontMatter::NoEnd));
    let endless = read(std::io::repeat(b'-')).unwrap();
    assert_eq!(endless.map(|reading| reading.front_matter), none());
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (yaml, message) in [
        (
            "- a\n- b",
            "line 2: the front matter is not a map of names and values; write it as `name: value`",
        ),
        (
            "just text",
            "line 2: the front matter is not a map of names and values; write it as `name: value`",
        ),
        (
            "a: 1\nname: [x]",
            "line 3: name is a list, not a text; put it in quotes",
        ),
        ("description:\n  !secret a: b", ""),
        (
            "description: {a: b}",
            "line 2: description is a map, not a text; put it in quotes",
        ),
        (
            "name: \"a\\0b\"",
            "line 2: name has the control character U+0000; remove it",
        ),
        (
            "name: x\nother: 1\nname: y",
            "line 4: name is there already in line 2; keep one of them",
        ),
        (
            "name: x\n\nSome text.",
            "line 4: this is no field (`name: value`) of the front matter, which goes on to the --- in line 5; \
             end it with a line --- after its last field, or indent the line if it belongs to one",
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
        "line 2: description has 4097 characters; at most 4096 may be: shorten it"
    );
}

#[test]
fn scalars_are_texts_and_unused_shapes_are_left_out() {
    let found = reading_of("name: 7\ndescription: true\nlicense: 1.0\nversion: [1, 2]").unwrap();
    assert_eq!(found.front_matter.name.as_deref(), Some("7"));
    assert_eq!(found.front_matter.description.as_deref(), Some("true"));
    assert_eq!(found.front_matter.license.as_deref(), Some("1.0"));
    assert_eq!(found.front_matter.version, None);
    assert_eq!(
        found.warnings,
        ["line 5: version was left out: it is a list, not a text; put it in quotes"]
    );
}

#[test]
fn fields_in_other_letter_case_are_taken_with_a_warning() {
    for (yaml, name, warned) in [
        (
            "Name: x\nDESCRIPTION: y",
            "x",
            &["line 2: Name was", "line 3: DESC"][..],
        ),
        ("Name: z\ndescription: y\nname: x\nSummary: z", "x", &[]),
        (
            "Name: 1.10\ndescription: y",
            "1.10",
            &["line 2: Name was taken for name"],
        ),
        (
            "a: b: c\nName: x\ndescription: y",
            "x",
            &["line 2, column", "line 3: Name"],
        ),
        (
            "Name: x: y\ndescription: y",
            "x: y",
            &["line 2: Name has", "line 2: Name was"],
        ),
    ] {
        let found = reading_of(yaml).unwrap();
        assert_eq!(found.front_matter.name.as_deref(), Some(name), "{yaml:?}");
        assert_eq!(found.front_matter.description.as_deref(), Some("y"));
        let said = &found.warnings;
        assert_eq!(said.len(), warned.len(), "{yaml:?}: {said:?}");
        for (said, begin) in said.iter().zip(warned) {
            assert!(said.starts_with(begin), "{yaml:?}: {said}");
        }
    }
    let found = reading_of("name: x\ndescription: y\nVersion: 1.10\nMetadata: {a: 1}").unwrap();
    assert_eq!(found.front_matter.version.as_deref(), Some("1.10"));
    assert_eq!(
        found.front_matter.metadata,
        Some(serde_json::json!({"a": 1}))
    );
    assert!(
        found.warnings[1].starts_with("line 5: Metadata was"),
        "{found:?}"
    );
    let below = parse(b"# A\n\n---\nName: x\n---\n").unwrap();
    assert_eq!(below.front_matter.name.as_deref(), Some("x"));
}

#[test]
fn unquoted_text_is_taken_to_the_end_of_its_line() {
    for (value, expected) in [
        ("Use it when: always", "Use it when: always"),
        ("Triggers:", "Triggers:"),
        ("One: two\n  and three: four", "One: two and three: four"),
        ("\"Quoted\" and more", "\"Quoted\" and more"),
        ("\"Has \"inner\" quotes\"", "Has \"inner\" quotes"),
        ("\"C:\\dir\"", "C:\\dir"),
        ("[BETA] A tool", "[BETA] A tool"),
        ("{name} is greeted", "{name} is greeted"),
        ("*Bold* words", "*Bold* words"),
        ("@handle does", "@handle does"),
        ("`code` runs", "`code` runs"),
        ("% of users", "% of users"),
        ("| On the same line", "On the same line"),
        ("> On the same line", "On the same line"),
        ("\n  Use when: always", "Use when: always"),
        (
            "\n  Use: when: always\n  and: more",
            "Use: when: always and: more",
        ),
        ("\n  \"Has \"inner\" quotes\"", "Has \"inner\" quotes"),
    ] {
        let found = reading_of(&format!("name: x\ndescription: {value}\nversion: 1.10"));
        let found = found.unwrap_or_else(|error| panic!("{value:?}: {error}"));
        assert_eq!(found.front_matter.description.as_deref(), Some(expected));
        assert_eq!(found.front_matter.name.as_deref(), Some("x"), "{value:?}");
        assert_eq!(found.front_matter.version.as_deref(), Some("1.10"));
        let [warning] = found.warnings.as_slice() else {
            panic!("{value:?}: {:?}", found.warnings);
        };
        assert!(warning.starts_with("line 3: description has "), "{warning}");
        assert!(warning.ends_with("put it in quotes"), "{warning}");
    }
    for value in ["\n\tUse it", ">\n\tUse it", "|-\n\tUse\n\tit", "Use\n\tit"] {
        let found = reading_of(&format!("name: x\ndescription: {value}")).unwrap();
        assert_eq!(found.front_matter.description.as_deref(), Some("Use it"));
        let [warning] = found.warnings.as_slice() else {
            panic!("{value:?}: {:?}", found.warnings);
        };
        let begin = "line 3: description has lines that begin with a tab, ";
        assert!(warning.starts_with(begin), "{value:?}: {warning}");
    }
}

#[test]
fn unused_field_cannot_fail_the_package() {
    for yaml in [
        "a: b: c\nname: x",
        "name: x\na: !secret b",
        "name: x\na: 1\na: 2",
        "name: x\na: {\n\"b\": 1,\n}\nc: *d",
        "name: x\na:\n\t- b",
        "name: x\na: \u{80}",
        "name: x\nmetadata: {a: [}",
    ] {
        let found = reading_of(&format!("{yaml}\ndescription: y")).unwrap();
        assert_eq!(found.front_matter.name.as_deref(), Some("x"), "{yaml:?}");
        assert_eq!(found.front_matter.description.as_deref(), Some("y"));
        assert_eq!(found.warnings.len(), 1, "{yaml:?}: {:?}", found.warnings);
    }
}

#[test]
fn front_matter_below_other_text_is_read_with_a_warning() {
    let yaml = "---\nname: x\ndescription: y\n---\n";
    for (before, line) in [
        ("\n\n", 4),
        ("<!-- a -->\n", 3),
        ("<!--\na\n-->\n\n", 6),
        ("> a\n\n", 4),
        ("# A\n\n", 4),
        ("\u{feff}Text\r\n\r\n", 4),
        ("```markdown\n", 3),
        ("<!-- a -->\n~~~yaml\n", 4),
    ] {
        let found = parse(format!("{before}{yaml}").as_bytes()).unwrap();
        assert_eq!(found.front_matter.name.as_deref(), Some("x"), "{before:?}");
        let [warning] = found.warnings.as_slice() else {
            panic!("{before:?}: {:?}", found.warnings);
        };
        let begin = format!("the front matter begins in line {line}, after ");
        assert!(warning.starts_with(&begin), "{before:?}: {warning}");
    }
    let fenced = parse(b"```yaml\nname: x\ndescription: y\n```\n").unwrap();
    assert_eq!(fenced.front_matter.name.as_deref(), Some("x"));
    // An example in a text that has no front matter itself.
    let example = format!("# How to write a skill\n\n```markdown\n{yaml}```\n");
    let found = parse(example.as_bytes()).unwrap();
    assert_eq!(found.front_matter, FrontMatter::default());
    assert!(found.warnings[0].starts_with("it has no front matter"));
}

#[test]
fn wide_encoding_is_refused_by_its_name() {
    let text = "---\nname: x\n---\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (file, encoding) in [
        ([&b"\xff\xfe"[..], &little].concat(), "UTF-16LE"),
        ([&b"\xfe\xff"[..], &big].concat(), "UTF-16BE"),
        (little, "UTF-16LE"),
        (big, "UTF-16BE"),
        (b"\xff\xfe\0\0-\0\0\0".to_vec(), "UTF-32LE"),
    ] {
        let said = parse(&file).unwrap_err().to_string();
        let expected = format!("the file is {encoding}, not UTF-8; save it as UTF-8 (");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn public_skill_files_are_read_or_say_why_not() {
    /// The name, the beginning of the description, and the beginning of each warning; or the refusal.
    type Expected =
        Result<(Option<&'static str>, &'static str, &'static [&'static str]), &'static str>;
    const NOTHING: Expected = Ok((None, "", &["it has no front matter"]));
    let table: &[(&str, Expected)] = &[
        (
            "colon-1.md",
            Ok((
                Some("genlayer-dev-claw-skill"),
                "Build GenLayer",
                &["line 4: description has a colon"],
            )),
        ),
        (
            "colon-2.md",
            Ok((
                Some("mayar-payment"),
                "Mayar.id payment",
                &["line 3: description has a colon"],
            )),
        ),
        (
            "colon-3.md",
            Ok((
                Some("dokku"),
                "Installs, upgrades,",
                &["line 3: description has a colon"],
            )),
        ),
        (
            "colon-4.md",
            Ok((
                Some("skill-publisher-claw-skill"),
                "Prepare Claw",
                &["line 3: description has a colon"],
            )),
        ),
        ("heading-inside.md", Err("line 11: this is no field")),
        (
            "html-comment-before.md",
            Ok((
                Some("moltwallet"),
                "Molt-first",
                &["the front matter begins in line 3, after a comment"],
            )),
        ),
        (
            "quote-before.md",
            Ok((
                Some("RedTeam"),
                "Adversarial analysis",
                &["the front matter begins in line 4, after a quote"],
            )),
        ),
        (
            "code-fence-before.md",
            Ok((
                Some("overnight-development"),
                "Automates software",
                &["the front matter begins in line 3, after the beginning of a code block"],
            )),
        ),
        ("prose-before.md", NOTHING),
        ("heading-then-rule.md", NOTHING),
        ("heading-before.md", NOTHING),
        ("bom-then-heading.md", NOTHING),
        ("bom.md", NOTHING),
        (
            "no-end-1.md",
            Err("the front matter does not end with a line ---"),
        ),
        (
            "no-end-2.md",
            Err("the front matter does not end with a line ---"),
        ),
        (
            "no-end-3.md",
            Err("the front matter does not end with a line ---"),
        ),
        (
            "c1-control.md",
            Err("line 3, column 23: U+0080 is a control character; remove it"),
        ),
        (
            "no-description.md",
            Ok((
                Some("fast-browser-use"),
                "Rust-powered",
                &["its front matter has no description; summary was taken"],
            )),
        ),
        ("no-name.md", Ok((None, "Track and add", &[]))),
        ("title-not-name.md", Ok((None, "Comprehensive AI", &[]))),
        (
            "crlf.md",
            Ok((Some("domainkits"), "Domain intelligence", &[])),
        ),
        (
            "lower-case-file.md",
            Ok((Some("fight-club"), "Register and fight", &[])),
        ),
        (
            "slash-in-name.md",
            Ok((Some("Building CI/CD Pipelines"), "This skill", &[])),
        ),
        (
            "slash-in-name-2.md",
            Ok((Some("Managing SSL/TLS Certificates"), "This skill", &[])),
        ),
        (
            "description-1929.md",
            Ok((Some("database-lookup"), "Search 78", &[])),
        ),
        (
            "description-1068.md",
            Ok((Some("claude-api"), "Reference for", &[])),
        ),
        (
            "upper-case-ext.md",
            Ok((Some("postgres-schema-design"), "Comprehensive", &[])),
        ),
    ];
    let mut failures = Vec::new();
    let cases = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/skill_store/tests/cases/skills"
    );
    for file in std::fs::read_dir(cases).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let has_row = table.iter().any(|row| row.0 == file);
        assert!(has_row || file == "SOURCES.tsv", "{file} has no row");
    }
    for (file, expected) in table {
        let outcome = parse(&case(file));
        let holds = match (&outcome, expected) {
            (Err(error), Err(begin)) => error.to_string().starts_with(begin),
            (Ok(found), Ok((name, description, warnings))) => {
                let fields = &found.front_matter;
                let shown = fields.description.as_deref().unwrap_or_default();
                fields.name.as_deref() == *name
                    && shown.starts_with(description)
                    && found.warnings.len() == warnings.len()
                    && found
                        .warnings
                        .iter()
                        .zip(*warnings)
                        .all(|(said, begin)| said.starts_with(begin))
            }
            _ => false,
        };
        if !holds {
            failures.push(format!("{file}: {outcome:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let title = |file| parse(&case(file)).unwrap().title;
    assert_eq!(title("no-name.md").as_deref(), Some("parcel"));
    assert_eq!(title("title-not-name.md").as_deref(), Some("Therapy Mode"));
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
        ("tabs", "\t".repeat(60_000), true),
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
