//! Zip files that nobody packs by accident: each is refused with its reason, or taken in as what it harmlessly is.

use super::raw_zip::{End, zip_with};
use super::*;
use crate::ids::Timestamp;

/// What becomes of a zip file.
enum Fate {
    /// The rule that it breaks.
    Refused(&'static str),
    /// The files with their modes.
    Taken(&'static [(&'static str, u32)]),
}

use Fate::{Refused, Taken};

struct Case {
    what: String,
    bytes: Vec<u8>,
    fate: Fate,
}

fn case(what: impl Into<String>, bytes: Vec<u8>, fate: Fate) -> Case {
    Case {
        what: what.into(),
        bytes,
        fate,
    }
}

fn manifest() -> Raw {
    Raw::file("SKILL.md", "---\nname: x\n---\n")
}

/// A good file beside the one in question, so that no top directory is stripped.
fn beside(entry: Raw) -> Vec<u8> {
    zip(&[manifest(), entry])
}

fn paths(cases: &mut Vec<Case>) {
    let long = "x".repeat(256);
    let bad = [
        "/etc/passwd",
        "//host/share",
        "/",
        "//",
        "../x",
        "..",
        "a/../../x",
        "a/..",
        "a/../b",
        "./x",
        ".",
        "a/./b",
        "a//b",
        "\\a",
        "..\\x",
        "C:\\x",
        "C:/x",
        "c:x",
        "z:",
        "a/D:/x",
        "a\0b",
        "\0",
        "a\nb",
        "a\rb",
        "a\tb",
        "a\u{1b}[2Jb",
        "a\u{7f}",
        "a\u{85}b",
        "a\u{9b}b",
        "\\\\?\\C:\\x",
        "/../x",
        "../../../../../../../../etc/cron.d/x",
        "a/b/../../../x",
    ];
    for path in bad {
        for (how, entry) in [
            ("a file", Raw::file(path, "x")),
            (
                "a stored file",
                Raw {
                    stored: true,
                    ..Raw::file(path, "x")
                },
            ),
            (
                "a file said to be UTF-8",
                Raw {
                    flags: 1 << 11,
                    ..Raw::file(path, "x")
                },
            ),
            (
                "a file of DOS",
                Raw {
                    system: 0,
                    attributes: 0x20,
                    ..Raw::file(path, "x")
                },
            ),
            ("a directory", Raw::directory(format!("{path}/"))),
            (
                "a file in a directory",
                Raw::file(format!("top/{path}"), "x"),
            ),
        ] {
            let what = format!("{path:?} as {how}");
            cases.push(case(what, beside(entry), Refused("UnsafePath")));
        }
    }
    let backslash = || Raw::file("a\\b", "x");
    cases.push(case(
        "a backslash where no name has a slash",
        beside(backslash()),
        Taken(&[("SKILL.md", 0o644), ("a/b", 0o644)]),
    ));
    cases.push(case(
        "a backslash beside a slash",
        zip(&[manifest(), backslash(), Raw::file("c/d", "x")]),
        Refused("UnsafePath"),
    ));
    cases.push(case(
        "a file twice, once with a backslash",
        zip(&[manifest(), backslash(), Raw::file("A\\b", "x")]),
        Refused("Duplicate"),
    ));
    cases.push(case(
        "an empty name",
        beside(Raw::file("", "x")),
        Refused("UnsafePath"),
    ));
    for (what, name) in [
        ("CP437", &b"a\x82.md"[..]),
        ("Latin-1", b"a\xe9.md"),
        ("an overlong slash", b"a\xc0\xafb"),
        ("an overlong dot", b"\xc0\xae\xc0\xae/x"),
        ("a lone surrogate", b"a\xed\xa0\x80"),
        ("Shift JIS", b"\x83\x5c.md"),
        ("an end in the middle of a character", b"a\xe2\x82"),
    ] {
        for flags in [0, 1 << 11] {
            let entry = Raw {
                flags,
                ..Raw::file(name, "x")
            };
            cases.push(case(
                format!("a name in {what}, {flags}"),
                beside(entry),
                Refused("NotUtf8"),
            ));
        }
    }
    for (what, path, fate) in [
        ("a name of 256 bytes", long.clone(), Refused("PathTooLong")),
        (
            "a directory of 256 bytes",
            format!("{long}/x"),
            Refused("PathTooLong"),
        ),
        (
            "a path of 1026 bytes",
            ("y".repeat(204) + "/").repeat(5) + "x",
            Refused("PathTooLong"),
        ),
        (
            "a path of 60000 bytes",
            "a/".repeat(30_000) + "x",
            Refused("PathTooLong"),
        ),
        ("33 levels", "a/".repeat(32) + "x", Refused("TooDeep")),
        ("34 levels", "a/".repeat(33) + "x", Refused("TooDeep")),
        ("500 levels", "a/".repeat(500) + "x", Refused("TooDeep")),
    ] {
        cases.push(case(what, beside(Raw::file(path, "x")), fate));
    }
    cases.push(case(
        "33 levels below a top directory",
        zip(&[Raw::file("a/".repeat(33) + "x", "x")]),
        Refused("TooDeep"),
    ));
}

