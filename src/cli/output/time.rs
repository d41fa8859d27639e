//! Moments as people speak of them.

use std::time::Duration;

use schema::ids::Timestamp;
use serde_json::Value;

use super::cell::at;

/// The moment in a field of an object.
pub fn moment(item: &Value, key: &str) -> Option<Timestamp> {
    Timestamp::parse_rfc3339(at(item, key).as_str()?)
}

/// A length of time in one unit: `45s`, `12m`, `5h`, `3d`.
pub fn short(length: Duration) -> String {
    match length.as_secs() {
        seconds @ ..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds @ 7200..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// How long ago, or in how long, with the moment itself.
pub fn relative(now: Timestamp, at: Timestamp) -> String {
    let moment = Timestamp::from_secs(at.as_secs()).to_rfc3339();
    if at > now {
        format!("in {} ({moment})", short(at.since(now)))
    } else {
        format!("{} ago ({moment})", short(now.since(at)))
    }
}

/// The age of a moment in a field, for a column.
pub fn age(item: &Value, key: &str, now: Timestamp) -> String {
    match moment(item, key) {
        Some(at) if at > now => format!("in {}", short(at.since(now))),
        Some(at) => short(now.since(at)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_with_the_moment_beside() {
        let now = Timestamp::from_secs(1_778_500_000);
        let before = |seconds| now.minus(Duration::from_secs(seconds));
        assert_eq!(relative(now, before(300)), "5m ago (2026-05-11T11:41:40Z)");
        let later = now.plus(Duration::from_millis(3500));
        assert_eq!(relative(now, later), "in 3s (2026-05-11T11:46:43Z)");
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (7199, "119m"),
            (7200, "2h"),
            (172_800, "2d"),
        ] {
            assert_eq!(short(Duration::from_secs(seconds)), text);
        }
    }
}
