//! Files that somebody wrote to do harm.

use super::*;

fn refused(config: &[u8], secrets: Option<&[u8]>) -> String {
    let mut world = World::echo_with_yaml(3);
    world.config = Some(config.to_vec());
    world.security_file = secrets.map(<[u8]>::to_vec);
    match world.refusal() {
        RenderError::InvalidUserConfig { file, problem } => format!("{file} {problem}"),
        other => panic!("{other}"),
    }
}

#[rstest::rstest]
#[case::empty(b"", "config.json is not JSON")]
#[case::cut(
    b"{\"password\": \"hunter2",
    "config.json is not JSON (line 1, column 21)"
)]
#[case::list(b"[]", "config.json is not a map of settings")]
#[case::null(b"null", "config.json is not a map of settings")]
#[case::text(b"\"hunter2\"", "config.json is not a map of settings")]
#[case::two(b"{} {}", "config.json is not JSON")]
#[case::encoding(b"{\"a\": \"\xff\"}", "config.json is not JSON")]
#[case::infinite(b"{\"a\": 1e999}", "config.json is not JSON")]
#[case::byte_order_mark(b"\xef\xbb\xbf{}", "config.json is not JSON")]
fn an_unparsable_file_is_refused_and_not_repeated(#[case] bytes: &[u8], #[case] says: &str) {
    let message = refused(bytes, None);
    assert!(message.starts_with(says), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn the_security_file_is_refused_as_well() {
    let message = refused(b"{}", Some(b"a: [hunter2"));
    assert!(
        message.starts_with(".security.yml is not YAML"),
        "{message}"
    );
    assert!(!message.contains("hunter2"));
    let binary = refused(b"{}", Some(b"\x00\xff\xfe"));
    assert!(binary.starts_with(".security.yml is not YAML"), "{binary}");
}

#[test]
fn a_file_of_more_than_a_mebibyte_is_refused() {
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(
        refused(long.as_bytes(), None),
        "config.json is longer than 1 MiB"
    );
    assert_eq!(
        refused(b"{}", Some(long.as_bytes())),
        ".security.yml is longer than 1 MiB"
    );
}

#[test]
fn deep_nesting_is_refused() {
    for depth in [64, 101, 127, 500, 100_000] {
        let lists = format!("{{\"a\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
        let message = refused(lists.as_bytes(), None);
        assert!(
            message.starts_with("config.json is not JSON") || message.contains("nested"),
            "{message}"
        );
        let message = refused(b"{}", Some(lists.as_bytes()));
        assert!(
            message.starts_with(".security.yml is not YAML") || message.contains("nested"),
            "{message}"
        );
    }
}

#[test]
fn aliases_that_stand_for_too_much_are_refused() {
    // Ten levels of ten.
    let mut laughs = "a0: &a0 [lol, lol]\n".to_owned();
    for level in 1..10 {
        let before = format!("*a{},", level - 1).repeat(10);
        laughs += &format!("a{level}: &a{level} [{before}]\n");
    }
    let message = refused(b"{}", Some(laughs.as_bytes()));
    assert!(
        message.contains("aliases") || message.contains("not YAML"),
        "{message}"
    );
    // One level, but long: few enough aliases for the parser's own limit.
    let long = format!(
        "a: &a [{}]\nb: [{}]\n",
        "x,".repeat(40_000),
        "*a,".repeat(40_000)
    );
    let message = refused(b"{}", Some(long.as_bytes()));
    assert!(message.contains("aliases"), "{message}");
}

#[rstest::rstest]
#[case("[")]
#[case("{a: ")]
#[case("[a]: ")]
#[case("- ")]
#[case("- - a\n")]
#[case("? ")]
#[case("a: b: ")]
#[case("a\n")]
#[case("a:\n ")]
#[case("!a ")]
#[case("&a ")]
#[case("&a a: *a\n")]
#[case("'")]
#[case("\"\\n")]
#[case("|\n ")]
#[case("%A b\n")]
#[case("--- ")]
#[case("[a, b], ")]
#[case("#\n")]
#[case("\n")]
#[case("\t")]
fn no_repetition_takes_long(#[case] pattern: &str) {
    let mut world = World::echo_with_yaml(3);
    world.security_file = Some(pattern.repeat((128 << 10) / pattern.len()).into_bytes());
    let started = std::time::Duration::from_secs(20);
    let (done, waiting) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = world.try_render();
        let _ = done.send(());
    });
    waiting.recv_timeout(started).unwrap();
}

#[test]
fn what_comes_out_can_be_read_again() {
    // A file at the limit that a migration nests deeper.
    let deep = format!(
        "{{\"channels\": {{\"a\": {{\"x\": {}{}}}}}}}",
        "[".repeat(61),
        "]".repeat(61)
    );
    let mut world = World::echo(3);
    world.config = Some(deep.into_bytes());
    assert!(matches!(world.refusal(), RenderError::TooLarge { .. }));
    // A file at the limit that gets longer.
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat((1 << 20) - 20));
    world.config = Some(long.into_bytes());
    assert_eq!(
        world.refusal().to_string(),
        "config.json would be longer than 1 MiB"
    );
}

