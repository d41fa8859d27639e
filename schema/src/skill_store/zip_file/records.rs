//! The records of a zip file: its end, its list of entries, and what stands before each entry (APPNOTE.TXT of PKWARE).

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;

use flate2::Crc;

use super::super::error::{ImportError, Refusal, ShownPath};
use super::super::names::{LONGEST_COMPONENT, LONGEST_PATH};
use super::BLOCK;
use super::content::{Section, unread};

/// Lengths of the records without what varies.
const END: usize = 22;
const LOCATOR: usize = 20;
const END_64: usize = 56;
const CENTRAL: usize = 46;
const LOCAL: usize = 30;
/// Values of fields whose real values are in fields of 64 bits elsewhere.
const ELSEWHERE_16: u64 = 0xffff;
const ELSEWHERE_32: u64 = 0xffff_ffff;
/// Flags of an entry.
pub(super) const ENCRYPTED: u64 = 1 | 1 << 6 | 1 << 13;
const SIZES_FOLLOW: u64 = 1 << 3;
const UTF8_NAME: u64 = 1 << 11;
pub(super) const PATCH: u64 = 1 << 5;
/// Extra fields of an entry.
const EXTRA_64: u64 = 0x0001;
const EXTRA_NAME: u64 = 0x7075;

/// An entry as the list of entries has it.
pub(super) struct Header {
    pub(super) name: Box<[u8]>,
    /// Its name in UTF-8, if it has another one.
    pub(super) second_name: SecondName,
    pub(super) flags: u64,
    pub(super) method: u64,
    pub(super) crc: u64,
    pub(super) packed: u64,
    pub(super) length: u64,
    pub(super) mode: u64,
    pub(super) start: u64,
}

impl Header {
    /// The name that counts.
    pub(super) fn path(&self) -> &[u8] {
        match &self.second_name {
            SecondName::Fits(name) => name,
            _ => &self.name,
        }
    }

    pub(super) fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }
}

/// The content of a Unicode Path field.
pub(super) enum SecondName {
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
pub(super) struct List {
    pub(super) entries: u64,
    pub(super) start: u64,
    pub(super) length: u64,
}

pub(super) fn find_list(file: &File, whole: u64) -> Result<List, ImportError> {
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
    pub(super) fn read<'a>(&self, file: &'a File) -> BufReader<Section<'a>> {
        let section = Section {
            file,
            at: self.start,
            left: self.length,
        };
        BufReader::with_capacity(BLOCK, section)
    }
}

pub(super) fn read_header(list: &mut impl Read) -> Result<Header, ImportError> {
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
pub(super) fn check_local(file: &File, listed: &Header) -> Result<u64, ImportError> {
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
