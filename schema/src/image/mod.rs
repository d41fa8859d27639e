//! Images: references, those desired on the engine or absent from it, and logs of pulls.

use crate::kind::Descriptor;

mod model;
mod pull;
pub(crate) mod query;
mod reference;
mod tag;

pub use model::{DesiredImage, ImageFacts, ImageRow, ImageUse};
pub use pull::{PullEvent, PullLog, PullReader, PullSum, PullUpdate, RunningPull};
pub use query::{
    all, find, get, needs, purge, request_absent, request_cancel, request_pull, request_withdrawal,
    save_facts, uses,
};
pub use reference::{ImageReference, InvalidImageReference, is_id, is_tag};
pub use tag::sort_newest_first;

pub(crate) const KIND: Descriptor = Descriptor {
    finalizer: Some(query::FINALIZER),
    ..Descriptor::new("images", &["i", "img"])
};
