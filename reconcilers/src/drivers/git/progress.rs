//! How far it is, as `git --progress` writes it on its standard error.

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// The server counts what it sends.
    Counting,
    /// The server packs it.
    Compressing,
    /// It arrives.
    Receiving,
    /// What arrived is put together.
    Resolving,
    /// Files are written.
    Writing,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// How much of this is done, from 0 to 100; `None` when nobody knows.
    pub percent: Option<u8>,
    /// Bytes so far, where they are counted.
    pub bytes: Option<u64>,
}

/// Reads one line; `None`: it says something else.
pub(super) fn read(line: &str) -> Option<Progress> {
    let line = line.strip_prefix("remote: ").unwrap_or(line);
    let (words, rest) = line.split_once(':')?;
    let phase = match words {
        "Enumerating objects" | "Counting objects" => Phase::Counting,
        "Compressing objects" => Phase::Compressing,
        "Receiving objects" => Phase::Receiving,
        "Resolving deltas" => Phase::Resolving,
        _ => return None,
    };
    let percent = rest.split_once('%').and_then(|(percent, _)| {
        let percent: u8 = percent.trim().parse().ok()?;
        (percent <= 100).then_some(percent)
    });
    // `42% (5/12), 1.20 MiB | 600.00 KiB/s`; without a rate at first.
    let amount = rest.split_once("), ").map(|(_, amount)| amount);
    let amount = amount.map(|amount| amount.split(['|', ',']).next().unwrap_or_default());
    Some(Progress {
        phase,
        percent,
        bytes: amount.and_then(bytes),
    })
}

/// `1.20 MiB`; the program never writes more than two digits behind the point.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let unit: u64 = match unit {
        "bytes" | "byte" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let hundredths: u64 = format!("{part:0<2}").get(..2)?.parse().ok()?;
    whole
        .checked_mul(unit)?
        .checked_add(hundredths * unit / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program_are_read_and_others_are_not() {
        for (line, expected) in [
            (
                "remote: Counting objects:  50% (1/2)",
                Some((Phase::Counting, Some(50), None)),
            ),
            (
                "remote: Enumerating objects: 7, done.",
                Some((Phase::Counting, None, None)),
            ),
            (
                "remote: Compressing objects: 100% (2/2), done.",
                Some((Phase::Compressing, Some(100), None)),
            ),
            (
                "Receiving objects:  42% (5/12), 1.20 MiB | 600.00 KiB/s",
                Some((Phase::Receiving, Some(42), Some((1 << 20) + (1 << 20) / 5))),
            ),
            (
                "Receiving objects: 100% (3/3), 210 bytes | 210.00 KiB/s, done.",
                Some((Phase::Receiving, Some(100), Some(210))),
            ),
            (
                "Receiving objects: 300% (3/1), 99999999999999 GiB",
                Some((Phase::Receiving, None, None)),
            ),
            (
                "Resolving deltas:   0% (0/9)",
                Some((Phase::Resolving, Some(0), None)),
            ),
            ("remote: Welcome: 12% off", None),
            ("fatal: couldn't find remote ref", None),
            ("", None),
        ] {
            let seen = read(line).map(|seen| (seen.phase, seen.percent, seen.bytes));
            assert_eq!(seen, expected, "{line}");
        }
    }
}