fn twins(cases: &mut Vec<Case>) {
    for (one, other) in [
        ("a", "a"),
        ("a", "A"),
        ("readme.md", "README.md"),
        ("a/b", "A/b"),
        ("a/b", "A/c"),
        ("d/ä", "d/Ä"),
        ("\u{e9}", "e\u{301}"),
        ("\u{c9}", "e\u{301}"),
        ("\u{212b}", "\u{e5}"),
        ("\u{17f}", "s"),
        ("\u{212a}", "k"),
        ("\u{df}", "ss"),
        ("\u{3c3}", "\u{3c2}"),
        ("\u{1e9e}", "\u{df}"),
        ("SKILL.MD", "SKILL.md"),
        ("a/\u{e9}/x", "a/e\u{301}/y"),
    ] {
        for turned in [false, true] {
            let (one, other) = if turned { (other, one) } else { (one, other) };
            let bytes = zip(&[
                Raw::file("x/y", ""),
                Raw::file(one, "1"),
                Raw::file(other, "2"),
            ]);
            cases.push(case(
                format!("{one:?} and {other:?}"),
                bytes,
                Refused("Duplicate"),
            ));
        }
    }
    let twice = zip(&[manifest(), Raw::directory("a/"), Raw::directory("a/")]);
    cases.push(case("a directory twice", twice, Refused("Duplicate")));
    let twice = zip(&[manifest(), Raw::directory("a/"), Raw::directory("A/")]);
    cases.push(case(
        "a directory twice in other letters",
        twice,
        Refused("Duplicate"),
    ));
    for (one, other) in [
        (Raw::file("a", ""), Raw::file("a/b", "")),
        (Raw::file("a/b", ""), Raw::file("a", "")),
        (Raw::file("a/b", ""), Raw::file("A", "")),
        (Raw::file("a", ""), Raw::directory("a/")),
        (Raw::directory("a/"), Raw::file("a", "")),
        (Raw::file("a/b", ""), Raw::file("a/b/c/d", "")),
    ] {
        let what = format!(
            "{:?} and {:?}",
            String::from_utf8_lossy(&one.name),
            String::from_utf8_lossy(&other.name)
        );
        cases.push(case(
            what,
            zip(&[manifest(), one, other]),
            Refused("FileAndDirectory"),
        ));
    }
}