#[test]
fn global_settings_are_bounded_too() {
    let deep = (0..65).fold(json!(1), |inner, _| json!({"a": inner}));
    let world = World::echo(3).global(deep, json!({}));
    assert_eq!(
        world.refusal().to_string(),
        "the setting agent is nested deeper than 64 levels"
    );
    let world = World::echo(3).global(json!({}), json!([]));
    assert_eq!(
        world.refusal().to_string(),
        "the setting security must be an object"
    );
    let world = World::echo(3).global(Value::Null, Value::Null);
    world.render();
}

#[test]
fn odd_names_are_only_names() {
    let odd =
        json!({"": {"": 1}, "a.b": {"c/d~e": 2}, "*": {"0": 3}, "__proto__": 4, "\n": 5, "<<": 6});
    let mut world = World::echo_with_yaml(3).global(odd.clone(), odd.clone());
    world.apply();
    assert_eq!(world.config()[""], json!({"": 1}));
    assert_eq!(world.secrets()["a.b"], json!({"c/d~e": 2}));
    let again = world.render();
    assert!(!again.config.changed && !again.security.changed);
    // The stored form is text, and it comes back the same.
    let stored = serde_json::to_string(&world.applied).unwrap();
    assert_eq!(
        serde_json::from_str::<Option<Applied>>(&stored).unwrap(),
        world.applied
    );
    world.agent = json!({});
    world.security = json!({});
    world.apply();
    assert_eq!(world.secrets(), json!({}));
    assert!(world.config().get("*").is_none());
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        config in proptest::collection::vec(proptest::num::u8::ANY, 0..100),
        secrets in "[-\\[\\]{}:,&*!|>'\"%@#?a1 \n\t~]{0,60}",
    ) {
        let mut world = World::echo_with_yaml(3);
        world.security_file = Some(secrets.into_bytes());
        let _ = world.try_render();
        world.config = Some(config);
        let _ = world.try_render();
    }
}

/// The longest it may take to read a file, here without optimisation and beside other tests: ten times what it should.
const BEARABLE: std::time::Duration = std::time::Duration::from_secs(5);

#[test]
#[allow(clippy::disallowed_methods)] // Real time is what is measured.
fn l65_the_slowest_accepted_and_the_worst_refused_file_take_bearable_time() {
    let nested = |depth: usize, inside: &str| {
        format!("a: {}{inside}{}\n", "[".repeat(depth), "]".repeat(depth))
    };
    let fill = |depth: usize, piece: &str| nested(depth, &piece.repeat(900_000 / piece.len()));
    for (what, text, refused) in [
        ("accepted, deep", nested(62, &"a, ".repeat(7_000)), None),
        (
            "accepted, many",
            nested(1, &"abcdefghij, ".repeat(49_900)),
            None,
        ),
        (
            "as many, as deep, as long as may be",
            nested(62, &"abcdefghijklmnopqr, ".repeat(49_900)),
            Some("would be longer than 1 MiB"),
        ),
        ("values", fill(1, "a,"), Some("has more than 50000 values")),
        ("values, deep", fill(62, "[],"), Some("values")),
        ("deep", fill(126, "a,"), Some("values")),
        ("brackets", fill(900, "a,"), Some("deeper than 64 levels")),
        ("pairs", fill(100, "? a : b,"), Some("values")),
        ("blocks", "- ".repeat(500_000), Some("values")),
        (
            "items of old line ends",
            format!("a:\r{}", "- 1\r".repeat(250_000)),
            Some("values"),
        ),
        (
            "directives",
            format!("{}---\na: 1\n", "%TAG !aaa! x\n".repeat(7_000)),
            Some("has more than 32 directives"),
        ),
        (
            "just not too much",
            nested(126, &"a,".repeat(99_000)),
            Some("deeper than 64 levels"),
        ),
        (
            "long",
            nested(900, &"a,".repeat(2_000_000)),
            Some("is longer than 1 MiB"),
        ),
    ] {
        let mut world = World::echo_with_yaml(3);
        world.security_file = Some(text.into_bytes());
        let started = std::time::Instant::now();
        let result = world.try_render();
        let took = started.elapsed();
        println!("{what}: {took:?}");
        assert!(took < BEARABLE, "{what}: {took:?}");
        match (result, refused) {
            (Ok(_), None) => {}
            (Err(error), Some(says)) => {
                assert!(error.to_string().contains(says), "{what}: {error}")
            }
            (result, _) => panic!("{what}: {:?}", result.map(|_| ())),
        }
    }
}
