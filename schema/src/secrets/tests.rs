use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;
use secrecy::ExposeSecret;

use super::*;

fn key(byte: u8) -> MasterKey {
    MasterKey(Zeroizing::new([byte; KEY_LEN]))
}

fn write_key(dir: &Path, content: &str, mode: u32) {
    let path = dir.join(MASTER_KEY_FILE);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_key_is_made_once_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        MasterKey::load(dir.path()),
        Err(SecretsError::Missing { .. })
    ));
    let first = MasterKey::load_or_create(dir.path()).unwrap();
    let path = dir.path().join(MASTER_KEY_FILE);
    let content = std::fs::read_to_string(&path).unwrap();
    assert_eq!(content, format!("{}\n", hex::encode(first.0.as_slice())));
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    let second = MasterKey::load_or_create(dir.path()).unwrap();
    let third = MasterKey::load(dir.path()).unwrap();
    assert_eq!(first.0, second.0);
    assert_eq!(first.0, third.0);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "no temporary file stays behind"
    );
}

#[test]
fn processes_that_start_at_once_agree_on_one_key() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let fingerprints: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| MasterKey::load_or_create(dir.path()).unwrap().fingerprint())
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(
            fingerprints.iter().all(|f| f == &fingerprints[0]),
            "{fingerprints:?}"
        );
    }
}