fn kinds(cases: &mut Vec<Case>) {
    for system in [0, 3, 19] {
        for (what, mode, fate) in [
            ("a link", 0o120_777, Taken(&[("SKILL.md", 0o644)])),
            (
                "a link without permissions",
                0o120_000,
                Taken(&[("SKILL.md", 0o644)]),
            ),
            ("a character device", 0o020_666, Refused("NotRegular")),
            ("a block device", 0o060_666, Refused("NotRegular")),
            ("a fifo", 0o010_644, Refused("NotRegular")),
            ("a socket", 0o140_755, Refused("NotRegular")),
            ("an unknown type", 0o170_000, Refused("NotRegular")),
            (
                "a directory without its slash",
                0o040_755,
                Refused("FileAndDirectory"),
            ),
            (
                "set-uid",
                0o104_755,
                Taken(&[("SKILL.md", 0o644), ("a", 0o755)]),
            ),
            (
                "set-gid",
                0o102_644,
                Taken(&[("SKILL.md", 0o644), ("a", 0o644)]),
            ),
            (
                "sticky",
                0o101_777,
                Taken(&[("SKILL.md", 0o644), ("a", 0o755)]),
            ),
            (
                "everybody writes",
                0o100_666,
                Taken(&[("SKILL.md", 0o644), ("a", 0o644)]),
            ),
            (
                "nobody reads",
                0o100_000,
                Taken(&[("SKILL.md", 0o644), ("a", 0o644)]),
            ),
            (
                "others execute",
                0o100_001,
                Taken(&[("SKILL.md", 0o644), ("a", 0o755)]),
            ),
            (
                "no type",
                0o644,
                Taken(&[("SKILL.md", 0o644), ("a", 0o644)]),
            ),
        ] {
            let entry = Raw {
                system,
                ..Raw::file("a", "/etc/passwd")
            }
            .mode(mode);
            cases.push(case(
                format!("{what}, system {system}"),
                beside(entry),
                fate,
            ));
        }
    }
    let link = Raw::file("a", "/etc").mode(0o120_777);
    let through = zip(&[link.clone(), Raw::file("a/passwd", "x")]);
    cases.push(case(
        "a file through a link",
        through,
        Taken(&[("passwd", 0o644)]),
    ));
    let link = Raw {
        name: b"a/".to_vec(),
        ..link
    };
    cases.push(case(
        "a link with a slash",
        beside(link),
        Taken(&[("SKILL.md", 0o644)]),
    ));
    cases.push(case(
        "a file with a slash",
        beside(Raw::file("a/", "")),
        Refused("FileAndDirectory"),
    ));
    let full = Raw {
        content: b"x".to_vec(),
        ..Raw::directory("a/")
    };
    cases.push(case(
        "a directory with content",
        beside(full),
        Refused("BrokenEntry"),
    ));
    for flags in [1, 1 | 1 << 6, 1 << 6, 1 << 13] {
        let entry = Raw {
            flags,
            ..Raw::file("a", "x")
        };
        cases.push(case(
            format!("encrypted, {flags}"),
            beside(entry),
            Refused("Encrypted"),
        ));
    }
    let patch = Raw {
        flags: 1 << 5,
        ..Raw::file("a", "x")
    };
    cases.push(case("a patch", beside(patch), Refused("UnsupportedMethod")));
    for method in [
        1, 2, 5, 6, 9, 10, 12, 14, 18, 19, 20, 93, 95, 96, 97, 98, 99, 0xffff,
    ] {
        let entry = Raw {
            method: Some(method),
            ..Raw::file("a", "x")
        };
        cases.push(case(
            format!("method {method}"),
            beside(entry),
            Refused("UnsupportedMethod"),
        ));
    }
}

