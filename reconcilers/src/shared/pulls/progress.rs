//! How far a pull is, in bytes and in percent, from what the engine reports of its layers.
//!
//! The percentage weighs layers by their size; one whose size is not known yet, or never will be
//! because the engine has it already, counts like the average of the others. Downloading a layer is
//! 80 % of its way, unpacking it the rest. The percentage never falls, also when layers appear or are
//! fetched once more, stays 0 until something is fetched, and is 100 only when the pull has succeeded.

use std::collections::HashMap;

use schema::image::{PullEvent, PullSum};

/// Layers that are followed; images have at most 127.
const MOST_LAYERS: usize = 512;
/// What a downloaded layer has behind it, in thousandths of its way.
const DOWNLOADED: u64 = 800;
const WHOLE: u64 = 1000;

#[derive(Debug, Default)]
struct Layer {
    size: Option<u64>,
    downloaded: u64,
    /// In thousandths of its way.
    way: u64,
    /// The engine had it before.
    present: bool,
}

/// What is known of a pull under way. Bounded, however much the engine reports.
#[derive(Debug, Default)]
pub struct Progress {
    layers: Vec<Layer>,
    places: HashMap<String, usize>,
    digest: Option<String>,
    /// Machines that have the image, of how many, where each pulls for itself.
    nodes: (u64, u64),
    percent: u8,
}

/// `part` of `whole` in thousandths of `of`.
fn share(part: u64, whole: u64, of: u64) -> u64 {
    let share = u128::from(part.min(whole)) * u128::from(of) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(of)
}

impl Layer {
    fn take(&mut self, event: &PullEvent) {
        let (current, total) = (event.current.unwrap_or(0), event.total);
        match event.status.as_str() {
            PullEvent::DOWNLOADING => {
                self.size = total.or(self.size);
                self.downloaded = total.map_or(0, |total| current.min(total));
                self.way = total.map_or(0, |total| share(current, total, DOWNLOADED));
            }
            "Verifying Checksum" | PullEvent::DOWNLOADED => {
                self.downloaded = self.size.unwrap_or(0);
                self.way = self.way.max(DOWNLOADED);
            }
            PullEvent::EXTRACTING => {
                self.size = self.size.or(total);
                self.downloaded = self.size.unwrap_or(0);
                let unpacked = total.map_or(0, |total| share(current, total, WHOLE - DOWNLOADED));
                self.way = DOWNLOADED + unpacked;
            }
            PullEvent::COMPLETE => {
                self.downloaded = self.size.unwrap_or(0);
                self.way = WHOLE;
            }
            PullEvent::PRESENT => {
                self.present = true;
                self.way = WHOLE;
            }
            // "Pulling fs layer", "Waiting", "Retrying in …": nothing is done yet, or nothing new.
            _ => {}
        }
    }
}

impl Progress {
    /// Takes in what the engine reports.
    pub fn take(&mut self, event: &PullEvent) {
        if event.status.starts_with("Pulling from") {
            return;
        }
        let Some(id) = &event.id else {
            if let Some(digest) = event.status.strip_prefix("Digest: ") {
                self.digest = Some(digest.trim().to_owned());
            } else if let (Some(having), Some(asked)) = (event.current, event.total) {
                self.nodes = (having.min(asked), asked);
            }
            return;
        };
        match self.places.get(id).copied() {
            Some(place) => {
                if let Some(layer) = self.layers.get_mut(place) {
                    layer.take(event);
                }
            }
            None if self.layers.len() >= MOST_LAYERS => return,
            None => {
                let mut layer = Layer::default();
                layer.take(event);
                self.places.insert(id.clone(), self.layers.len());
                self.layers.push(layer);
            }
        }
        self.percent = self.percent.max(self.weighed());
    }

    /// The percentage that the layers make now; below 100, because an error may still come.
    fn weighed(&self) -> u8 {
        // The engine reports first the layers it has: they are not the whole of it.
        if !self
            .layers
            .iter()
            .any(|layer| layer.way > 0 && !layer.present)
        {
            return 0;
        }
        let sizes = self.layers.iter().filter_map(|layer| layer.size);
        let (count, total) = sizes.fold((0u128, 0u128), |(count, total), size| {
            (count + 1, total + u128::from(size))
        });
        let average = total.checked_div(count).unwrap_or(1).max(1);
        let (mut done, mut whole) = (0u128, 0u128);
        for layer in &self.layers {
            let weight = layer.size.map_or(average, u128::from).max(1);
            done += weight * u128::from(layer.way);
            whole += weight * u128::from(WHOLE);
        }
        let percent = (done * 100).checked_div(whole).unwrap_or(0);
        u8::try_from(percent.min(99)).unwrap_or(99)
    }

