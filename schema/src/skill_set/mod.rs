//! What lies in users' workspaces: each ordinary user has one object of kind `skill-set`, made and removed with the account.
//!
//! What a user gets is in [`skill`](crate::skill); whoever changes that raises the generation of the users it concerns.

mod model;
pub(crate) mod query;

use crate::kind::Descriptor;

pub use model::{Deployment, DesiredSkill, SkillSetRow};
pub use query::{all, deployments, desired, get, save_deployments};
pub(crate) use query::{delete, purge};

pub(crate) const KIND: Descriptor = Descriptor::new("skill-sets", &["ss"]);
