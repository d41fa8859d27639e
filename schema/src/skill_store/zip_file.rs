//! Zip files as strangers pack them: everything is checked before anything is unpacked.
//!
//! The `zip` crate reads what can somehow be read: it looks for signatures all over the file, tries one end of it after the
//! other, and reserves memory for as many entries as the file claims. Here, a file has one meaning or is refused, and
//! nothing is kept of it but a name and a few numbers for each of at most 10,000 entries.
//!
//! A name in a Unicode Path field is taken where its checksum fits the name of the entry, and ignored where it does not. If no
//! name has a `/`, each `\` separates directories, as Windows PowerShell 5.1 packs them.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::error::{ImportError, Refusal, ShownPath, SkillStoreError};
use super::left_out::LeftOut;
use super::names::{self, LONGEST_COMPONENT, LONGEST_PATH, MAX_DEPTH, Names, Place};
use super::tree::TreeLimits;

/// Most bytes of a zip file.
pub const MAX_PACKED: u64 = 128 << 20;
/// How many times its own length a zip file may unpack to.
pub(super) const MAX_RATIO: u64 = 200;

const BLOCK: usize = 64 << 10;
/// Lengths of the records without what varies.
const END: usize = 22;
const LOCATOR: usize = 20;
const END_64: usize = 56;
const CENTRAL: usize = 46;
const LOCAL: usize = 30;
/// What a field holds whose value is in a field of 64 bits elsewhere.
const ELSEWHERE_16: u64 = 0xffff;
const ELSEWHERE_32: u64 = 0xffff_ffff;
/// Flags of an entry.
const ENCRYPTED: u64 = 1 | 1 << 6 | 1 << 13;
const SIZES_FOLLOW: u64 = 1 << 3;
const UTF8_NAME: u64 = 1 << 11;
const PATCH: u64 = 1 << 5;
/// Most names in another encoding that are shown.
const NAMED: usize = 5;
/// Methods of compression.
const STORED: u64 = 0;
const DEFLATED: u64 = 8;
/// Extra fields of an entry.
const EXTRA_64: u64 = 0x0001;
const EXTRA_NAME: u64 = 0x7075;

const BACKSLASHES: &str = "the paths have \\ in place of /, as Windows PowerShell 5.1 packs them; each \\ was read as a directory separator: pack with PowerShell 7, 7-Zip or `agentyard skill upload FOLDER`";

/// A zip file that was checked.
pub(super) struct ZipFile {
    file: File,
    /// The files of the package. Directories count only for what is in them.
    pub(super) files: Vec<Entry>,
    /// The one directory that everything is in.
    pub(super) top: Option<Box<str>>,
    /// What was left out or read otherwise than it is written, a sentence each.
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

/// An entry as the list of entries has it.
struct Header {
    name: Box<[u8]>,
    /// Its name in UTF-8, if it has another one.
    second_name: SecondName,
    flags: u64,
    method: u64,
    crc: u64,
    packed: u64,
    length: u64,
    mode: u64,
    start: u64,
}

impl Header {
    /// The name that counts.
    fn path(&self) -> &[u8] {
        match &self.second_name {
            SecondName::Fits(name) => name,
            _ => &self.name,
        }
    }

    fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }
}

/// The content of a Unicode Path field.
enum SecondName {
    /// There is none, or it is the name itself.
    None,
    Fits(Box<[u8]>),
    /// It belongs to a name that the entry has no more.
    Stale,
}

impl SecondName {
    fn new(extra: &[u8], name: &[u8]) -> Self {
        match extra_field(extra, EXTRA_NAME) {
            None => Self::None,
            Some([1, sum @ ..]) if sum.len() >= 4 => {
                let (sum, text) = sum.split_at(4);
                let mut crc = Crc::new();
                crc.update(name);
                match number(sum, 0, 4) == u64::from(crc.sum()) {
                    _ if text == name => Self::None,
                    true if std::str::from_utf8(text).is_ok() => Self::Fits(text.into()),
                    _ => Self::Stale,
                }
            }
            Some(_) => Self::Stale,
        }
    }
}

/// Where the list of entries is.
struct List {
    entries: u64,
    start: u64,
    length: u64,
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

    /// Unpacks an entry block by block.
    ///
    /// # Errors
    /// It is not what the list says of it; the file cannot be read; those of `write`.
    pub(super) fn unpack(
        &self,
        entry: &Entry,
        mut write: impl FnMut(&[u8]) -> Result<(), SkillStoreError>,
    ) -> Result<(), ImportError> {
        let broken = |reason| {
            ImportError::from(Refusal::BrokenEntry {
                path: ShownPath::of(&*entry.path),
                reason,
            })
        };
        let section = Section {
            file: &self.file,
            at: entry.data,
            left: entry.packed,
        };
        let mut content = match entry.deflated {
            true => {
                let section = BufReader::with_capacity(BLOCK, section);
                Content::Deflated(DeflateDecoder::new(section))
            }
            false => Content::Stored(section),
        };
        let mut buffer = vec![0; BLOCK];
        let mut crc = Crc::new();
        let mut length = 0;
        loop {
            let read = match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // What the system says has a number; what the decoder says has none.
                Err(error) if error.raw_os_error().is_some() => return Err(unread(error)),
                Err(_) => return Err(broken("its compressed data is damaged")),
            };
            let block = buffer.get(..read).unwrap_or_default();
            length += read as u64;
            if length > entry.length {
                return Err(broken("it is longer than it says"));
            }
            crc.update(block);
            write(block)?;
        }
        if length < entry.length {
            return Err(broken("it is shorter than it says"));
        }
        if content.unused(entry.packed) != 0 {
            return Err(broken("its compressed data goes on after its end"));
        }
        if crc.sum() != entry.crc {
            return Err(broken("its content does not match its checksum"));
        }
        Ok(())
    }
}

