//! What may be a path in a package, and what may stand beside what.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use super::error::{Refusal, ShownPath};
use super::tree::TreeLimits;

/// Most names in a path.
pub(super) const MAX_DEPTH: usize = 32;
/// Most bytes of a path.
pub(super) const LONGEST_PATH: usize = 1024;
/// Most bytes of a name in a path.
pub(super) const LONGEST_COMPONENT: usize = 255;

/// The data of version control.
const VERSION_CONTROL: &str = ".git";
/// Files that macOS adds beside those of its users; Finder's file for the icon of a folder ends with a carriage return.
const MACOS: [&str; 3] = ["__MACOSX", ".DS_Store", "Icon\r"];
/// The beginning of names of files in which macOS keeps attributes of others.
const APPLE_DOUBLE: &str = "._";

/// Returns true if entries of that name, with everything in them, are left out, wherever they stand.
pub(super) fn is_left_out(name: &str) -> bool {
    name == VERSION_CONTROL || is_macos(name)
}

/// Returns true if macOS adds entries of that name.
pub(super) fn is_macos(name: &str) -> bool {
    MACOS.contains(&name) || name.starts_with(APPLE_DOUBLE)
}

/// The path as a text, if it is safe: relative, plain names only, nothing that another system or a terminal would read
/// as something else.
///
/// # Errors
/// [`Refusal::NotUtf8`], [`Refusal::UnsafePath`], [`Refusal::PathTooLong`] for a name in it.
pub(super) fn checked(path: &[u8]) -> Result<&str, Refusal> {
    let shown = || ShownPath::of(path);
    let refuse = |reason| {
        Err(Refusal::UnsafePath {
            path: shown(),
            reason,
        })
    };
    let path = std::str::from_utf8(path).map_err(|_| Refusal::NotUtf8 {
        paths: vec![shown()],
        count: 1,
    })?;
    let has_drive = |name: &str| {
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next() == Some(':')
    };
    if path.contains('\\') {
        return refuse("has a \\");
    } else if path.contains(char::is_control) {
        return refuse("has a control character");
    } else if path.starts_with('/') {
        return refuse("begins with /");
    }
    for name in path.split('/') {
        match name {
            "" => return refuse("has an empty name"),
            "." | ".." => return refuse("has . or .. in it"),
            name if has_drive(name) => return refuse("has a drive letter"),
            _ => {}
        }
    }
    if path.split('/').any(|name| name.len() > LONGEST_COMPONENT) {
        return Err(Refusal::PathTooLong(shown()));
    }
    Ok(path)
}

/// Whether a path in a tree is short and flat enough.
///
/// # Errors
/// [`Refusal::PathTooLong`], [`Refusal::TooDeep`].
pub(super) fn fits(path: &str) -> Result<(), Refusal> {
    if path.len() > LONGEST_PATH {
        Err(Refusal::PathTooLong(ShownPath::of(path)))
    } else if path.split('/').count() > MAX_DEPTH {
        Err(Refusal::TooDeep(ShownPath::of(path)))
    } else {
        Ok(())
    }
}

/// Reason for refusing a path in any skill, as the end of a sentence about it.
pub fn find_objection(path: &[u8]) -> Option<&'static str> {
    match checked(path).and_then(fits) {
        Ok(()) => None,
        Err(Refusal::UnsafePath { reason, .. }) => Some(reason),
        Err(Refusal::NotUtf8 { .. }) => Some("is not UTF-8"),
        Err(Refusal::TooDeep(_)) => Some("is deeper than 32 levels"),
        Err(_) => Some("is too long"),
    }
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    File,
    Directory,
}

struct Node {
    place: Place,
    /// The name as it is written.
    name: Short,
    /// It was named itself, and not only as what something else is in.
    explicit: bool,
}

/// What is kept of a name: nobody finds two names with the same.
type Short = [u8; 16];

/// The paths of a package that were seen so far. Each name is kept once, by the directory it is in, and no longer than it
/// must be.
#[derive(Default)]
pub(super) struct Names {
    /// By the directory (0 is the top) and the name without regard to letter case and composition.
    places: HashMap<(usize, Short), usize>,
    nodes: Vec<Node>,
    files: u64,
}

