//! Zip files byte by byte, so that everything in them can be wrong.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// An entry. What is `None` is as it should be.
#[derive(Clone, Default)]
pub(super) struct Raw {
    pub(super) name: Vec<u8>,
    pub(super) content: Vec<u8>,
    pub(super) stored: bool,
    /// The content as it is in the file.
    pub(super) data: Option<Vec<u8>>,
    pub(super) method: Option<u16>,
    pub(super) flags: u16,
    pub(super) system: u8,
    pub(super) attributes: u32,
    pub(super) crc: Option<u32>,
    pub(super) packed: Option<u32>,
    pub(super) length: Option<u32>,
    pub(super) extra: Vec<u8>,
    pub(super) comment: Vec<u8>,
    pub(super) start: Option<u32>,
    pub(super) central_signature: Option<u32>,
    /// Bit 3: lengths and checksum follow the content.
    pub(super) descriptor: bool,
    pub(super) local_name: Option<Vec<u8>>,
    pub(super) local_method: Option<u16>,
    pub(super) local_flags: Option<u16>,
    pub(super) local_crc: Option<u32>,
    pub(super) local_packed: Option<u32>,
    pub(super) local_length: Option<u32>,
    pub(super) local_extra: Vec<u8>,
    pub(super) local_signature: Option<u32>,
}

impl Raw {
    pub(super) fn file(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        Self {
            name: name.as_ref().to_vec(),
            content: content.as_ref().to_vec(),
            system: 3,
            attributes: 0o100_644 << 16,
            ..Self::default()
        }
    }

    pub(super) fn directory(name: impl AsRef<[u8]>) -> Self {
        Self {
            stored: true,
            attributes: 0o040_755 << 16,
            ..Self::file(name, "")
        }
    }

    pub(super) fn mode(self, mode: u32) -> Self {
        Self {
            attributes: mode << 16,
            ..self
        }
    }
}

/// The record at the end. What is `None` is as it should be.
#[derive(Clone, Default)]
pub(super) struct End {
    pub(super) entries: Option<u16>,
    pub(super) entries_here: Option<u16>,
    pub(super) length: Option<u32>,
    pub(super) start: Option<u32>,
    pub(super) disk: u16,
    pub(super) comment: Vec<u8>,
    pub(super) comment_length: Option<u16>,
    pub(super) before: Vec<u8>,
    pub(super) between: Vec<u8>,
    pub(super) after: Vec<u8>,
    /// Number of entries, length and beginning of the list in 64 bits.
    pub(super) in_64_bits: Option<(Option<u64>, Option<u64>, Option<u64>)>,
}

pub(super) fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn crc(content: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(content);
    crc.sum()
}

pub(super) fn zip(entries: &[Raw]) -> Vec<u8> {
    zip_with(entries, &End::default())
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }
}

pub(super) fn zip_with(entries: &[Raw], end: &End) -> Vec<u8> {
    let mut out = Bytes(end.before.clone());
    let mut list = Bytes(Vec::new());
    for entry in entries {
        let start = out.0.len() as u32;
        let data = match &entry.data {
            Some(data) => data.clone(),
            None if entry.stored => entry.content.clone(),
            None => deflate(&entry.content),
        };
        let sum = entry.crc.unwrap_or_else(|| crc(&entry.content));
        let method = entry.method.unwrap_or(if entry.stored { 0 } else { 8 });
        let packed = entry.packed.unwrap_or(data.len() as u32);
        let length = entry.length.unwrap_or(entry.content.len() as u32);
        let flags = entry.flags | u16::from(entry.descriptor) << 3;
        let known = |value| if entry.descriptor { 0 } else { value };
        let local_name = entry.local_name.as_ref().unwrap_or(&entry.name);
        out.u32(entry.local_signature.unwrap_or(0x0403_4b50))
            .u16(20)
            .u16(entry.local_flags.unwrap_or(flags))
            .u16(entry.local_method.unwrap_or(method))
            .u32(0x5a21_0000)
            .u32(entry.local_crc.unwrap_or(known(sum)))
            .u32(entry.local_packed.unwrap_or(known(packed)))
            .u32(entry.local_length.unwrap_or(known(length)))
            .u16(local_name.len() as u16)
            .u16(entry.local_extra.len() as u16);
        out.0.extend(local_name);
        out.0.extend(&entry.local_extra);
        out.0.extend(&data);
        if entry.descriptor {
            out.u32(0x0807_4b50).u32(sum).u32(packed).u32(length);
        }
        list.u32(entry.central_signature.unwrap_or(0x0201_4b50))
            .u16(u16::from(entry.system) << 8 | 20)
            .u16(20)
            .u16(flags)
            .u16(method)
            .u32(0x5a21_0000)
            .u32(sum)
            .u32(packed)
            .u32(length)
            .u16(entry.name.len() as u16)
            .u16(entry.extra.len() as u16)
            .u16(entry.comment.len() as u16)
            .u16(0)
            .u16(0)
            .u32(entry.attributes)
            .u32(entry.start.unwrap_or(start));
        list.0.extend(&entry.name);
        list.0.extend(&entry.extra);
        list.0.extend(&entry.comment);
    }
    let start = out.0.len();
    out.0.extend(&list.0);
    out.0.extend(&end.between);
    let mut small = (entries.len() as u16, list.0.len() as u32, start as u32);
    if let Some((number, length, begin)) = end.in_64_bits {
        let record = out.0.len() as u64;
        let number = number.unwrap_or(entries.len() as u64);
        out.u32(0x0606_4b50)
            .u64(44)
            .u16(45)
            .u16(45)
            .u32(0)
            .u32(0)
            .u64(number)
            .u64(number)
            .u64(length.unwrap_or(list.0.len() as u64))
            .u64(begin.unwrap_or(start as u64));
        out.u32(0x0706_4b50).u32(0).u64(record).u32(1);
        small = (u16::MAX, u32::MAX, u32::MAX);
    }
    out.u32(0x0605_4b50)
        .u16(end.disk)
        .u16(end.disk)
        .u16(end.entries_here.or(end.entries).unwrap_or(small.0))
        .u16(end.entries.unwrap_or(small.0))
        .u32(end.length.unwrap_or(small.1))
        .u32(end.start.unwrap_or(small.2))
        .u16(end.comment_length.unwrap_or(end.comment.len() as u16));
    out.0.extend(&end.comment);
    out.0.extend(&end.after);
    out.0
}