fn lies(cases: &mut Vec<Case>) {
    let text = || Raw::file("a", "some text, some text");
    let stored = || Raw {
        stored: true,
        ..text()
    };
    let mut add =
        |what: &str, entry: Raw| cases.push(case(what, beside(entry), Refused("BrokenEntry")));
    add(
        "a checksum of something else",
        Raw {
            crc: Some(7),
            ..text()
        },
    );
    add(
        "another checksum in its own header",
        Raw {
            local_crc: Some(7),
            ..text()
        },
    );
    add(
        "longer than it says",
        Raw {
            length: Some(3),
            ..text()
        },
    );
    add(
        "longer than it says by one",
        Raw {
            length: Some(19),
            ..text()
        },
    );
    add(
        "of no length",
        Raw {
            length: Some(0),
            ..text()
        },
    );
    add(
        "shorter than it says",
        Raw {
            length: Some(21),
            ..text()
        },
    );
    add(
        "another length in its own header",
        Raw {
            local_length: Some(3),
            ..text()
        },
    );
    add(
        "another packed length in its own header",
        Raw {
            local_packed: Some(3),
            ..text()
        },
    );
    add(
        "packed in less than it is",
        Raw {
            packed: Some(3),
            local_packed: Some(3),
            ..text()
        },
    );
    add(
        "packed in nothing",
        Raw {
            packed: Some(0),
            ..text()
        },
    );
    add(
        "stored in less than it is",
        Raw {
            packed: Some(3),
            ..stored()
        },
    );
    add(
        "stored in more than it is",
        Raw {
            length: Some(3),
            ..stored()
        },
    );
    add(
        "no deflated data",
        Raw {
            data: Some(vec![0xff; 20]),
            ..text()
        },
    );
    add(
        "no deflated data but zeros",
        Raw {
            data: Some(vec![0; 20]),
            ..text()
        },
    );
    add(
        "deflated data that ends early",
        Raw {
            data: Some(raw_zip::deflate(b"some text, some text")[..5].to_vec()),
            ..text()
        },
    );
    let more = [raw_zip::deflate(b"some text, some text"), vec![1, 2, 3]].concat();
    add(
        "something after its data",
        Raw {
            data: Some(more),
            ..text()
        },
    );
    let twice = [
        raw_zip::deflate(b"some text, some text"),
        raw_zip::deflate(b"more"),
    ]
    .concat();
    add(
        "two streams of data",
        Raw {
            data: Some(twice),
            ..text()
        },
    );
    add(
        "another name in its own header",
        Raw {
            local_name: Some(b"b".to_vec()),
            ..text()
        },
    );
    add(
        "a dangerous name in its own header",
        Raw {
            local_name: Some(b"../../x".to_vec()),
            ..text()
        },
    );
    add(
        "no name in its own header",
        Raw {
            local_name: Some(Vec::new()),
            ..text()
        },
    );
    add(
        "another method in its own header",
        Raw {
            local_method: Some(0),
            ..text()
        },
    );
    add(
        "encrypted by its own header",
        Raw {
            local_flags: Some(1),
            ..text()
        },
    );
    add(
        "no header of its own",
        Raw {
            local_signature: Some(7),
            ..text()
        },
    );
    add(
        "a header in the middle of another",
        Raw {
            start: Some(5),
            ..text()
        },
    );
    add(
        "a header beyond the file",
        Raw {
            start: Some(0x7fff_ffff),
            ..text()
        },
    );
    add(
        "a size elsewhere, and there is none",
        Raw {
            length: Some(u32::MAX),
            ..text()
        },
    );
    let second_name = |sum: u32, name: &[u8]| {
        let length = [5 + name.len() as u8, 0];
        [&[0x75, 0x70][..], &length, &[1], &sum.to_le_bytes(), name].concat()
    };
    let of_name = super::raw_zip::crc(&text().name);
    for (name, fate) in [
        (&b"../../x"[..], "UnsafePath"),
        (b"/x", "UnsafePath"),
        (b"", "UnsafePath"),
        (b"SKILL.md", "Duplicate"),
    ] {
        let entry = Raw {
            extra: second_name(of_name, name),
            ..text()
        };
        let what = format!("a second name that fits: {name:?}");
        cases.push(case(what, beside(entry), Refused(fate)));
    }
    let two = Raw {
        extra: second_name(of_name, b"other"),
        flags: 1 << 11,
        ..text()
    };
    cases.push(case(
        "two names in UTF-8",
        beside(two),
        Refused("BrokenEntry"),
    ));
    let stale = Raw {
        extra: second_name(of_name ^ 1, b"../../x"),
        ..Raw::file("a", "x")
    };
    cases.push(case(
        "a second name of another name",
        beside(stale),
        Taken(&[("SKILL.md", 0o644), ("a", 0o644)]),
    ));
    for (what, length) in [
        ("most", u64::MAX),
        ("a negative length", 1 << 63),
        ("1 TiB", 1 << 40),
    ] {
        let field = [&[1, 0, 8, 0][..], &length.to_le_bytes()].concat();
        let packed = Raw {
            packed: Some(u32::MAX),
            extra: field.clone(),
            ..text()
        };
        cases.push(case(
            format!("packed in {what}"),
            beside(packed),
            Refused("Overlap"),
        ));
        let start = Raw {
            start: Some(u32::MAX),
            extra: field.clone(),
            ..text()
        };
        cases.push(case(
            format!("begins at {what}"),
            beside(start),
            Refused("BrokenEntry"),
        ));
        let unpacked = Raw {
            length: Some(u32::MAX),
            local_length: Some(u32::MAX),
            extra: field,
            ..text()
        };
        cases.push(case(
            format!("as long as {what}"),
            beside(unpacked),
            Refused("Unpacked"),
        ));
    }
    cases.push(case(
        "one header for two",
        zip(&[
            text(),
            Raw {
                start: Some(0),
                name: b"a".to_vec(),
                ..text()
            },
        ]),
        Refused("Overlap"),
    ));
    let mut inner = zip(&[Raw {
        stored: true,
        ..Raw::file("b", "within")
    }]);
    inner.truncate(30 + 1 + 6);
    let outer = Raw {
        stored: true,
        ..Raw::file("a", &inner)
    };
    let quoting = Raw {
        stored: true,
        start: Some(31),
        ..Raw::file("b", "within")
    };
    cases.push(case(
        "an entry within another",
        zip(&[outer, quoting]),
        Refused("Overlap"),
    ));
    cases.push(case(
        "data that reaches into the list",
        zip(&[Raw {
            packed: Some(30),
            length: Some(30),
            local_packed: Some(30),
            local_length: Some(30),
            ..stored()
        }]),
        Refused("Overlap"),
    ));
}

