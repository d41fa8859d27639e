//! The built console inside the program (feature `console`).

use std::sync::Arc;

use api::console::{Console, Incomplete};

/// The console; `None` when the program was built without it.
///
/// # Errors
/// [`Incomplete`] when a page is missing in it.
#[cfg(feature = "console")]
pub fn load() -> Result<Option<Arc<Console>>, Incomplete> {
    Console::new(Arc::new(embedded::Files)).map(|console| Some(Arc::new(console)))
}

/// The console; `None` when the program was built without it.
///
/// # Errors
/// None without the feature `console`.
#[cfg(not(feature = "console"))]
pub fn load() -> Result<Option<Arc<Console>>, Incomplete> {
    Ok(None)
}

#[cfg(feature = "console")]
mod embedded {
    use std::borrow::Cow;

    use api::console::ConsoleFiles;
    use bytes::Bytes;
    use rust_embed::RustEmbed;

    /// Output of `build.rs` from `api/console`.
    #[derive(RustEmbed)]
    #[folder = "$OUT_DIR/console"]
    struct Built;

    pub(super) struct Files;

    impl ConsoleFiles for Files {
        fn file(&self, path: &str) -> Option<Bytes> {
            Built::get(path).map(|file| match file.data {
                Cow::Borrowed(data) => Bytes::from_static(data),
                Cow::Owned(data) => data.into(),
            })
        }
    }
}
