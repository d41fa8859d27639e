//! The packages in the binary. They are data like any other: the folder `adapters` of this crate.

/// The names of the embedded adapters: the default one first; `echo` is the agent of the tests.
pub const BUILTIN: &[&str] = &["picoclaw", "echo"];

type EmbeddedFile = (&'static str, &'static [u8]);

macro_rules! embedded {
    ($folder:literal, [$($file:literal),+ $(,)?]) => {
        &[$(($file, include_bytes!(concat!("../../adapters/", $folder, "/", $file)))),+]
    };
}

const PICOCLAW: &[EmbeddedFile] = embedded!(
    "picoclaw",
    [
        "hash",
        "index.json",
        "migrations/v1-to-v2.json",
        "migrations/v2-to-v3.json",
        "schemas/config-v1.json",
        "schemas/config-v2.json",
        "schemas/config-v3.json",
        "ui/ui-v1.json",
        "ui/ui-v2.json",
        "ui/ui-v3.json",
    ]
);

const ECHO: &[EmbeddedFile] = embedded!(
    "echo",
    [
        "hash",
        "index.json",
        "migrations/v1-to-v2.json",
        "migrations/v2-to-v1.json",
        "migrations/v2-to-v3.json",
        "schemas/config-v1.json",
        "schemas/config-v2.json",
        "schemas/config-v3.json",
        "ui/ui-v1.json",
        "ui/ui-v2.json",
        "ui/ui-v3.json",
    ]
);

/// The files of an embedded adapter.
pub(super) fn files(name: &str) -> Option<&'static [EmbeddedFile]> {
    match name {
        "picoclaw" => Some(PICOCLAW),
        "echo" => Some(ECHO),
        _ => None,
    }
}
