//! What the programs say: made fit for people, and understood.
//!
//! The sentences are those of git 2.37 to 2.47 and OpenSSH 8.4 to 10; one that is not recognised is given as it is.

use std::io;

use secrecy::{ExposeSecret, SecretString};
use url::{Url, form_urlencoded};

use super::process::too_large;
use super::{GitError, Limits};

/// Longest text taken over from a program or server, in characters; it ends up in conditions and events.
const LONGEST: usize = 1000;
/// What stands in the place of a secret.
const HIDDEN: &str = "********";
/// Shortest line of a private key that is looked for: shorter ones are words such as `-----END`.
const LINE_OF_KEY: usize = 16;

/// The secrets that no text may hold, in each form in which they are sent.
pub(super) struct Hidden(Vec<String>);

impl Hidden {
    /// `header`: what it is sent as with HTTP.
    pub(super) fn new(secret: Option<&SecretString>, header: Option<&SecretString>) -> Self {
        let mut all = Vec::new();
        if let Some(secret) = secret.map(ExposeSecret::expose_secret) {
            let lines = secret
                .lines()
                .map(str::trim)
                .filter(|line| line.len() >= LINE_OF_KEY);
            all.extend(lines.map(str::to_owned));
            all.push(secret.to_owned());
            all.push(form_urlencoded::byte_serialize(secret.as_bytes()).collect());
            if let Ok(mut url) = Url::parse("https://host") {
                let _ = url.set_password(Some(secret));
                all.extend(url.password().map(str::to_owned));
            }
        }
        if let Some(header) = header.map(ExposeSecret::expose_secret) {
            let value = header.rsplit(' ').next().unwrap_or_default();
            all.push(value.trim_end_matches('=').to_owned());
        }
        all.retain(|text| !text.is_empty());
        // What holds another goes first.
        all.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self(all)
    }

    /// The text without secrets and control characters, in one line, and cut.
    pub(super) fn clean(&self, text: &str) -> String {
        let hidden = self
            .0
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN));
        let plain = strip_ansi_escapes::strip_str(hidden);
        let lines = plain.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines.collect::<Vec<_>>().join("; ");
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        // Why it failed stands at the end.
        let over = line.chars().count().saturating_sub(LONGEST);
        line.chars().skip(over).collect()
    }
}

/// About what the words are.
pub(super) struct About<'a> {
    /// The host.
    pub(super) host: &'a str,
    /// The full name of the reference.
    pub(super) reference: &'a str,
    pub(super) limits: &'a Limits,
    pub(super) hidden: &'a Hidden,
}

