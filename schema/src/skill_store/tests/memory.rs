//! How much memory the worst takes. Each test runs in a process of its own (nextest).

use std::io::{BufWriter, Seek};

use super::raw_zip::deflate;
use super::*;

fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kilobytes: String = line.chars().filter(char::is_ascii_digit).collect();
    kilobytes.parse::<u64>().unwrap() << 10
}

/// Bytes at the peak of `work` beyond those before it.
fn peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    let value = work();
    (value, status("VmHWM").saturating_sub(before))
}

const MOST: u64 = 48 << 20;

/// A zip file of that many entries, their list written as it is made.
fn many(entries: u64, name: impl Fn(u64) -> String, claimed: u64) -> File {
    let mut file = BufWriter::new(tempfile::tempfile().unwrap());
    let mut starts = Vec::new();
    let mut at = 0_u32;
    for n in 0..entries.min(10_000) {
        let name = name(n);
        starts.push(at);
        let mut local = vec![0; 30];
        local[..4].copy_from_slice(b"PK\x03\x04");
        local[26..28].copy_from_slice(&(name.len() as u16).to_le_bytes());
        file.write_all(&local).unwrap();
        file.write_all(name.as_bytes()).unwrap();
        at += 30 + name.len() as u32;
    }
    let start = u64::from(at);
    let mut length = 0;
    for n in 0..entries {
        let name = name(n);
        let mut central = [0; 46];
        central[..4].copy_from_slice(b"PK\x01\x02");
        central[28..30].copy_from_slice(&(name.len() as u16).to_le_bytes());
        let at = starts.get(n as usize).copied().unwrap_or_default();
        central[42..].copy_from_slice(&at.to_le_bytes());
        file.write_all(&central).unwrap();
        file.write_all(name.as_bytes()).unwrap();
        length += 46 + name.len() as u64;
    }
    let mut end = Vec::new();
    end.extend(b"PK\x06\x06");
    end.extend(44_u64.to_le_bytes());
    end.extend([0; 12]);
    for value in [claimed, claimed, length, start] {
        end.extend(value.to_le_bytes());
    }
    end.extend(b"PK\x06\x07\0\0\0\0");
    end.extend((start + length).to_le_bytes());
    end.extend(1_u32.to_le_bytes());
    end.extend(b"PK\x05\x06\0\0\0\0");
    end.extend([0xff; 12]);
    end.extend([0, 0]);
    file.write_all(&end).unwrap();
    file.into_inner().unwrap()
}

#[test]
fn l27_a_list_of_two_million_entries_takes_no_memory() {
    let yard = Yard::new();
    for claimed in [2_000_000, 10_000] {
        let file = many(2_000_000, |_| String::new(), claimed);
        let (outcome, used) = peak(|| yard.store.import_zip(file, None));
        assert!(outcome.is_err());
        assert!(used < MOST, "{used}");
    }
}

#[test]
fn l27_the_longest_names_take_little_memory() {
    let yard = Yard::new();
    // Ten thousand paths of 1,000 bytes in letters that grow when their case does not count.
    let name = |n: u64| {
        format!(
            "t/{}/{n:05}{}",
            "\u{390}".repeat(120),
            "\u{1f80}".repeat(82)
        ) + "/"
            + &"ΰ".repeat(120)
            + "/"
            + &"ΰ".repeat(120)
    };
    let file = many(10_000, name, 10_000);
    let (outcome, used) = peak(|| yard.store.import_zip(file, None));
    assert_eq!(
        rule(&outcome.unwrap_err()),
        "TooManyEntries",
        "their directories count"
    );
    assert!(used < MOST, "{used}");
    let name = |n: u64| {
        format!(
            "{}/{}/{}/{n:05}{}",
            "\u{390}".repeat(127),
            "x".repeat(255),
            "y".repeat(255),
            "\u{1f80}".repeat(83)
        )
    };
    let file = many(10_000, name, 10_000);
    let (outcome, used) = peak(|| yard.store.import_zip(file, Some(&super::name("x"))));
    assert_eq!(outcome.unwrap().files, 10_000);
    assert!(used < MOST, "{used}");
}

#[test]
fn l27_the_most_that_is_unpacked_takes_little_memory() {
    let yard = Yard::new();
    // Noise, each block of which is repeated 140 times.
    let mut block = vec![0; 30_000];
    let mut entries = Vec::new();
    let mut seed = 1_u64;
    for byte in &mut block {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (seed >> 56) as u8;
    }
    let content = block.repeat(140);
    let data = deflate(&content);
    for n in 0..8 {
        entries.push(Raw {
            data: Some(data.clone()),
            content: content.clone(),
            ..Raw::file(format!("{n}"), "")
        });
    }
    let bytes = zip(&entries);
    drop((entries, content, data, block));
    let file = file_of(&bytes);
    drop(bytes);
    let (outcome, used) = peak(|| yard.store.import_zip(file, Some(&name("x"))));
    assert_eq!(outcome.unwrap().bytes, 33_600_000);
    assert!(used < MOST, "{used}");
}

#[test]
fn a_package_that_is_too_long_is_not_read() {
    let yard = Yard::new();
    let mut file = tempfile::tempfile().unwrap();
    file.set_len((128 << 20) + 1).unwrap();
    file.rewind().unwrap();
    let refused = yard.store.import_zip(file, None).unwrap_err();
    assert_eq!(rule(&refused), "Packed");
}
