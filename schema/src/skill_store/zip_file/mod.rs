//! Zip files as strangers pack them: everything is checked before anything is unpacked.
//!
//! The `zip` crate reads what can somehow be read: it looks for signatures all over the file, tries one end of it after the
//! other, and reserves memory for as many entries as the file claims. Here, a file has one meaning or is refused, and
//! nothing is kept of it but a name and a few numbers for each of at most 10,000 entries.
//!
//! A name in a Unicode Path field is taken where its checksum fits the name of the entry, and ignored where it does not. If no
//! name has a `/`, each `\` separates directories, as Windows PowerShell 5.1 packs them.

mod content;
mod records;

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;

use super::error::{ImportError, Refusal, ShownPath};
use super::left_out::LeftOut;
use super::names::{self, MAX_DEPTH, Names, Place};
use super::tree::TreeLimits;
use content::unread;
use records::{ENCRYPTED, Header, List, PATCH, SecondName, check_local, find_list, read_header};

/// Most bytes of a zip file.
pub const MAX_PACKED: u64 = 128 << 20;
/// Most that a zip file may unpack to, as a multiple of its own length.
pub(super) const MAX_RATIO: u64 = 200;

const BLOCK: usize = 64 << 10;
/// Most names in another encoding that are shown.
const NAMED: usize = 5;
/// Methods of compression.
const STORED: u64 = 0;
const DEFLATED: u64 = 8;

const BACKSLASHES: &str = "the paths have \\ in place of /, as Windows PowerShell 5.1 packs them; each \\ was read as a directory separator: pack with PowerShell 7, 7-Zip or `agentyard skill upload FOLDER`";

/// A zip file that was checked.
pub(super) struct ZipFile {
    file: File,
    /// The files of the package. Directories count only for what is in them.
    pub(super) files: Vec<Entry>,
    /// The one directory that everything is in.
    pub(super) top: Option<Box<str>>,
    /// Entries that were left out or read otherwise than they are written, a sentence each.
    pub(super) warnings: Vec<String>,
    /// The number of symbolic links that were left out.
    pub(super) links: u64,
}

/// An entry of it.
pub(super) struct Entry {
    /// The path, without the common top directory.
    pub(super) path: Box<str>,
    pub(super) executable: bool,
    place: Place,
    /// It is no part of the skill.
    left_out: bool,
    packed: u64,
    length: u64,
    crc: u32,
    deflated: bool,
    /// Where its content is.
    data: u64,
}

impl ZipFile {
    /// Reads the list of entries and what each entry says of itself.
    ///
    /// # Errors
    /// Whatever is wrong with it that shows before it is unpacked; the file cannot be read.
    pub(super) fn open(file: File) -> Result<Self, ImportError> {
        let whole = file.metadata().map_err(unread)?.len();
        if whole > MAX_PACKED {
            return Err(Refusal::Packed.into());
        }
        let list = find_list(&file, whole)?;
        if list.entries > TreeLimits::LARGEST.files {
            return Err(Refusal::TooManyEntries.into());
        }
        let backslashes = has_only_backslashes(&file, &list)?;
        let mut left_out = LeftOut::default();
        let mut stale = 0;
        let (mut not_utf8, mut unnamed) = (Vec::new(), 0);
        let mut entries = Vec::new();
        // Where each entry begins and ends in the file.
        let mut extents = Vec::new();
        let mut reader = list.read(&file);
        for _ in 0..list.entries {
            let header = read_header(&mut reader)?;
            let data = check_local(&file, &header)?;
            let end = data.checked_add(header.packed);
            let Some(end) = end.filter(|end| *end <= list.start) else {
                return Err(Refusal::Overlap(ShownPath::of(&header.name)).into());
            };
            extents.push((header.start, end, entries.len()));
            stale += usize::from(matches!(header.second_name, SecondName::Stale));
            let path = match backslashes {
                true => replace_backslashes(header.path()).into(),
                false => Cow::Borrowed(header.path()),
            };
            let entry = match left_out.take(&path) {
                true => Entry::without_content(&path),
                false if header.is_link() => {
                    left_out.add_link(&path);
                    Entry::without_content(&path)
                }
                false => match entry(&header, &path, data) {
                    Err(Refusal::NotUtf8 { paths, .. }) => {
                        unnamed += 1;
                        not_utf8.extend(paths.into_iter().take(usize::from(unnamed <= NAMED)));
                        Entry::without_content(&path)
                    }
                    entry => entry?,
                },
            };
            entries.push(entry);
        }
        if reader.read(&mut [0]).map_err(unread)? != 0 {
            return Err(Refusal::NotAZip("its list of entries is longer than it says").into());
        }
        extents.sort_unstable();
        for pair in extents.windows(2) {
            if let [(_, end, _), (next, _, number)] = pair
                && end > next
            {
                let path = entries.get(*number).map_or("", |entry| &*entry.path);
                return Err(Refusal::Overlap(ShownPath::of(path)).into());
            }
        }
        if unnamed > 0 {
            return Err(Refusal::NotUtf8 {
                paths: not_utf8,
                count: unnamed,
            }
            .into());
        }
        entries.retain(|entry| !entry.left_out);
        let mut names = Names::default();
        let mut length = 0_u64;
        for entry in &entries {
            names.add(&entry.path, entry.place)?;
            length = length.saturating_add(entry.length);
        }
        if length > TreeLimits::LARGEST.bytes {
            return Err(Refusal::Unpacked.into());
        }
        if length > whole.saturating_mul(MAX_RATIO) {
            return Err(Refusal::Ratio.into());
        }
        entries.retain(|entry| entry.place == Place::File);
        let mut top = strip_common_top(&mut entries);
        let mut around = top.as_deref().unwrap_or_default().to_owned();
        while top.is_some() && skill_is_deeper(&entries) {
            let Some(next) = strip_common_top(&mut entries) else {
                break;
            };
            around = format!("{around}/{next}");
            top = Some(next);
        }
        for entry in &entries {
            names::fits(&entry.path)?;
        }
        if entries.is_empty() {
            return Err(Refusal::Empty.into());
        }
        let mut warnings = left_out.warnings();
        if backslashes {
            warnings.push(BACKSLASHES.to_owned());
        }
        if around.contains('/') {
            warnings.push(format!(
                "everything is in {}, which is no part of the skill",
                ShownPath::of(around)
            ));
        }
        if stale > 0 {
            warnings.push(format!(
                "Unicode names that do not belong to the names of their entries were ignored: {stale}; \
                 look whether the files are named as they should be"
            ));
        }
        Ok(Self {
            file,
            files: entries,
            top,
            warnings,
            links: left_out.links(),
        })
    }
}