    /// How far it is.
    pub fn sum(&self) -> PullSum {
        let mut sum = PullSum {
            percent: self.percent,
            nodes: self.nodes.0,
            nodes_total: self.nodes.1,
            ..PullSum::default()
        };
        for layer in &self.layers {
            sum.bytes = sum.bytes.saturating_add(layer.downloaded);
            sum.bytes_total = sum.bytes_total.saturating_add(layer.size.unwrap_or(0));
        }
        sum
    }

    /// The digest that the registry gave for the reference, once the engine has reported it.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(id: &str, status: &str, progress: Option<(u64, u64)>) -> PullEvent {
        PullEvent {
            status: status.to_owned(),
            id: Some(id.to_owned()),
            current: progress.map(|p| p.0),
            total: progress.map(|p| p.1),
        }
    }

    type Told<'a> = (&'a str, &'a str, Option<(u64, u64)>);

    fn percents(events: &[Told<'_>]) -> Vec<u8> {
        let mut progress = Progress::default();
        let each = events.iter().map(|(id, status, bytes)| {
            progress.take(&event(id, status, *bytes));
            progress.sum().percent
        });
        each.collect()
    }

    #[test]
    fn downloading_is_four_fifths_of_the_way_and_unpacking_the_rest() {
        let reported = percents(&[
            ("latest", "Pulling from library/agent", None),
            ("a", "Pulling fs layer", None),
            ("b", "Pulling fs layer", None),
            ("a", "Downloading", Some((50, 100))),
            ("a", "Download complete", None),
            ("b", "Downloading", Some((300, 300))),
            ("b", "Download complete", None),
            ("a", "Extracting", Some((100, 100))),
            ("a", "Pull complete", None),
            ("b", "Extracting", Some((150, 300))),
            ("b", "Pull complete", None),
        ]);
        assert_eq!(reported, [0, 0, 0, 20, 40, 80, 80, 85, 85, 92, 99]);
    }

    #[test]
    fn a_layer_that_is_there_already_counts_as_done() {
        let reported = percents(&[
            ("a", "Already exists", None),
            ("b", "Pulling fs layer", None),
            ("b", "Downloading", Some((50, 100))),
        ]);
        assert_eq!(reported, [0, 0, 70]);
    }

    #[test]
    fn bytes_are_those_of_the_layers_whose_size_is_known() {
        let mut progress = Progress::default();
        for reported in [
            event("a", "Already exists", None),
            event("b", "Downloading", Some((50, 100))),
            event("c", "Downloading", Some((300, 300))),
            event("c", "Extracting", Some((1, 300))),
        ] {
            progress.take(&reported);
        }
        let sum = progress.sum();
        assert_eq!((sum.bytes, sum.bytes_total), (350, 400));
    }

    #[test]
    fn machines_that_pull_for_themselves_count_alike() {
        let mut progress = Progress::default();
        let having = |having| PullEvent {
            status: format!("{having} of 3 nodes have the image"),
            id: None,
            current: Some(having),
            total: Some(3),
        };
        let steps = [
            event("n1", "Already exists", None),
            event("n2", "Waiting", None),
            event("n3", "Waiting", None),
            having(1),
            event("n2", "Pull complete", None),
            having(2),
        ];
        for step in &steps {
            progress.take(step);
        }
        let sum = progress.sum();
        assert_eq!((sum.percent, sum.nodes, sum.nodes_total), (66, 2, 3));
    }

    #[test]
    fn l37_memory_does_not_grow_with_what_the_engine_tells() {
        let mut progress = Progress::default();
        for number in 0..10_000_u32 {
            let id = format!("layer{}", number % 2_000);
            progress.take(&event(&id, "Downloading", Some((u64::MAX - 1, u64::MAX))));
        }
        assert_eq!(progress.layers.len(), MOST_LAYERS);
        assert_eq!(progress.sum().percent, 79);
    }

    const STATES: [&str; 9] = [
        "Pulling fs layer",
        "Waiting",
        "Downloading",
        "Verifying Checksum",
        "Download complete",
        "Extracting",
        "Pull complete",
        "Already exists",
        "Retrying in 5 seconds",
    ];

    proptest! {
        #[test]
        fn l37_the_percentage_never_falls_and_stays_below_100(
            reported in prop::collection::vec((0..6u8, 0..STATES.len(), any::<Option<(u64, u64)>>()), 0..200)
        ) {
            let mut progress = Progress::default();
            let mut before = 0;
            for (layer, state, bytes) in reported {
                progress.take(&event(&layer.to_string(), STATES[state], bytes));
                let now = progress.sum().percent;
                prop_assert!(before <= now && now < 100, "{before} {now}");
                before = now;
            }
        }
    }
}
