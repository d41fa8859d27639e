//! The runtime against a scripted world, under paused time.

mod failures;
mod health;
mod leadership;
mod passes;
mod queue;
mod sources;
mod support;
