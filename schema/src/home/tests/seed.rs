use super::*;
use crate::fault::in_process;

const OWN: [&str; 2] = ["config.json", "security.json"];

/// An entry of a tar stream, whatever its name is: the library that writes them refuses bad ones.
fn entry(kind: tar::EntryType, path: &str, target: &str, mode: u32, content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    let old = header.as_old_mut();
    old.name[..path.len()].copy_from_slice(path.as_bytes());
    old.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(path: &str, content: &[u8]) -> Vec<u8> {
    entry(tar::EntryType::Regular, path, "", 0o644, content)
}

fn link(path: &str, target: &str) -> Vec<u8> {
    entry(tar::EntryType::Symlink, path, target, 0o777, b"")
}

fn image(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = entry(tar::EntryType::Directory, "root/", "", 0o700, b"");
    stream.extend(entries.concat());
    stream.extend([0; 1024]);
    stream
}

/// What agents' images have in their homes.
fn plain() -> Vec<u8> {
    let hard = tar::EntryType::Link;
    image(&[
        file("root/.bashrc", b"PS1=$"),
        entry(tar::EntryType::Directory, "root/.cache/", "", 0o750, b""),
        entry(tar::EntryType::Regular, "root/bin/tool", "", 0o4755, b"#!"),
        entry(hard, "root/bin/same", "root/bin/tool", 0o755, b""),
        link("root/bin/profile", "../.bashrc"),
        file("root/.agent/config.json", b"of the image"),
        file("root/.agent/workspace/hello.txt", b"hello"),
    ])
}

fn alice(yard: &Yard) -> (UserName, Uid) {
    let alice = (name("alice"), uid('a'));
    yard.homes.ensure(&alice.0, &alice.1, None).unwrap();
    alice
}

fn needs(yard: &Yard) -> bool {
    let own = OWN.map(str::to_owned);
    yard.homes
        .needs_seed(&name("alice"), &uid('a'), &own)
        .unwrap()
}

fn seed(yard: &Yard, image: &[u8], limits: SeedLimits) -> Result<Seeded, HomeError> {
    yard.homes.seed(&name("alice"), &uid('a'), image, limits)
}

#[test]
fn seed_home_copies_the_images_home_into_an_untouched_one_once() {
    let yard = Yard::new();
    assert!(!needs(&yard), "there is no directory yet");
    alice(&yard);
    // What the service has written stays.
    fs::write(yard.users("alice/.agent/config.json"), b"ours").unwrap();
    assert!(needs(&yard));
    let seeded = seed(&yard, &plain(), SeedLimits::default()).unwrap();
    assert_eq!((seeded.entries, seeded.skipped.count), (8, 0), "{seeded:?}");
    assert!(!needs(&yard));
    let read = |path: &str| fs::read(yard.users(path)).unwrap();
    assert_eq!(read("alice/.agent/config.json"), b"ours");
    assert_eq!(read("alice/.agent/workspace/hello.txt"), b"hello");
    assert_eq!(read("alice/bin/profile"), b"PS1=$");
    let mode = |path: &str| fs::metadata(yard.users(path)).unwrap().mode() & 0o7777;
    assert_eq!(mode("alice/bin/tool"), 0o755, "without set-uid");
    assert_eq!(mode("alice/.cache"), 0o750);
    assert_eq!(mode("alice"), 0o700);
    let inode = |path: &str| fs::metadata(yard.users(path)).unwrap().ino();
    assert_eq!(inode("alice/bin/same"), inode("alice/bin/tool"));

    // A directory in its place is empty again.
    fs::remove_dir_all(yard.users("alice")).unwrap();
    alice(&yard);
    assert!(needs(&yard));
    // One in which somebody has written is theirs.
    fs::write(yard.users("alice/.agent/workspace/mine"), b"").unwrap();
    assert!(!needs(&yard));
    fs::remove_file(yard.users("alice/.agent/workspace/mine")).unwrap();
    fs::write(yard.users("alice/.profile"), b"").unwrap();
    assert!(!needs(&yard));
}

#[test]
fn seed_home_brings_no_devices_and_no_links_that_lead_out() {
    let yard = Yard::new();
    alice(&yard);
    let outside = yard.data.path().join("outside");
    let hard = tar::EntryType::Link;
    let hostile = image(&[
        entry(tar::EntryType::Char, "root/null", "", 0o666, b""),
        entry(tar::EntryType::Fifo, "root/fifo", "", 0o666, b""),
        link("root/absolute", "/etc"),
        link("root/up", ".."),
        link("root/a/up", "../.."),
        // Inside by itself, and a way out for the next.
        link("root/a/down", ".."),
        link("root/through", "a/down/../x"),
        file("root/a/down/through", b"x"),
        file("root/../../outside", b"x"),
        file("/outside", b"x"),
        file("root/absolute/outside", b"x"),
        entry(hard, "root/passwd", "root/absolute/passwd", 0o644, b""),
        entry(hard, "root/shadow", "root/../../master.key", 0o644, b""),
        file("root/good", b"good"),
    ]);
    let seeded = seed(&yard, &hostile, SeedLimits::default()).unwrap();
    assert_eq!(seeded.skipped.count, 11, "{:?}", seeded.skipped);
    assert!(!outside.exists() && !Path::new("/outside").exists());
    let mut found: Vec<_> = snapshot(&yard.users("alice")).into_keys().collect();
    found.retain(|path| !path.starts_with(".agent"));
    let expected = ["", "a", "a/down", "absolute", "absolute/outside", "good"];
    assert_eq!(found, expected.map(PathBuf::from));
}

#[test]
fn seed_home_is_bounded_in_entries_and_bytes() {
    for (limits, fits) in [
        (
            SeedLimits {
                entries: 8,
                bytes: 100,
            },
            true,
        ),
        (
            SeedLimits {
                entries: 7,
                bytes: 100,
            },
            false,
        ),
        (
            SeedLimits {
                entries: 8,
                bytes: 20,
            },
            false,
        ),
    ] {
        let yard = Yard::new();
        alice(&yard);
        let seeded = seed(&yard, &plain(), limits);
        assert_eq!(seeded.is_ok(), fits, "{limits:?} {seeded:?}");
        assert_eq!(needs(&yard), !fits);
        if let Err(error) = seeded {
            assert!(matches!(error, HomeError::SeedTooLarge { .. }), "{error:?}");
        }
    }
    // A header that promises more than there is.
    let yard = Yard::new();
    alice(&yard);
    let mut cut = plain();
    cut.truncate(2000);
    assert!(seed(&yard, &cut, SeedLimits::default()).is_err());
    assert!(needs(&yard), "it is made again");
}

#[test]
fn seed_home_ended_at_any_step_goes_on_and_ends_the_same() {
    let run = |yard: &Yard| {
        seed(yard, &plain(), SeedLimits::default())
            .map(drop)
            .unwrap()
    };
    let names = |yard: &Yard| {
        let contents = snapshot(&yard.users("alice")).into_iter();
        let contents = contents.map(|(path, entry)| (path, entry.mode, entry.content));
        contents.collect::<Vec<_>>()
    };
    let whole = Yard::new();
    alice(&whole);
    let (_, points) = in_process::record(|| run(&whole));
    assert!(points.len() > 10, "{points:?}");
    for nth in 1..=points.len() {
        let yard = Yard::new();
        alice(&yard);
        assert!(in_process::crash_at(nth, || run(&yard)).is_none());
        assert!(needs(&yard), "{nth}");
        run(&yard);
        assert!(!needs(&yard));
        assert_eq!(names(&yard), names(&whole), "{nth}");
    }
}

#[test]
fn seed_home_takes_no_stream_that_ends_early_for_a_whole_home() {
    let image = image(&[file("root/a", &[b'x'; 3000]), file("root/b", b"b")]);
    let (within_a, after_a) = (2 * 512 + 1000, 8 * 512);
    for cut in [within_a, after_a, image.len() - 1024] {
        let yard = Yard::new();
        alice(&yard);
        let refused = seed(&yard, &image[..cut], SeedLimits::default());
        assert!(
            matches!(refused, Err(HomeError::Io { .. })),
            "{cut}: {refused:?}"
        );
        assert!(needs(&yard), "{cut}");
        seed(&yard, &image, SeedLimits::default()).unwrap();
        assert_eq!(fs::read(yard.users("alice/a")).unwrap(), [b'x'; 3000]);
        assert_eq!(fs::read(yard.users("alice/b")).unwrap(), b"b");
    }
}
