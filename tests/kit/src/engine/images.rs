//! Images of the fake: references, removal as the real engine does it, and pulls that take their time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::{EngineError, EngineStream, Image, PullEvent};
use futures::StreamExt;
use schema::ids::Timestamp;
use schema::image::ImageReference;

use super::FakeEngine;
use super::script::{PullEnd, PullScript};
use super::world::World;

/// A reference as the engine reports it: without the default registry, with tag or digest.
pub(super) fn familiar(reference: &str) -> String {
    let Ok(parsed) = reference.parse::<ImageReference>() else {
        return reference.to_owned();
    };
    let name = familiar_name(&parsed);
    match (parsed.digest(), parsed.tag()) {
        (Some(digest), _) => format!("{name}@{digest}"),
        (None, tag) => format!("{name}:{}", tag.unwrap_or("latest")),
    }
}

fn familiar_name(reference: &ImageReference) -> String {
    let repository = reference.repository();
    match reference.registry() {
        "docker.io" => repository
            .strip_prefix("library/")
            .unwrap_or(repository)
            .to_owned(),
        registry => format!("{registry}/{repository}"),
    }
}

fn repository(reference: &str) -> Option<String> {
    Some(familiar_name(&reference.parse().ok()?))
}

/// An image that only a registry has seen so far.
pub(super) fn made(hex: String, reference: &str, created_at: Timestamp) -> Image {
    Image {
        id: format!("sha256:{hex}"),
        repo_tags: vec![familiar(reference)],
        repo_digests: Vec::new(),
        size: 2_000_000,
        created_at: Timestamp::from_secs(created_at.as_secs()),
        is_local: true,
    }
}

impl World {
    pub(super) fn image(&self, reference: &str) -> Option<&Image> {
        let wanted = familiar(reference);
        self.images.get(reference).or_else(|| {
            self.images.values().find(|image| {
                image.repo_tags.contains(&wanted) || image.repo_digests.contains(&wanted)
            })
        })
    }

    /// Puts an image on the engine; its tags leave the images that had them.
    pub(super) fn load(&mut self, image: Image) {
        for other in self.images.values_mut() {
            other.repo_tags.retain(|tag| !image.repo_tags.contains(tag));
        }
        match self.images.get_mut(&image.id) {
            Some(known) => {
                known.is_local |= image.is_local;
                known.repo_tags.extend(image.repo_tags);
                known.repo_digests.extend(image.repo_digests);
                known.repo_tags.sort();
                known.repo_tags.dedup();
                known.repo_digests.sort();
                known.repo_digests.dedup();
            }
            None => {
                self.images.insert(image.id.clone(), image);
            }
        }
    }

    /// One more tag.
    pub(super) fn tag(&mut self, image: &str, reference: &str) -> Result<(), EngineError> {
        let mut image = self.image(image).cloned().ok_or_else(|| no_such(image))?;
        image.repo_tags.push(familiar(reference));
        self.load(image);
        Ok(())
    }

    /// What the registry gives for a reference.
    pub(super) fn fetch(&mut self, reference: &str) -> Result<Image, EngineError> {
        let wanted = familiar(reference);
        if let Some(image) = self.registry.get(&wanted) {
            return Ok(image.clone());
        }
        let host = |text: &str| Some(text.parse::<ImageReference>().ok()?.registry().to_owned());
        let known = self.registry.keys().any(|key| host(key) == host(&wanted));
        Err(if known {
            EngineError::PullRefused(format!(
                "manifest for {reference} not found: manifest unknown"
            ))
        } else {
            EngineError::PullFailed("dial tcp: connect: connection refused".to_owned())
        })
    }

    /// `docker rmi` without force.
    pub(super) fn remove_image(&mut self, reference_or_id: &str) -> Result<(), EngineError> {
        let Some(image) = self.image(reference_or_id).cloned() else {
            return Ok(());
        };
        let user = self.containers().find_map(|container| {
            let container = &container.details.container;
            (container.image_id == image.id).then(|| container.id.clone())
        });
        let single = image.repo_tags.len() <= 1 && repositories(&image).len() <= 1;
        let by_id = reference_or_id == image.id;
        if by_id && !single {
            return Err(EngineError::Conflict(format!(
                "unable to delete {} (must be forced) - image is referenced in multiple repositories",
                image.id
            )));
        }
        if single && let Some(user) = user {
            return Err(EngineError::Conflict(format!(
                "unable to remove {reference_or_id} (must force) - container {user} is using its referenced image {}",
                image.id
            )));
        }
        if by_id {
            self.images.remove(&image.id);
            return Ok(());
        }
        let gone = familiar(reference_or_id);
        let Some(left) = self.images.get_mut(&image.id) else {
            return Ok(());
        };
        left.repo_tags.retain(|tag| *tag != gone);
        left.repo_digests.retain(|digest| *digest != gone);
        // Digests of a repository stay as long as a tag of it does.
        let tagged: BTreeSet<_> = left
            .repo_tags
            .iter()
            .filter_map(|t| repository(t))
            .collect();
        if repository(&gone).is_some_and(|gone| !tagged.contains(&gone)) {
            left.repo_digests
                .retain(|digest| repository(digest) != repository(&gone));
        }
        if left.repo_tags.is_empty() && left.repo_digests.is_empty() {
            self.images.remove(&image.id);
        }
        Ok(())
    }
}

