//! Users' directories as the engine sees them.

use async_trait::async_trait;
use bytes::Bytes;
use schema::ids::{Uid, UserName};

use super::{Bind, EngineError, EngineStream};

/// Folder in the data directory that a proof looks into.
pub const PROBE_FOLDER: &str = "probe";
/// File in that folder that the service writes for a proof.
pub const PROBE_FILE: &str = "probe";

/// Outcome of a proof that engine and service see the same data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// They do.
    Same,
    /// They do not; in words that follow "the engine does not see the data directory …": where it looked, what it found, what
    /// to correct.
    Different(String),
}

/// An image whose own home is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageHome {
    /// Name of what it is read from.
    pub name: String,
    /// The user for whom it is read.
    pub uid: Uid,
    /// Id of the image.
    pub image: String,
}

/// The verbs of an engine for users' directories.
#[async_trait]
pub trait HomeMounts: Send + Sync + 'static {
    /// Returns the mount of a user's directory at `target` in a container. Part of what settings' digests are made of. Pure.
    fn bind_home(&self, user: &UserName, target: &str) -> Bind;

    /// Looks whether the engine sees `nonce` in the data directory, in the file [`PROBE_FILE`] of [`PROBE_FOLDER`], where the
    /// service has just written it. `image` is one that the engine has; none of its programs runs.
    async fn prove_data_dir(&self, image: &str, nonce: &str) -> Result<Proof, EngineError>;

    /// Returns true if a proof that was cut short has left something on the engine.
    async fn is_proof_left_over(&self) -> Result<bool, EngineError>;

    /// Removes what a proof that was cut short has left; success when nothing is there.
    async fn clean_up_proof(&self) -> Result<(), EngineError>;

    /// Makes the file system of an image readable and returns by which word it is. None of its programs runs. A taken name is
    /// [`EngineError::NameTaken`].
    async fn open_image(&self, image: &ImageHome) -> Result<String, EngineError>;

    /// A directory of an opened image, with everything in it, as a tar stream whose entries begin with the
    /// directory's own name; `None` when nothing is there. The stream is as long as the directory is large.
    async fn read_image(
        &self,
        opened: &str,
        path: &str,
    ) -> Result<Option<EngineStream<Bytes>>, EngineError>;

    /// Removes what was made for reading; success when it is gone.
    async fn close_image(&self, opened: &str) -> Result<(), EngineError>;
}
