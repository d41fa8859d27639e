//! The adapter that the service is started with.

use std::path::Path;

use schema::adapter::Adapter;

/// Reads it: a built-in one by name, else a folder or a zip. Blocks.
///
/// # Errors
/// When there is none, or it is not valid: every problem is named.
pub fn read(name: &str) -> Result<Adapter, String> {
    let refused = |why: String| format!("--adapter {name}: {why}");
    let path = Path::new(name);
    let read = match Adapter::builtin(name) {
        Some(builtin) => builtin,
        None if path.is_dir() => Adapter::from_folder(path),
        None => {
            let bytes = std::fs::read(path).map_err(|error| {
                refused(format!(
                    "neither a built-in adapter (picoclaw, echo) nor a readable folder or zip: {error}"
                ))
            })?;
            Adapter::from_zip(&bytes)
        }
    };
    read.map_err(|invalid| refused(invalid.to_string()))
}
