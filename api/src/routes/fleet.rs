//! Which handler of the fleet (users, containers, operators' view) answers which route.

use crate::access::Op;
use crate::dispatch::Binder;
use crate::routes::{containers, health, own_container, reconcile, tasks, users, watch};

/// Binds the handlers of users, containers, reconcilers, tasks and readiness.
pub fn bind_fleet(binder: Binder) -> Binder {
    super::images::bind_images(super::adapter::bind(binder))
        .bind(Op::Readiness, health::readiness)
        .bind(Op::UsersList, users::list)
        .bind(Op::UsersCreate, users::create)
        .bind(Op::UsersBatchCreate, users::batch_create)
        .bind(Op::UsersDelete, users::delete)
        .bind(Op::UsersResetPassword, users::reset_password)
        .bind(Op::UsersDisable, users::disable)
        .bind(Op::UsersEnable, users::enable)
        .bind(Op::UsersRevokeSessions, users::revoke_sessions)
        .bind(Op::ContainerStart, containers::start)
        .bind(Op::ContainerStop, containers::stop)
        .bind(Op::ContainerRestart, containers::restart)
        .bind(Op::ContainerDebug, containers::debug)
        .bind(Op::ContainerLimits, containers::limits)
        .bind(Op::ContainerLogs, containers::logs)
        .bind(Op::ContainerInspect, containers::inspect)
        .bind(Op::ContainerStats, containers::stats)
        .bind(Op::OwnContainer, own_container::show)
        .bind(Op::OwnLogs, own_container::logs)
        .bind(Op::OwnContainerRestart, own_container::restart)
        .bind(Op::Reconcile, reconcile::overview)
        .bind(Op::ReconcileObjects, reconcile::objects)
        .bind(Op::ReconcileObject, reconcile::object)
        .bind(Op::ReconcileRetry, reconcile::retry)
        .bind(Op::ReconcilePause, reconcile::pause)
        .bind(Op::ReconcileResume, reconcile::resume)
        .bind(Op::Events, reconcile::events)
        .bind(Op::Watch, watch::watch)
        .bind(Op::TaskStatus, tasks::status)
        .bind(Op::Tasks, tasks::list)
        .bind(Op::TaskCancel, tasks::cancel)
}
