//! The reading of the file by which service and cluster prove that they see one directory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of it.
const LONGEST: u64 = 1024;

/// Reads the file.
///
/// # Errors
/// It cannot be read, or is no text.
pub fn read_nonce(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}
