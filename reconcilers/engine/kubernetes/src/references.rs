//! Meanings of image references, as registries tell them, and the nodes that are known to have an image.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{Digests, EngineError, Meaning};
use schema::image::ImageReference;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Time for which what a registry said holds.
const HELD: Duration = Duration::from_secs(60);
/// Time for which it holds that the registry has no such image, or could not be asked.
const FAILURE_HELD: Duration = Duration::from_secs(5);
/// Most references, and most images, that are remembered.
const KEPT: usize = 256;

/// An image as a Pod names it: `REPOSITORY@sha256:…`, or a reference that stands for itself.
pub(crate) type ImageId = String;

/// Last answer about a reference. Held while the registry is asked, so that all who want to know wait for one question.
type Answered = Arc<tokio::sync::Mutex<Option<(Instant, Result<Meaning, String>)>>>;

/// Source of what the engine knows of images.
pub(crate) struct ImageSource {
    /// The instance whose containers are looked at.
    pub(crate) owner: String,
    digests: Option<Arc<dyn Digests>>,
    known: Mutex<Known>,
    /// Takes pulls that were called off.
    called_off: mpsc::UnboundedSender<String>,
}

#[derive(Default)]
struct Known {
    answers: HashMap<String, Answered>,
    /// By reference: the image that it meant last.
    meant: BTreeMap<String, ImageId>,
    /// Nodes to which an image was pulled.
    pulled: BTreeMap<ImageId, BTreeSet<String>>,
    /// Pulls under way.
    pulls: BTreeSet<String>,
}

/// Meaning of a reference for Pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// An image that never becomes another one.
    Fixed(ImageId),
    /// A reference that stands for itself: nodes say what it means.
    Loose(ImageId),
}

impl Resolved {
    /// Name of the image in a Pod.
    pub(crate) fn id(&self) -> &ImageId {
        match self {
            Self::Fixed(id) | Self::Loose(id) => id,
        }
    }
}