impl Names {
    /// Adds a path that was [`checked`] and is free.
    ///
    /// # Errors
    /// [`Refusal::Duplicate`], [`Refusal::FileAndDirectory`], [`Refusal::TooManyEntries`].
    pub(super) fn add(&mut self, path: &str, place: Place) -> Result<(), Refusal> {
        let shown = || ShownPath::of(path);
        let mut parent = 0;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let last = names.peek().is_none();
            let wanted = if last { place } else { Place::Directory };
            parent = self.place(parent, name, wanted, last).map_err(|clash| {
                let path = shown();
                match clash {
                    Clash::Twin => Refusal::Duplicate(path),
                    Clash::Kind => Refusal::FileAndDirectory(path),
                    Clash::Full => Refusal::TooManyEntries,
                }
            })?;
        }
        Ok(())
    }

    /// The number of what stands at that name, which is made if it is free.
    fn place(
        &mut self,
        parent: usize,
        name: &str,
        wanted: Place,
        explicit: bool,
    ) -> Result<usize, Clash> {
        let key = (parent, short(&folded(name)));
        let name = short(name);
        if let Some(&number) = self.places.get(&key) {
            let node = self.nodes.get_mut(number - 1).ok_or(Clash::Twin)?;
            return match node {
                node if node.place != wanted => Err(Clash::Kind),
                // A directory may be named itself, once, and be what others are in.
                node if node.name != name => Err(Clash::Twin),
                node if explicit && (node.explicit || wanted == Place::File) => Err(Clash::Twin),
                node => {
                    node.explicit |= explicit;
                    Ok(number)
                }
            };
        }
        // Files and directories are counted apart: directories that nobody named are made, too.
        self.files += u64::from(wanted == Place::File);
        let directories = (self.nodes.len() as u64 + 1).saturating_sub(self.files);
        if self.files.max(directories) > TreeLimits::LARGEST.files {
            return Err(Clash::Full);
        }
        self.nodes.push(Node {
            place: wanted,
            name,
            explicit,
        });
        let number = self.nodes.len();
        self.places.insert(key, number);
        Ok(number)
    }
}

enum Clash {
    Twin,
    Kind,
    Full,
}

fn short(name: &str) -> Short {
    let hash = Sha256::digest(name);
    let mut short = Short::default();
    for (place, byte) in short.iter_mut().zip(hash) {
        *place = byte;
    }
    short
}

/// The form in which names are one on file systems that mind neither letter case nor composition.
fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    // There and back: some letters have one of the cases only, or share one with another letter.
    let lower = name.nfc().flat_map(char::to_lowercase);
    let upper = lower.flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_rule() {
        for good in [
            "a", "a/b", "..a", "a..", "...", "ä/ß", "a b", "ab:c", "-", "~",
        ] {
            assert_eq!(checked(good.as_bytes()), Ok(good));
        }
        for bad in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/.",
            "./a",
            "a/../b",
            "a\\b",
            "C:",
            "C:a",
            "c:/a",
            "a/C:/b",
            "a\0",
            "a\n",
            "\u{7f}",
            "\u{85}",
            "a/\u{1b}[2J",
        ] {
            assert!(
                matches!(checked(bad.as_bytes()), Err(Refusal::UnsafePath { .. })),
                "{bad:?}"
            );
        }
        assert!(matches!(checked(b"a\xe9"), Err(Refusal::NotUtf8 { .. })));
        assert!(matches!(
            checked("é".repeat(128).as_bytes()),
            Err(Refusal::PathTooLong(_))
        ));
    }

    #[test]
    fn twins_and_conflicts_are_found() {
        use Place::{Directory, File};
        let twin = |_: &str| Refusal::Duplicate(ShownPath::of("x"));
        let kind = |_: &str| Refusal::FileAndDirectory(ShownPath::of("x"));
        for (first, second, refusal) in [
            (("a", File), ("a", File), Some(twin("a"))),
            (("a", File), ("A", File), Some(twin("a"))),
            (("a/b", File), ("A/c", File), Some(twin("a"))),
            (("\u{e4}", File), ("a\u{308}", File), Some(twin("a"))),
            (("\u{c4}", File), ("a\u{308}", File), Some(twin("a"))),
            (("\u{df}", File), ("SS", File), Some(twin("a"))),
            (("\u{1e9e}", File), ("\u{df}", File), Some(twin("a"))),
            (("\u{17f}", File), ("s", File), Some(twin("a"))),
            (("\u{3c3}", File), ("\u{3c2}", File), Some(twin("a"))),
            (("a", Directory), ("a", Directory), Some(twin("a"))),
            (("a", File), ("a/b", File), Some(kind("a"))),
            (("a/b", File), ("a", File), Some(kind("a"))),
            (("a/b", File), ("A", File), Some(kind("a"))),
            (("a/b", File), ("a", Directory), None),
            (("a", Directory), ("a/b", File), None),
            (("a/b", File), ("b/a", File), None),
        ] {
            let mut names = Names::default();
            names.add(first.0, first.1).unwrap();
            let found = names.add(second.0, second.1).err();
            let of = |refusal: &Refusal| std::mem::discriminant(refusal);
            assert_eq!(
                found.as_ref().map(of),
                refusal.as_ref().map(of),
                "{first:?} {second:?}"
            );
        }
    }
}