fn ends(cases: &mut Vec<Case>) {
    let entries = [manifest(), Raw::file("a", "x")];
    let whole = zip(&entries);
    let mut add =
        |what: &str, end: End, fate| cases.push(case(what, zip_with(&entries, &end), fate));
    let taken = || Taken(&[("SKILL.md", 0o644), ("a", 0o644)]);
    add("as it should be", End::default(), taken());
    add(
        "a comment",
        End {
            comment: b"0123456789abcdef".to_vec(),
            ..End::default()
        },
        taken(),
    );
    add(
        "in 64 bits",
        End {
            in_64_bits: Some((None, None, None)),
            ..End::default()
        },
        taken(),
    );
    let not = || Refused("NotAZip");
    add(
        "something after it",
        End {
            after: vec![0],
            ..End::default()
        },
        not(),
    );
    add(
        "a comment that is longer",
        End {
            comment_length: Some(9),
            ..End::default()
        },
        not(),
    );
    add(
        "something before it",
        End {
            before: vec![],
            between: vec![0; 9],
            ..End::default()
        },
        not(),
    );
    add(
        "another disk",
        End {
            disk: 1,
            ..End::default()
        },
        not(),
    );
    add(
        "fewer entries",
        End {
            entries: Some(1),
            ..End::default()
        },
        not(),
    );
    add(
        "no entries",
        End {
            entries: Some(0),
            ..End::default()
        },
        not(),
    );
    add(
        "more entries",
        End {
            entries: Some(3),
            ..End::default()
        },
        not(),
    );
    add(
        "10,000 entries",
        End {
            entries: Some(10_000),
            ..End::default()
        },
        not(),
    );
    add(
        "10,001 entries",
        End {
            entries: Some(10_001),
            ..End::default()
        },
        Refused("TooManyEntries"),
    );
    add(
        "65,535 entries",
        End {
            entries: Some(u16::MAX),
            ..End::default()
        },
        Refused("TooManyEntries"),
    );
    add(
        "entries elsewhere",
        End {
            entries_here: Some(1),
            ..End::default()
        },
        not(),
    );
    add(
        "a list at the beginning",
        End {
            start: Some(0),
            ..End::default()
        },
        not(),
    );
    add(
        "a list far behind",
        End {
            start: Some(0x7000_0000),
            ..End::default()
        },
        not(),
    );
    add(
        "a longer list",
        End {
            length: Some(0x7000_0000),
            ..End::default()
        },
        not(),
    );
    add(
        "a shorter list",
        End {
            length: Some(46),
            ..End::default()
        },
        not(),
    );
    for many in [10_001, 2_000_000, 1 << 32, 1 << 63, u64::MAX] {
        let in_64_bits = Some((Some(many), None, None));
        add(
            &format!("{many} entries in 64 bits"),
            End {
                in_64_bits,
                ..End::default()
            },
            Refused("TooManyEntries"),
        );
    }
    for odd in [0, 1, 1 << 40, 1 << 63, u64::MAX] {
        let in_64_bits = Some((None, Some(odd), None));
        add(
            &format!("a list of {odd} bytes"),
            End {
                in_64_bits,
                ..End::default()
            },
            not(),
        );
        let in_64_bits = Some((None, None, Some(odd)));
        add(
            &format!("a list at {odd}"),
            End {
                in_64_bits,
                ..End::default()
            },
            not(),
        );
    }
    // The list lies behind what was put before, and its place says so.
    let mut moved = vec![b'#'; 100];
    moved.extend(&whole);
    cases.push(case("a program before it", moved, not()));
    cases.push(case(
        "two zip files",
        [whole.clone(), whole.clone()].concat(),
        not(),
    ));
    cases.push(case("nothing", Vec::new(), not()));
    cases.push(case("one byte", vec![b'P'], not()));
    cases.push(case(
        "a text",
        b"not a zip file at all, but a text of some length".to_vec(),
        not(),
    ));
    cases.push(case("no entries at all", zip(&[]), Refused("Empty")));
    cases.push(case(
        "directories only",
        zip(&[Raw::directory("a/"), Raw::directory("b/")]),
        Refused("Empty"),
    ));
    cases.push(case(
        "what is left out only",
        zip(&[Raw::file("__MACOSX/._a", ""), Raw::file(".DS_Store", "")]),
        Refused("Empty"),
    ));
    cases.push(case(
        "a damaged list",
        zip(&[Raw {
            central_signature: Some(7),
            ..manifest()
        }]),
        not(),
    ));
    // A comment that looks like another end, and leads to another list.
    let other = zip(&[Raw::file("evil", "x")]);
    let fake = End {
        comment: other.clone(),
        ..End::default()
    };
    cases.push(case(
        "an end in the comment",
        zip_with(&entries, &fake),
        not(),
    ));
    for part in 0..50 {
        let cut = whole[..whole.len() * part / 50].to_vec();
        cases.push(case(format!("cut at {part}/50"), cut, not()));
        let behind = whole[whole.len() * (part + 1) / 50..].to_vec();
        cases.push(case(
            format!("without the first {}/50", part + 1),
            behind,
            not(),
        ));
    }
}

