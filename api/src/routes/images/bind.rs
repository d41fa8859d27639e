//! Which handler answers which route.

use super::{control, delete, list, pull, registry, rollouts, start, users};
use crate::access::Op;
use crate::dispatch::Binder;

/// Binds the handlers of images and rollouts.
pub(in crate::routes) fn bind_images(binder: Binder) -> Binder {
    binder
        .bind(Op::ImagesList, list::list)
        .bind(Op::ImagesPull, pull::pull)
        .bind(Op::ImagesPulls, pull::running)
        .bind(Op::ImagesPullsCancel, pull::cancel)
        .bind(Op::ImagesDelete, delete::delete)
        .bind(Op::ImagesMigrate, start::migrate)
        .bind(Op::ImagesUpgrade, start::upgrade)
        .bind(Op::ImagesRollouts, rollouts::list)
        .bind(Op::ImagesRollout, rollouts::show)
        .bind(Op::ImagesRolloutsPause, control::pause)
        .bind(Op::ImagesRolloutsResume, control::resume)
        .bind(Op::ImagesRolloutsRollback, control::roll_back)
        .bind(Op::ImagesRolloutsCancel, control::cancel_route)
        .bind(Op::ImagesRegistry, registry::tags)
        .bind(Op::ImagesLocalTags, list::local_tags)
        .bind(Op::ImagesUpgradeCandidates, users::candidates)
        .bind(Op::ImagesUsers, users::of_image)
}