impl ImageSource {
    /// References of the containers of `owner` stand for themselves. Also returns the pulls that are called off.
    pub(crate) fn new(owner: &str) -> (Self, mpsc::UnboundedReceiver<String>) {
        #[expect(
            clippy::disallowed_methods,
            reason = "a drop sends, so it cannot wait; one short name for each pull that is called off, and the API bounds pulls"
        )]
        let (called_off, receiver) = mpsc::unbounded_channel();
        let source = Self {
            owner: owner.to_owned(),
            digests: None,
            known: Mutex::default(),
            called_off,
        };
        (source, receiver)
    }

    /// References of the containers of `owner` mean what `digests` says.
    pub(crate) fn with_digests(
        owner: &str,
        digests: Arc<dyn Digests>,
    ) -> (Self, mpsc::UnboundedReceiver<String>) {
        let (source, receiver) = Self::new(owner);
        let source = Self {
            digests: Some(digests),
            ..source
        };
        (source, receiver)
    }

    fn lock_known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Meaning of a reference; `None`: its registry has no such image. An answer of the last minute holds, unless the newest one
    /// is asked for.
    ///
    /// # Errors
    /// [`EngineError::RegistryFailed`]: the registry could not be asked.
    pub(crate) async fn resolve_reference(
        &self,
        reference: &ImageReference,
        newest: bool,
    ) -> Result<Option<Resolved>, EngineError> {
        if let Some(digest) = reference.digest() {
            return Ok(Some(Resolved::Fixed(fixed_id(reference, digest))));
        }
        let text = reference.to_string();
        let Some(digests) = &self.digests else {
            return Ok(Some(Resolved::Loose(text)));
        };
        let answer = self.answer_of(&text);
        let mut answer = answer.lock().await;
        let held = answer.as_ref().filter(|(at, answer)| {
            let limit = match answer {
                Ok(Meaning::Digest(_) | Meaning::Itself) => HELD,
                Ok(Meaning::Nothing) | Err(_) => FAILURE_HELD,
            };
            at.elapsed() < limit
        });
        let meaning = match held {
            Some((_, held)) if !newest => held.clone(),
            _ => {
                let said = match digests.digest(reference).await {
                    Ok(meaning) => Ok(meaning),
                    Err(EngineError::RegistryFailed(why)) => Err(why),
                    Err(error) => return Err(error),
                };
                *answer = Some((Instant::now(), said.clone()));
                said
            }
        };
        match meaning {
            Ok(Meaning::Digest(digest)) => {
                let id = fixed_id(reference, &digest);
                self.note_meaning(text, &id);
                Ok(Some(Resolved::Fixed(id)))
            }
            Ok(Meaning::Itself) => Ok(Some(Resolved::Loose(text))),
            Ok(Meaning::Nothing) => Ok(None),
            Err(why) => Err(EngineError::RegistryFailed(why)),
        }
    }

    /// Keeps a pulled image as the meaning of its reference for another minute, also after a long pull.
    pub(crate) async fn keep_meaning(&self, reference: &ImageReference, image: &Resolved) {
        if let (None, Resolved::Fixed(id)) = (reference.digest(), image)
            && let Some((_, digest)) = id.split_once('@')
        {
            let answer = self.answer_of(&reference.to_string());
            let meaning = Meaning::Digest(digest.to_owned());
            *answer.lock().await = Some((Instant::now(), Ok(meaning)));
        }
    }

    fn answer_of(&self, reference: &str) -> Answered {
        let mut known = self.lock_known();
        if known.answers.len() >= KEPT && !known.answers.contains_key(reference) {
            // Questions under way are held by those who ask.
            known.answers.clear();
        }
        let answer = known.answers.entry(reference.to_owned()).or_default();
        Arc::clone(answer)
    }

    fn note_meaning(&self, reference: String, id: &ImageId) {
        let mut known = self.lock_known();
        if known.meant.len() >= KEPT && !known.meant.contains_key(&reference) {
            known.meant.pop_first();
        }
        known.meant.insert(reference, id.clone());
    }

    /// References that meant an image when they were last asked for.
    pub(crate) fn references_of(&self, id: &str) -> Vec<String> {
        let known = self.lock_known();
        let meant = known.meant.iter().filter(|(_, meant)| *meant == id);
        meant.map(|(reference, _)| reference.clone()).collect()
    }

    /// Notes that a node has pulled an image.
    pub(crate) fn note_pulled(&self, id: &ImageId, node: Option<&str>) {
        let mut known = self.lock_known();
        if known.pulled.len() >= KEPT && !known.pulled.contains_key(id) {
            known.pulled.pop_first();
        }
        let nodes = known.pulled.entry(id.clone()).or_default();
        nodes.extend(node.map(str::to_owned));
    }

    /// Images that were pulled, and the nodes to which.
    pub(crate) fn pulled_images(&self) -> BTreeMap<ImageId, BTreeSet<String>> {
        self.lock_known().pulled.clone()
    }

    /// Nodes to which an image was pulled.
    pub(crate) fn pulled_nodes(&self, id: &str) -> BTreeSet<String> {
        self.lock_known()
            .pulled
            .get(id)
            .cloned()
            .unwrap_or_default()
    }

    /// Begins a pull; it is under way until what is returned is dropped.
    pub(crate) fn begin_pull(self: &Arc<Self>) -> PullTurn {
        let id = schema::ids::Uid::random().as_str().to_owned();
        self.lock_known().pulls.insert(id.clone());
        PullTurn {
            source: Arc::clone(self),
            id,
            is_done: false,
        }
    }

    /// Returns true if a pull is under way here.
    pub(crate) fn is_under_way(&self, pull: &str) -> bool {
        self.lock_known().pulls.contains(pull)
    }
}

/// A pull under way. Dropped before it is done, it was called off, and its Pods are removed.
pub(crate) struct PullTurn {
    source: Arc<ImageSource>,
    /// Distinguishes its Pods from those of other pulls.
    pub(crate) id: String,
    /// Nothing is left to remove.
    pub(crate) is_done: bool,
}

impl Drop for PullTurn {
    fn drop(&mut self) {
        self.source.lock_known().pulls.remove(&self.id);
        if !self.is_done {
            // Without a reader the service is ending; the next pull removes what is left.
            let _ = self.source.called_off.send(self.id.clone());
        }
    }
}

/// The one name of an image in a repository.
fn fixed_id(reference: &ImageReference, digest: &str) -> ImageId {
    format!("{}@{digest}", reference.name())
}