enum Content<'a> {
    Stored(Section<'a>),
    Deflated(DeflateDecoder<BufReader<Section<'a>>>),
}

impl Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(section) => section.read(buffer),
            Self::Deflated(decoder) => decoder.read(buffer),
        }
    }

    /// How many packed bytes were no use.
    fn unused(&self, packed: u64) -> u64 {
        match self {
            Self::Stored(section) => section.left,
            Self::Deflated(decoder) => packed.saturating_sub(decoder.total_in()),
        }
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

/// Whether there is a `SKILL.md`, and none at the top.
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

fn find_list(file: &File, whole: u64) -> Result<List, ImportError> {
    const NO_END: &str = "it has no list of entries at its end; it may be cut off";
    const ODD: &str = "the record at its end is damaged";
    let longest = END + ELSEWHERE_16 as usize;
    let begin = whole.saturating_sub(longest as u64);
    let mut tail = vec![0; usize::try_from(whole - begin).unwrap_or(longest)];
    read_at(file, &mut tail, begin, NO_END)?;
    let ends = |at: usize| {
        let record = tail.get(at..).unwrap_or_default();
        record.starts_with(b"PK\x05\x06") && number(record, 20, 2) == (record.len() - END) as u64
    };
    let at = (0..(tail.len() + 1).saturating_sub(END))
        .rev()
        .find(|at| ends(*at))
        .ok_or(Refusal::NotAZip(NO_END))?;
    let record = tail.get(at..).unwrap_or_default();
    let mut end = begin + at as u64;
    let (mut disks, mut here) = (
        number(record, 4, 2) + number(record, 6, 2),
        number(record, 8, 2),
    );
    let mut list = List {
        entries: number(record, 10, 2),
        length: number(record, 12, 4),
        start: number(record, 16, 4),
    };
    let elsewhere =
        list.entries == ELSEWHERE_16 || list.length == ELSEWHERE_32 || list.start == ELSEWHERE_32;
    if elsewhere && let Some(locator_at) = end.checked_sub(LOCATOR as u64) {
        let mut locator = [0; LOCATOR];
        read_at(file, &mut locator, locator_at, ODD)?;
        if locator.starts_with(b"PK\x06\x07") {
            let mut record = [0; END_64];
            end = number(&locator, 8, 8);
            read_at(file, &mut record, end, ODD)?;
            let length = number(&record, 4, 8);
            let ends = end
                .checked_add(12)
                .and_then(|begin| begin.checked_add(length));
            if !record.starts_with(b"PK\x06\x06") || ends != Some(locator_at) {
                return Err(Refusal::NotAZip(ODD).into());
            }
            disks = number(&record, 16, 4) | number(&record, 20, 4) | number(&locator, 4, 4);
            here = number(&record, 24, 8);
            list = List {
                entries: number(&record, 32, 8),
                length: number(&record, 40, 8),
                start: number(&record, 48, 8),
            };
        }
    }
    if disks != 0 || here != list.entries {
        return Err(Refusal::NotAZip("it is one of several parts").into());
    }
    // Anything else would be read differently by different programs.
    match list.start.checked_add(list.length) == Some(end) {
        true => Ok(list),
        false => Err(Refusal::NotAZip("its list of entries is not where it says").into()),
    }
}

impl List {
    fn read<'a>(&self, file: &'a File) -> BufReader<Section<'a>> {
        let section = Section {
            file,
            at: self.start,
            left: self.length,
        };
        BufReader::with_capacity(BLOCK, section)
    }
}

/// Whether `\` separates directories: it is in names, and `/` is in none.
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