/// What a failed program means.
pub(super) fn meaning(words: &[u8], about: &About<'_>) -> GitError {
    let words = String::from_utf8_lossy(words);
    let text = about.hidden.clean(&words);
    // What the repository's server says itself is shown, and not believed.
    let own: Vec<&str> = words
        .lines()
        .filter(|line| !line.starts_with("remote:"))
        .collect();
    let own = own.join("\n");
    let says = |all: &[&str]| all.iter().any(|part| own.contains(part));
    let host = || about.host.to_owned();
    if says(&["cannot run ssh", "ssh: not found", "ssh: command not found"]) {
        GitError::Missing {
            program: "ssh",
            package: "openssh-client",
        }
    } else if says(&["nable to find remote helper", "is not a git command"]) {
        GitError::Missing {
            program: "git-remote-https",
            package: "git",
        }
    } else if says(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
        let mut words = own.split_whitespace();
        let fingerprint = words.find(|word| word.starts_with("SHA256:"));
        GitError::HostKeyChanged {
            host: host(),
            fingerprint: fingerprint.map(|found| about.hidden.clean(found.trim_end_matches('.'))),
        }
    } else if says(&["host key is known for", "Host key verification failed"]) {
        GitError::HostKeyUnknown(host())
    } else if says(&["Load key \""]) {
        GitError::Credentials(
            "the private key can't be read; give one of OpenSSH or PEM without a passphrase",
        )
    } else if says(&["couldn't find remote ref"]) {
        GitError::NoReference(about.reference.to_owned())
    } else if says(&["died of signal 25", "File too large"]) {
        too_large(about.limits)
    } else if says(&[
        "Out of memory",
        "out of memory",
        "malloc failed",
        "mmap failed",
        "Cannot allocate memory",
    ]) {
        GitError::TooMuch {
            most: about.limits.memory,
            what: "bytes of memory to unpack it",
        }
    } else if says(&["No space left on device", "Disk quota exceeded"]) {
        GitError::Storage(io::ErrorKind::StorageFull.into())
    } else if says(&[
        "fsck error",
        "fsck failed",
        "hasDotgit",
        "hasDotdot",
        "remote did not send all necessary objects",
        "pack has bad object",
        "corrupt",
    ]) && !says(&["early EOF", "hung up", "unexpected disconnect"])
    {
        GitError::Hostile(text)
    } else if says(&[
        "Permission denied (",
        "Authentication failed",
        "could not read Username",
        "could not read Password",
        "terminal prompts disabled",
        "Too many authentication failures",
        "returned error: 401",
        "returned error: 403",
        "access denied",
    ]) {
        GitError::Unauthorized(text)
    } else if says(&[
        "does not appear to be a git repository",
        "Repository not found",
        "repository not found",
        "' not found",
        "returned error: 404",
        "no such repository",
        "project you were looking for could not be found",
    ]) {
        GitError::NotFound(text)
    } else if says(&["certificate"]) {
        GitError::Certificate {
            host: host(),
            words: text,
        }
    } else if says(&[
        "Could not resolve",
        "Failed to connect",
        "Connection refused",
        "Connection reset",
        "Connection closed",
        "Connection timed out",
        "Operation timed out",
        "Operation too slow",
        "Timeout, server",
        "No route to host",
        "Network is unreachable",
        "Broken pipe",
        "early EOF",
        "hung up",
        "unexpected disconnect",
        "returned error: 5",
        "Empty reply",
        "transfer closed",
        "RPC failed",
        "kex_exchange_identification",
        "Could not read from remote repository",
    ]) {
        GitError::Unreachable(text)
    } else {
        GitError::Failed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{Classify, ErrorClass};

    fn none() -> Hidden {
        Hidden::new(None, None)
    }

    #[test]
    fn no_form_of_a_secret_is_shown() {
        let secret: SecretString = "p@ss word/ä".to_owned().into();
        let header: SecretString = "Basic dTpwQHNzIHdvcmQvw6Q=".to_owned().into();
        let hidden = Hidden::new(Some(&secret), Some(&header));
        for text in [
            "fatal: p@ss word/ä",
            "https://u:p%40ss%20word%2F%C3%A4@h/",
            "x=p%40ss+word%2F%C3%A4",
            "> Authorization: Basic dTpwQHNzIHdvcmQvw6Q=",
        ] {
            let seen = hidden.clean(text);
            assert!(seen.contains(HIDDEN), "{seen}");
            assert!(!seen.contains("word") && !seen.contains("dTpw"), "{seen}");
        }
        let key: SecretString = "-----BEGIN X\nabcdefghijklmnopqrstuvwxyz\nAB\n"
            .to_owned()
            .into();
        let seen = Hidden::new(Some(&key), None).clean("bad: abcdefghijklmnopqrstuvwxyz AB");
        assert_eq!(seen, "bad: ******** AB");
    }

    #[test]
    fn words_are_one_line_without_control_characters_and_their_end_is_kept() {
        assert_eq!(
            none().clean("a\u{1b}[31mb\r\n\n  c\u{7}\u{85}d \n"),
            "ab; cd"
        );
        let long = format!("{}end", "ä".repeat(5000));
        let seen = none().clean(&long);
        assert_eq!(seen.chars().count(), LONGEST);
        assert!(seen.ends_with("end"));
    }

    #[test]
    fn each_sentence_has_its_meaning() {
        use ErrorClass::{Terminal, Transient};
        for (words, kind, class) in [
            (
                "error: cannot run ssh: No such file or directory\nfatal: unable to fork",
                "Missing",
                Terminal,
            ),
            (
                "fatal: Unable to find remote helper for 'https'",
                "Missing",
                Terminal,
            ),
            (
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nThe fingerprint for the ED25519 key sent by the remote host is\nSHA256:abc+/1.\nHost key verification failed.",
                "HostKeyChanged",
                Terminal,
            ),
            (
                "No ED25519 host key is known for a and you have requested strict checking.\nHost key verification failed.",
                "HostKeyUnknown",
                Terminal,
            ),
            (
                "Load key \"/proc/1/fd/9\": error in libcrypto\ngit@a: Permission denied (publickey).",
                "Credentials",
                Terminal,
            ),
            (
                "git@a: Permission denied (publickey).\nfatal: Could not read from remote repository.",
                "Unauthorized",
                Terminal,
            ),
            (
                "fatal: could not read Username for 'https://a': terminal prompts disabled",
                "Unauthorized",
                Terminal,
            ),
            (
                "fatal: couldn't find remote ref refs/heads/x",
                "NoReference",
                Terminal,
            ),
            (
                "error: index-pack died of signal 25\nfatal: index-pack failed",
                "TooMuch",
                Terminal,
            ),
            (
                "fatal: Out of memory, malloc failed (tried to allocate 99 bytes)\nfatal: index-pack failed",
                "TooMuch",
                Terminal,
            ),
            (
                "fatal: write error: No space left on device\nfatal: index-pack failed",
                "Storage",
                Transient,
            ),
            (
                "error: object 12: hasDotgit: contains '.git'\nfatal: fsck error in packed object\nfatal: fetch-pack: invalid index-pack output",
                "Hostile",
                Terminal,
            ),
            (
                "fatal: early EOF\nfatal: fetch-pack: invalid index-pack output",
                "Unreachable",
                Transient,
            ),
            (
                "fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote repository.",
                "NotFound",
                Terminal,
            ),
            (
                "fatal: repository 'https://a/b/' not found",
                "NotFound",
                Terminal,
            ),
            (
                "fatal: unable to access 'https://a/': server certificate verification failed.",
                "Certificate",
                Transient,
            ),
            (
                "ssh: connect to host a port 22: Connection refused",
                "Unreachable",
                Transient,
            ),
            ("fatal: something new", "Failed", Transient),
            (
                "remote: fsck error REMOTE HOST IDENTIFICATION HAS CHANGED\nfatal: x",
                "Failed",
                Transient,
            ),
        ] {
            let (limits, hidden) = (Limits::default(), none());
            let about = About {
                host: "a",
                reference: "refs/heads/x",
                limits: &limits,
                hidden: &hidden,
            };
            let seen = meaning(words.as_bytes(), &about);
            assert!(format!("{seen:?}").starts_with(kind), "{words}: {seen:?}");
            assert_eq!(seen.class(), class, "{words}");
            if let GitError::HostKeyChanged { fingerprint, .. } = &seen {
                assert_eq!(fingerprint.as_deref(), Some("SHA256:abc+/1"));
                assert!(seen.to_string().contains("(SHA256:abc+/1)"), "{seen}");
            }
        }
    }
}