fn repositories(image: &Image) -> BTreeSet<String> {
    let references = image.repo_tags.iter().chain(&image.repo_digests);
    references.filter_map(|text| repository(text)).collect()
}

fn no_such(image: &str) -> EngineError {
    EngineError::NotFound(format!("No such image: {image}"))
}

/// Counts a pull for as long as somebody reads it.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeEngine {
    /// Pulls of this reference take their time.
    pub fn script_pull(&self, reference: &str, script: PullScript) {
        self.script().pulls.insert(familiar(reference), script);
    }

    /// Pulls that take their time and are being read.
    pub fn pulls_under_way(&self) -> usize {
        self.shared.pulls.load(Ordering::SeqCst)
    }

    /// The stream of a pull. One without a script happened when it was asked for.
    pub(super) fn pull_stream(
        &self,
        reference: &str,
    ) -> Result<EngineStream<PullEvent>, EngineError> {
        let script = self.script().pulls.get(&familiar(reference)).cloned();
        let mut image = self.change(|world| world.fetch(reference))?;
        if reference.contains('@') {
            // What is asked for by its digest gets no tag.
            image.repo_tags.clear();
        }
        let Some(script) = script else {
            let events = plot(&[(short(&image.id), image.size)], 0, reference);
            self.change(|world| world.load(image));
            return Ok(futures::stream::iter(events.into_iter().map(Ok)).boxed());
        };
        let events = plot(&script.layers, script.present, reference);
        let reader = Reader {
            engine: self.clone(),
            image,
            events,
            place: 0,
            step: script.step,
            ends: script.ends,
            _under_way: UnderWay::begin(&self.shared.pulls),
        };
        Ok(futures::stream::unfold(Some(reader), |reader| async move {
            let mut reader = reader?;
            let event = reader.next().await?;
            let more = event.is_ok().then_some(reader);
            Some((event, more))
        })
        .boxed())
    }
}

struct Reader {
    engine: FakeEngine,
    image: Image,
    events: Vec<PullEvent>,
    place: usize,
    step: Duration,
    ends: PullEnd,
    _under_way: UnderWay,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<PullEvent, EngineError>> {
        tokio::time::sleep(self.step).await;
        if let Err(error) = self.engine.available() {
            return Some(Err(error));
        }
        match &self.ends {
            PullEnd::Fails(place, error) if *place == self.place => return Some(Err(error())),
            PullEnd::Hangs(place) if *place == self.place => std::future::pending().await,
            PullEnd::Done | PullEnd::Fails(..) | PullEnd::Hangs(_) => {}
        }
        let Some(event) = self.events.get(self.place).cloned() else {
            self.engine.change(|world| world.load(self.image.clone()));
            return None;
        };
        self.place += 1;
        Some(Ok(event))
    }
}

fn short(id: &str) -> String {
    let hex = id.strip_prefix("sha256:").unwrap_or(id);
    hex.get(..12).unwrap_or(hex).to_owned()
}

/// What the real engine tells of such a pull.
fn plot(layers: &[(String, u64)], present: usize, reference: &str) -> Vec<PullEvent> {
    let say = |id: Option<&str>, status: &str, progress: Option<(u64, u64)>| PullEvent {
        status: status.to_owned(),
        id: id.map(str::to_owned),
        current: progress.map(|(current, _)| current),
        total: progress.map(|(_, total)| total),
    };
    let mut events = vec![say(Some("latest"), "Pulling from here", None)];
    for (number, (id, _)) in layers.iter().enumerate() {
        let word = if number < present {
            "Already exists"
        } else {
            "Pulling fs layer"
        };
        events.push(say(Some(id), word, None));
    }
    let fresh = layers.get(present..).unwrap_or_default();
    for quarter in 1..=4 {
        for (id, size) in fresh {
            let part = Some((size * quarter / 4, *size));
            events.push(say(Some(id), "Downloading", part));
        }
    }
    for (id, size) in fresh {
        events.push(say(Some(id), "Download complete", None));
        events.push(say(Some(id), "Extracting", Some((size / 2, *size))));
        events.push(say(Some(id), "Extracting", Some((*size, *size))));
        events.push(say(Some(id), "Pull complete", None));
    }
    let last = format!("Status: Downloaded newer image for {reference}");
    events.push(say(None, &last, None));
    events
}

/// The count of pulls, shared with their streams.
pub(super) type PullCount = Arc<AtomicUsize>;

/// Everything on the engine, without being counted as a call.
impl FakeEngine {
    /// All images, by id.
    pub fn all_images(&self) -> Vec<Image> {
        self.world().images.values().cloned().collect()
    }

    /// The id of the image that a reference means now.
    pub fn image_id(&self, reference: &str) -> String {
        let images = self.all_images();
        let mut tagged = images
            .iter()
            .filter(|image| image.repo_tags.iter().any(|tag| tag == reference));
        tagged.next().expect("an image of this tag").id.clone()
    }

    /// `docker tag`.
    pub fn hand_tag(&self, image: &str, reference: &str) -> Result<(), EngineError> {
        self.change(|world| world.tag(image, reference))
    }
}
