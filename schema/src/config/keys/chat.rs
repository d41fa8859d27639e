//! Keys of `chat`.

use super::settings;
use crate::config::setting::{Effect, Setting};

settings! {
    /// Turn on the chat that agents have, so that users talk to them on the page. The channel that it occupies is not offered then;
    /// users' own values for it are kept.
    ENABLED: Setting<bool> = "chat.enabled", "Chat", Setting::flag(true).effects(&[Effect::Files]);
}