/// Takes away the first name of all paths if that is the same.
fn strip_common_top(files: &mut [Entry]) -> Option<Box<str>> {
    let first = |entry: &Entry| Some(Box::<str>::from(entry.path.split_once('/')?.0));
    let top = first(files.first()?)?;
    for entry in files.iter() {
        if entry.path.split_once('/').map(|(first, _)| first) != Some(&*top) {
            return None;
        }
    }
    for entry in files {
        entry.path = entry.path.get(top.len() + 1..).unwrap_or_default().into();
    }
    Some(top)
}

/// Returns true if there is a `SKILL.md`, and none at the top.
fn skill_is_deeper(files: &[Entry]) -> bool {
    let is_manifest = |name: &str| name.eq_ignore_ascii_case("SKILL.md");
    let within = |entry: &Entry| {
        entry
            .path
            .rsplit_once('/')
            .is_some_and(|(_, name)| is_manifest(name))
    };
    files.iter().any(within) && !files.iter().any(|entry| is_manifest(&entry.path))
}

/// Returns true if `\` separates directories: it is in names, and `/` is in none.
fn has_only_backslashes(file: &File, list: &List) -> Result<bool, ImportError> {
    let mut reader = list.read(file);
    let mut found = false;
    for _ in 0..list.entries {
        let header = match read_header(&mut reader) {
            // It is read once more, in the order in which everything is checked.
            Err(ImportError::Refused(_)) => return Ok(false),
            header => header?,
        };
        // A byte of a character in some other encoding may be the same.
        let path = std::str::from_utf8(header.path()).unwrap_or_default();
        if path.contains('/') {
            return Ok(false);
        }
        found |= path.contains('\\');
    }
    Ok(found)
}

fn replace_backslashes(path: &[u8]) -> Vec<u8> {
    let replace = |&byte| if byte == b'\\' { b'/' } else { byte };
    path.iter().map(replace).collect()
}

impl Entry {
    fn without_content(path: &[u8]) -> Self {
        Self {
            path: String::from_utf8_lossy(path).into(),
            executable: false,
            place: Place::File,
            left_out: true,
            packed: 0,
            length: 0,
            crc: 0,
            deflated: false,
            data: 0,
        }
    }
}

/// Converts a header into an entry, if it may be in a package.
fn entry(header: &Header, path: &[u8], data: u64) -> Result<Entry, Refusal> {
    let shown = || ShownPath::of(path);
    let broken = |reason| Refusal::BrokenEntry {
        path: shown(),
        reason,
    };
    let (name, is_directory) = match path.strip_suffix(b"/") {
        Some(name) => (name, true),
        None => (path, false),
    };
    let path = names::checked(name)?;
    // One for the top directory, which is stripped.
    if path.split('/').count() > MAX_DEPTH + 1 {
        return Err(Refusal::TooDeep(shown()));
    }
    if header.flags & ENCRYPTED != 0 {
        return Err(Refusal::Encrypted(shown()));
    }
    if !matches!(header.method, STORED | DEFLATED) || header.flags & PATCH != 0 {
        return Err(Refusal::UnsupportedMethod(shown()));
    }
    // Whatever system it says it comes from: that is believed by some programs.
    match (header.mode & 0o170_000, is_directory) {
        (0, _) | (0o100_000, false) | (0o040_000, true) => {}
        (0o100_000, true) | (0o040_000, false) => return Err(Refusal::FileAndDirectory(shown())),
        _ => return Err(Refusal::NotRegular(shown())),
    }
    if is_directory && header.length != 0 {
        return Err(broken("it is a directory with content"));
    }
    if header.method == STORED && header.packed != header.length {
        return Err(broken("it has two lengths"));
    }
    Ok(Entry {
        path: path.into(),
        executable: header.mode & 0o111 != 0,
        place: match is_directory {
            true => Place::Directory,
            false => Place::File,
        },
        packed: header.packed,
        length: header.length,
        crc: u32::try_from(header.crc).unwrap_or_default(),
        deflated: header.method == DEFLATED,
        left_out: false,
        data,
    })
}