fn read_header(list: &mut impl Read) -> Result<Header, ImportError> {
    let mut fixed = [0; CENTRAL];
    take(list, &mut fixed)?;
    if !fixed.starts_with(b"PK\x01\x02") {
        return Err(Refusal::NotAZip("its list of entries is damaged").into());
    }
    let length = |at| usize::try_from(number(&fixed, at, 2)).unwrap_or_default();
    let mut name = vec![0; length(28)];
    take(list, &mut name)?;
    // The top directory, which is stripped, is not part of the path.
    if name.len() > LONGEST_PATH + LONGEST_COMPONENT + 2 {
        return Err(Refusal::PathTooLong(ShownPath::of(&name)).into());
    }
    let mut extra = vec![0; length(30)];
    take(list, &mut extra)?;
    let mut comment = vec![0; length(32)];
    take(list, &mut comment)?;
    let broken = |reason| {
        ImportError::from(Refusal::BrokenEntry {
            path: ShownPath::of(&name),
            reason,
        })
    };
    let mut header = Header {
        flags: number(&fixed, 8, 2),
        method: number(&fixed, 10, 2),
        crc: number(&fixed, 16, 4),
        packed: number(&fixed, 20, 4),
        length: number(&fixed, 24, 4),
        mode: number(&fixed, 40, 2),
        start: number(&fixed, 42, 4),
        name: Box::default(),
        second_name: SecondName::None,
    };
    let mut in_64_bits = extra_field(&extra, EXTRA_64).unwrap_or_default();
    for value in [&mut header.length, &mut header.packed, &mut header.start] {
        if *value == ELSEWHERE_32 {
            let Some((field, rest)) = in_64_bits.split_at_checked(8) else {
                return Err(broken("its size is missing"));
            };
            (*value, in_64_bits) = (number(field, 0, 8), rest);
        }
    }
    header.second_name = SecondName::new(&extra, &name);
    if let SecondName::Fits(second) = &header.second_name {
        if header.flags & UTF8_NAME != 0 {
            return Err(broken("it has two names in UTF-8"));
        }
        if second.len() > LONGEST_PATH + LONGEST_COMPONENT + 2 {
            return Err(Refusal::PathTooLong(ShownPath::of(second)).into());
        }
    }
    header.name = name.into();
    Ok(header)
}

/// The first extra field of a kind. What follows a damaged one is not found.
fn extra_field(mut extra: &[u8], kind: u64) -> Option<&[u8]> {
    while extra.len() >= 4 {
        let length = usize::try_from(number(extra, 2, 2)).ok()?;
        let field = extra.get(4..4 + length)?;
        if number(extra, 0, 2) == kind {
            return Some(field);
        }
        extra = extra.get(4 + length..)?;
    }
    None
}

/// Checks what an entry says of itself, and gives where its content begins.
fn check_local(file: &File, listed: &Header) -> Result<u64, ImportError> {
    let broken = |reason| {
        ImportError::from(Refusal::BrokenEntry {
            path: ShownPath::of(&listed.name),
            reason,
        })
    };
    const OUTSIDE: &str = "it is not within the file";
    let mut local = vec![0; LOCAL + listed.name.len()];
    match file.read_exact_at(&mut local, listed.start) {
        Err(error) if error.raw_os_error().is_none() => return Err(broken(OUTSIDE)),
        // An offset that no file has.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(broken(OUTSIDE)),
        outcome => outcome.map_err(unread)?,
    }
    if !local.starts_with(b"PK\x03\x04") {
        return Err(broken("it is not where the list says"));
    }
    if number(&local, 26, 2) != listed.name.len() as u64
        || local.get(LOCAL..) != Some(&*listed.name)
    {
        return Err(broken("it is named otherwise in the list of entries"));
    }
    let flags = number(&local, 6, 2);
    if number(&local, 8, 2) != listed.method || (flags ^ listed.flags) & ENCRYPTED != 0 {
        return Err(broken("it is packed otherwise than the list says"));
    }
    let differs = |at, listed| {
        let value = number(&local, at, 4);
        value != listed && value != ELSEWHERE_32
    };
    let differ = number(&local, 14, 4) != listed.crc
        || differs(18, listed.packed)
        || differs(22, listed.length);
    if flags & SIZES_FOLLOW == 0 && differ {
        return Err(broken("its size or checksum is not what the list says"));
    }
    let data = LOCAL as u64 + listed.name.len() as u64 + number(&local, 28, 2);
    listed
        .start
        .checked_add(data)
        .ok_or_else(|| broken(OUTSIDE))
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

/// What an entry is, if it may be in a package.
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

/// A number of `length` bytes at `at`, the lowest first.
fn number(record: &[u8], at: usize, length: usize) -> u64 {
    let bytes = record.get(at..at + length).unwrap_or_default();
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn read_at(
    file: &File,
    buffer: &mut [u8],
    at: u64,
    cut_off: &'static str,
) -> Result<(), ImportError> {
    file.read_exact_at(buffer, at).map_err(|error| {
        let beyond = error.kind() == io::ErrorKind::InvalidInput;
        match error.raw_os_error() {
            Some(_) if !beyond => unread(error),
            _ => Refusal::NotAZip(cut_off).into(),
        }
    })
}

/// Reads from the list of entries.
fn take(list: &mut impl Read, buffer: &mut [u8]) -> Result<(), ImportError> {
    list.read_exact(buffer)
        .map_err(|error| match error.raw_os_error() {
            Some(_) => unread(error),
            None => Refusal::NotAZip("its list of entries is cut off").into(),
        })
}

fn unread(error: io::Error) -> ImportError {
    SkillStoreError::io("reading", "the package")(error).into()
}

/// A part of a file.
struct Section<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = buffer.len().min(most);
        let buffer = buffer.get_mut(..length).unwrap_or_default();
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
