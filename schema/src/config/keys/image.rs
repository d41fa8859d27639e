//! Keys of `image`.

use secrecy::SecretString;

use super::settings;
use crate::config::setting::Setting;
use crate::config::{PullPolicy, host, rules};

settings! {
    /// Agent image of new users, without tag.
    NAME: Setting<String> = "image.name", "Image", Setting::text(rules::image_name, "docker.io/sipeed/picoclaw");

    /// When the image is pulled: if missing, always, or never.
    PULL_POLICY: Setting<PullPolicy> = "image.pull_policy", "Pull policy", Setting::choice("missing");

    /// Password for the registry of image.name.
    REGISTRY_PASSWORD: Setting<Option<SecretString>> = "image.registry_password", "Registry password", Setting::secret().belongs_to(&NAME.row, host::of_image);

    /// Registries (host:port) whose tags are listed over plain HTTP. Pulls follow the container engine's configuration.
    REGISTRY_PLAIN_HTTP: Setting<Vec<String>> = "image.registry_plain_http", "Registries without TLS", Setting::list(rules::registry);

    /// User name for the registry of image.name; empty = anonymous.
    REGISTRY_USERNAME: Setting<Option<String>> = "image.registry_username", "Registry user name", Setting::optional(rules::line);

    /// Tag of the agent image of new users.
    TAG: Setting<String> = "image.tag", "Image tag", Setting::text(rules::image_tag, "latest");
}