#[rstest::rstest]
#[case::empty("", 0o600, "0 bytes")]
#[case::short("abcd\n", 0o600, "5 bytes")]
#[case::no_newline(&"a".repeat(65), 0o600, "64 lower-case hex digits")]
#[case::not_hex(&format!("{}\n", "g".repeat(64)), 0o600, "64 lower-case hex digits")]
#[case::upper_case(&format!("{}\n", "A".repeat(64)), 0o600, "64 lower-case hex digits")]
#[case::readable_by_others(&format!("{}\n", "a".repeat(64)), 0o644, "mode is 0644")]
#[case::readable_by_group(&format!("{}\n", "a".repeat(64)), 0o640, "mode is 0640")]
fn a_wrong_key_file_is_refused_and_left_alone(
    #[case] content: &str,
    #[case] mode: u32,
    #[case] says: &str,
) {
    let dir = tempfile::tempdir().unwrap();
    write_key(dir.path(), content, mode);
    for attempt in [MasterKey::load, MasterKey::load_or_create] {
        let error = attempt(dir.path()).unwrap_err();
        assert!(matches!(error, SecretsError::Unusable { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let path = dir.path().join(MASTER_KEY_FILE);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        mode
    );
}

#[test]
fn another_users_key_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_key(dir.path(), &format!("{}\n", "a".repeat(64)), 0o600);
    let path = dir.path().join(MASTER_KEY_FILE);
    std::os::unix::fs::chown(&path, Some(12_345), None)
        .expect("this test gives a file away: run it as root");
    let error = MasterKey::load(dir.path()).unwrap_err().to_string();
    assert!(error.contains("it belongs to user 12345"), "{error}");
}

#[test]
fn a_link_a_directory_or_a_fifo_is_no_key_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(MASTER_KEY_FILE);
    let elsewhere = dir.path().join("elsewhere");
    std::fs::write(&elsewhere, format!("{}\n", "a".repeat(64))).unwrap();
    let refused = || {
        assert!(matches!(
            MasterKey::load_or_create(dir.path()),
            Err(SecretsError::Unusable { .. })
        ));
    };
    symlink(&elsewhere, &path).unwrap();
    refused();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refused();
    std::fs::remove_dir(&path).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &path,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .unwrap();
    refused();
}

#[test]
fn debug_never_shows_the_key() {
    assert_eq!(format!("{:?}", key(0xab)), "MasterKey([REDACTED])");
}

#[test]
fn a_sealed_value_opens_only_at_its_place_and_with_its_key() {
    let sealed = key(1).seal("config/ldap.bind_password", b"geheim").unwrap();
    assert_eq!(
        key(1)
            .open("config/ldap.bind_password", &sealed)
            .unwrap()
            .as_slice(),
        b"geheim"
    );
    for (opener, context) in [
        (key(1), "config/oidc.client_secret"),
        (key(2), "config/ldap.bind_password"),
    ] {
        assert!(matches!(
            opener.open(context, &sealed),
            Err(SecretsError::NotAuthentic)
        ));
    }
}

#[test]
fn a_damaged_or_cut_value_does_not_open() {
    let sealed = key(1).seal("c", b"text").unwrap();
    for at in 1..sealed.len() {
        let mut damaged = sealed.clone();
        damaged[at] ^= 1;
        assert!(
            matches!(key(1).open("c", &damaged), Err(SecretsError::NotAuthentic)),
            "byte {at}"
        );
        assert!(
            matches!(
                key(1).open("c", &sealed[..at]),
                Err(SecretsError::NotAuthentic)
            ),
            "cut at {at}"
        );
    }
    assert!(matches!(
        key(1).open("c", &[]),
        Err(SecretsError::NotAuthentic)
    ));
    let mut newer = sealed;
    newer[0] = 9;
    assert!(matches!(
        key(1).open("c", &newer),
        Err(SecretsError::UnknownFormat { format: 9 })
    ));
}

#[test]
fn the_same_value_is_sealed_differently_each_time() {
    let seal = || key(1).seal("c", b"text").unwrap();
    assert_ne!(seal(), seal());
}

/// Computed with Python's `hmac` module over `be64(len(label)) + label + message`.
#[test]
fn derivation_is_hmac_sha256_with_a_length_prefixed_label() {
    assert_eq!(
        hex::encode(key(0x11).derive("token", b"uid:1")),
        "0ab05c8fee842f27502068847e0af37fb6993bc2637e8c20bd9b333defd7ec95"
    );
    assert_ne!(key(1).derive("ab", b"c"), key(1).derive("a", b"bc"));
    assert_ne!(key(1).derive("a", b"b"), key(2).derive("a", b"b"));
}

#[test]
fn tokens_of_a_user_differ_by_purpose_and_version() {
    let uid = Uid::from("a".repeat(32));
    let chat = |version| key(1).chat_token(&uid, version).expose_secret().to_owned();
    assert_eq!(hex::decode(chat(1)).unwrap().len(), 32);
    assert_eq!(chat(1), chat(1));
    assert_ne!(chat(1), chat(2));
    assert_ne!(chat(1), key(1).mcp_token(&uid, 1).expose_secret());
    assert_ne!(chat(1), key(2).chat_token(&uid, 1).expose_secret());
}

#[test]
fn passwords_have_sixteen_unmistakable_characters() {
    let mut seen = std::collections::HashSet::new();
    let mut used = std::collections::HashSet::new();
    for _ in 0..500 {
        let password = random_password().unwrap();
        let text = password.expose_secret();
        assert_eq!(text.len(), 16);
        assert!(
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() && !"0Oo1lI".contains(c)),
            "{text}"
        );
        used.extend(text.chars());
        assert!(seen.insert(text.to_owned()));
    }
    assert_eq!(used.len(), 56, "every character of the alphabet turns up");
}

#[test]
fn secrets_are_sixty_four_hex_digits() {
    let (a, b) = (random_secret().unwrap(), random_secret().unwrap());
    assert_eq!(hex::decode(a.expose_secret()).unwrap().len(), 32);
    assert_ne!(a.expose_secret(), b.expose_secret());
}

proptest! {
    #[test]
    fn whatever_is_sealed_opens_again(context in ".*", plaintext in proptest::collection::vec(any::<u8>(), 0..300)) {
        let sealed = key(7).seal(&context, &plaintext).unwrap();
        let opened = key(7).open(&context, &sealed).unwrap();
        prop_assert_eq!(opened.as_slice(), plaintext.as_slice());
        if plaintext.len() >= 8 {
            prop_assert!(!sealed.windows(plaintext.len()).any(|w| w == plaintext.as_slice()));
        }
    }

    #[test]
    fn opening_arbitrary_bytes_never_succeeds_and_never_panics(sealed in proptest::collection::vec(any::<u8>(), 0..80)) {
        prop_assert!(key(7).open("c", &sealed).is_err());
    }
}