fn bombs(cases: &mut Vec<Case>) {
    let zeros = vec![0; 2 << 20];
    cases.push(case(
        "2 MiB of zeros",
        zip(&[Raw::file("a", &zeros)]),
        Refused("Ratio"),
    ));
    let liar = Raw {
        length: Some(100),
        ..Raw::file("a", &zeros)
    };
    cases.push(case(
        "2 MiB of zeros that say 100 bytes",
        zip(&[liar]),
        Refused("BrokenEntry"),
    ));
    let liar = Raw {
        descriptor: true,
        length: Some(1000),
        ..Raw::file("a", &zeros)
    };
    cases.push(case(
        "with its length behind it",
        zip(&[liar]),
        Refused("BrokenEntry"),
    ));
    // Each of many entries is the same stream, as in the bombs that need no nesting.
    let one = Raw::file("a", &zeros[..1 << 20]);
    let packed = raw_zip::deflate(&one.content).len() as u32;
    let mut same = vec![one.clone()];
    for _ in 0..100 {
        same.push(Raw {
            start: Some(0),
            data: Some(Vec::new()),
            packed: Some(packed),
            ..one.clone()
        });
    }
    cases.push(case(
        "a hundred times the same data",
        zip(&same),
        Refused("Overlap"),
    ));
    // The whole counts: a harmless file beside it makes room.
    let noise: Vec<u8> = (0..25_000_u32)
        .flat_map(|n| {
            n.wrapping_mul(2_654_435_761)
                .rotate_left(n % 31)
                .to_le_bytes()
        })
        .collect();
    let both = [
        Raw::file("a", &zeros),
        Raw {
            stored: true,
            ..Raw::file("noise", &noise)
        },
    ];
    cases.push(case(
        "2 MiB of zeros beside 100 kB of noise",
        zip(&both),
        Taken(&[("a", 0o644), ("noise", 0o644)]),
    ));
    let many: Vec<Raw> = (0..10_001)
        .map(|n| Raw {
            stored: true,
            ..Raw::file(format!("{n}"), "")
        })
        .collect();
    cases.push(case(
        "10,001 entries that are there",
        zip(&many),
        Refused("TooManyEntries"),
    ));
    let apart: Vec<Raw> = (0..5_001)
        .map(|n| Raw {
            stored: true,
            ..Raw::file(format!("{n}/a/b"), "")
        })
        .collect();
    cases.push(case(
        "10,002 directories that nobody named",
        zip(&apart),
        Refused("TooManyEntries"),
    ));
    let huge = Raw {
        length: Some(0x7fff_ffff),
        ..Raw::file("a", "x")
    };
    cases.push(case(
        "2 GiB by its length",
        zip(&[huge]),
        Refused("Unpacked"),
    ));
}

