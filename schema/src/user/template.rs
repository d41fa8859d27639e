//! What new users get from the configuration.

use secrecy::SecretString;

use super::model::{NewUser, Source};
use crate::config::{Config, keys};
use crate::container::Desired;
use crate::ids::{Uid, UserName};

/// What new users get from the configuration: fixed from their creation on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Image reference.
    pub image_ref: String,
    /// Whether the container is to run.
    pub desired: Desired,
}

impl Template {
    /// Of this configuration; `tag` takes the place of `image.tag`.
    pub fn of(config: &Config, tag: Option<&str>) -> Self {
        Self {
            image_ref: match tag {
                Some(tag) => format!("{}:{tag}", config.get(&keys::image::NAME)),
                None => config.image_reference(),
            },
            desired: if config.get(&keys::container::AUTOSTART) {
                Desired::Running
            } else {
                Desired::Stopped
            },
        }
    }

    /// A user to create.
    pub fn new_user(
        &self,
        name: &UserName,
        source: Source,
        password_hash: Option<SecretString>,
    ) -> NewUser {
        NewUser {
            uid: Uid::random(),
            name: name.clone(),
            source,
            password_hash,
            image_ref: self.image_ref.clone(),
            desired: self.desired,
        }
    }
}
