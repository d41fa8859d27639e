//! How much a document is: how deep it is nested, and of how many values it consists.

use serde_json::Value;

/// Most values of one document: each object, list, text, number and constant is one.
pub(super) const MAX_NODES: usize = 50_000;

/// Whether a value has more than `levels` objects and lists around one another.
pub(crate) fn nests_deeper_than(value: &Value, levels: usize) -> bool {
    let deeper = |inner: &Value| nests_deeper_than(inner, levels.saturating_sub(1));
    match value {
        Value::Object(_) | Value::Array(_) if levels == 0 => true,
        Value::Object(members) => members.values().any(deeper),
        Value::Array(items) => items.iter().any(deeper),
        _ => false,
    }
}

/// Of how many values a value consists.
pub(super) fn nodes(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        _ => 1,
    }
}

/// What a scan finds, without parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Most brackets that are open at once.
    pub(crate) depth: usize,
    /// Of how many values it consists at most.
    pub(crate) nodes: usize,
}

/// Scans JSON: a parser makes much of a few bytes, so it is not given what is refused anyway. What is no JSON has some extent, too.
pub(super) fn scan_json(bytes: &[u8]) -> Extent {
    let (mut open, mut text, mut escaped) = (0_usize, false, false);
    let mut extent = Extent { depth: 0, nodes: 1 };
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            _ if text => {}
            b'[' | b'{' => {
                open += 1;
                extent.nodes += 1;
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b',' => extent.nodes += 1,
            _ => {}
        }
        extent.depth = extent.depth.max(open);
    }
    extent
}

/// Scans YAML, which is not read without a parser: what stands in texts counts too, so limits on this are looser.
pub(crate) fn scan_yaml(bytes: &[u8]) -> Extent {
    let mut open = 0_usize;
    let mut extent = Extent { depth: 0, nodes: 1 };
    let mut before = [b'\n'; 2];
    for byte in bytes {
        match byte {
            b'[' | b'{' => {
                open += 1;
                extent.nodes += 1;
            }
            b']' | b'}' => open = open.saturating_sub(1),
            // An item, also one within an item of the same line.
            b' ' | b'\t' if matches!(before[1], b'-' | b'?') => extent.nodes += 1,
            b',' | b'\n' | b'\r' => extent.nodes += 1,
            // The line breaks of YAML 1.1: NEL, LS and PS.
            0x85 if before[1] == 0xc2 => extent.nodes += 1,
            0xa8 | 0xa9 if before == [0xe2, 0x80] => extent.nodes += 1,
            _ => {}
        }
        before = [before[1], *byte];
        extent.depth = extent.depth.max(open);
    }
    extent
}

/// How many lines of YAML may be directives. The parser compares each with all before it.
pub(crate) fn directives(bytes: &[u8]) -> usize {
    let starts = |at: usize| at == 0 || !matches!(bytes[at - 1], b' '..=b'~');
    let signs = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    signs.filter(|(at, _)| starts(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_of_yaml_counts_every_break_of_lines_and_every_item() {
        for (text, nodes) in [
            ("a: 1", 1),
            ("a: 1\nb: 2\n", 3),
            ("a:\r- 1\r- 1\r", 6),
            ("- - - - 1", 5),
            ("? ? 1", 3),
            ("a\u{85}b\u{2028}c\u{2029}d", 4),
            ("a-b --c", 1),
        ] {
            assert_eq!(scan_yaml(text.as_bytes()).nodes, nodes, "{text:?}");
        }
        for (text, found) in [
            ("%TAG !a! x\n%TAG !b! y\r%YAML 1.2\n---\na: 1 %\n", 3),
            ("\u{feff}%TAG !a! x\n", 1),
            ("a: 100 %\nb: '%s'\n", 0),
        ] {
            assert_eq!(directives(text.as_bytes()), found, "{text:?}");
        }
    }

    #[test]
    fn a_scan_finds_no_less_than_there_is() {
        for (text, depth) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a": [1, 2, {"b": "[[[,,,\\\"[["}], "c": null}"#, 3),
            ("[[],[],[[]]]", 3),
            (r#"["\\", "]", {}]"#, 2),
        ] {
            let extent = scan_json(text.as_bytes());
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(extent.depth, depth, "{text}");
            assert!(extent.nodes >= nodes(&value), "{text}");
            assert!(extent.nodes <= 2 * nodes(&value), "{text}");
            assert!(!nests_deeper_than(&value, depth));
        }
    }
}