fn harmless(cases: &mut Vec<Case>) {
    let mac = zip(&[
        Raw::file("x/a", "1"),
        Raw::file("__MACOSX/x/._a", "2"),
        Raw::file("x/.DS_Store", "3"),
        Raw::file(".DS_Store", "3"),
        Raw::directory("x/"),
        Raw::directory("__MACOSX/"),
        Raw::file("x/.git/config", "4"),
        Raw::file("x/d/__MACOSX/y", "5"),
    ]);
    cases.push(case("what a Mac packs", mac, Taken(&[("a", 0o644)])));
    let streamed = zip(&[
        Raw {
            descriptor: true,
            ..Raw::file("x/a", "1")
        },
        Raw {
            descriptor: true,
            ..Raw::file("x/b", "2")
        },
    ]);
    cases.push(case(
        "lengths behind the data",
        streamed,
        Taken(&[("a", 0o644), ("b", 0o644)]),
    ));
    let one = [
        &[1, 0, 24, 0][..],
        &1_u64.to_le_bytes(),
        &1_u64.to_le_bytes(),
        &0_u64.to_le_bytes(),
    ]
    .concat();
    let wide = Raw {
        stored: true,
        length: Some(u32::MAX),
        packed: Some(u32::MAX),
        start: Some(u32::MAX),
        extra: one.clone(),
        local_extra: one[..20].to_vec(),
        ..Raw::file("x/a", "1")
    };
    cases.push(case(
        "sizes in 64 bits",
        zip(&[wide]),
        Taken(&[("a", 0o644)]),
    ));
    let same = [&[0x75, 0x70, 8, 0, 1, 0, 0, 0, 0][..], b"x/a"].concat();
    let named = Raw {
        extra: same,
        comment: vec![b'c'; 1000],
        ..Raw::file("x/a", "1")
    };
    cases.push(case(
        "its name once more",
        zip(&[named]),
        Taken(&[("a", 0o644)]),
    ));
    let odd = Raw {
        extra: vec![9, 9, 200, 0, 1],
        ..Raw::file("x/a", "1")
    };
    cases.push(case(
        "a damaged field that nobody needs",
        zip(&[odd]),
        Taken(&[("a", 0o644)]),
    ));
    let deep = zip(&[Raw::file("t/".to_owned() + &"a/".repeat(31) + "x", "")]);
    cases.push(case(
        "32 levels in a top directory",
        deep,
        Taken(&[(
            "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/x",
            0o644,
        )]),
    ));
    let empty = zip(&[
        Raw::file("x/a", ""),
        Raw::directory("x/empty/"),
        Raw::directory("other/"),
    ]);
    cases.push(case("empty directories", empty, Taken(&[("a", 0o644)])));
    let odd = zip(&[
        Raw::file("x/.hidden", ""),
        Raw::file("x/-rf", ""),
        Raw::file("x/~", ""),
        Raw::file("x/a b", ""),
        Raw::file("x/$(id)", ""),
    ]);
    cases.push(case(
        "odd names",
        odd,
        Taken(&[
            ("$(id)", 0o644),
            ("-rf", 0o644),
            (".hidden", 0o644),
            ("a b", 0o644),
            ("~", 0o644),
        ]),
    ));
    let parts = zip(&[
        Raw::directory("x/d/"),
        Raw::file("x/d/a", ""),
        Raw::directory("x/"),
    ]);
    cases.push(case(
        "directories named themselves",
        parts,
        Taken(&[("d/a", 0o644)]),
    ));
    let around = End {
        before: vec![b'#'; 50],
        ..End::default()
    };
    let program = zip_with(&[Raw::file("x/a", "")], &around);
    cases.push(case(
        "a program before it that its places know of",
        program,
        Taken(&[("a", 0o644)]),
    ));
}

#[test]
fn l27_hostile_zips_are_refused_with_their_reason_and_leave_nothing() {
    let mut cases = Vec::new();
    paths(&mut cases);
    twins(&mut cases);
    kinds(&mut cases);
    lies(&mut cases);
    ends(&mut cases);
    bombs(&mut cases);
    harmless(&mut cases);
    assert!(cases.len() >= 300, "{}", cases.len());
    let mut failures = Vec::new();
    let yard = Yard::new();
    for Case { what, bytes, fate } in &cases {
        let outcome = yard.import(bytes);
        match (&outcome, fate) {
            (Err(error), Refused(expected)) => {
                let shown = error.to_string();
                if rule(error) != *expected {
                    failures.push(format!("{what}: {error:?}, not {expected}"));
                }
                // Texts for people are short and harm no terminal.
                if shown.len() > 1200 || shown.chars().any(char::is_control) {
                    failures.push(format!("{what}: says {shown:?}"));
                }
                let left = yard.left();
                if !left.is_empty() {
                    failures.push(format!("{what}: leaves {left:?}"));
                }
            }
            (Ok(imported), Taken(expected)) => {
                let tree = yard.tree(imported);
                let found: Vec<(&str, u32)> = tree
                    .iter()
                    .map(|(path, (mode, _))| (&**path, *mode))
                    .collect();
                if found != *expected {
                    failures.push(format!("{what}: {found:?}"));
                }
                let gone = yard.store.remove_unused(
                    &imported.name,
                    &imported.digest,
                    Timestamp::from_millis(i64::MAX),
                );
                assert!(gone.unwrap());
                let left = yard.left();
                if !left.is_empty() {
                    failures.push(format!("{what}: leaves {left:?}"));
                }
            }
            (outcome, _) => {
                failures.push(format!("{what}: {outcome:?}"));
                let _ = fs::remove_dir_all(yard.skills().join("skill"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

#[test]
fn any_damage_is_refused_or_harmless() {
    let good = zip(&[
        Raw::file("x/SKILL.md", "---\nname: x\n---\ntext"),
        Raw {
            stored: true,
            ..Raw::file("x/run", "#!/bin/sh").mode(0o100_755)
        },
        Raw {
            descriptor: true,
            ..Raw::file("x/d/a", "a".repeat(300))
        },
    ]);
    let yard = Yard::new();
    let mut damaged = good.clone();
    let mut taken = 0;
    for at in 0..good.len() {
        for bit in [0, 3, 6, 7] {
            damaged[at] ^= 1 << bit;
            match yard.import(&damaged) {
                Ok(imported) => {
                    taken += 1;
                    // No content without its checksum, and nothing but plain files.
                    yard.tree(&imported);
                    fs::remove_dir_all(yard.skills().join("skill")).unwrap();
                }
                Err(error) => {
                    assert!(
                        matches!(error, ImportError::Refused(_)),
                        "{at} {bit}: {error:?}"
                    );
                    assert!(yard.left().is_empty(), "{at} {bit}");
                }
            }
            damaged[at] ^= 1 << bit;
        }
    }
    assert!(taken > 0, "times and the like do not matter");
}
