//! What comes out of rendering.

mod chat;
mod files;
mod golden;
mod hostile;
mod merging;
mod migrating;
mod properties;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;
use crate::adapter::test_package::TestPackage;

/// Inputs that own what they hold.
#[derive(Clone)]
pub(super) struct World {
    pub(super) adapter: Adapter,
    pub(super) tag: String,
    pub(super) agent: Value,
    pub(super) security: Value,
    pub(super) channels: BTreeMap<String, BTreeMap<String, Value>>,
    pub(super) cookies: BTreeMap<String, String>,
    pub(super) base_url: Option<String>,
    pub(super) token: SecretString,
    /// The token of the chat; `None`: the chat is off.
    pub(super) chat: Option<SecretString>,
    pub(super) applied: Option<Applied>,
    pub(super) config: Option<Vec<u8>>,
    pub(super) security_file: Option<Vec<u8>>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &Option<Vec<u8>>| {
            let bytes = bytes.as_deref();
            bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        f.debug_struct("World")
            .field("tag", &self.tag)
            .field("agent", &self.agent.to_string())
            .field("security", &self.security.to_string())
            .field("channels", &self.channels)
            .field("cookies", &self.cookies)
            .field("config", &text(&self.config))
            .field("security_file", &text(&self.security_file))
            .finish_non_exhaustive()
    }
}

/// The test agent, with a security file in JSON and in YAML.
static ECHO: LazyLock<[Adapter; 2]> = LazyLock::new(|| {
    let json = TestPackage::echo();
    let yaml = json
        .clone()
        .set("index.json", "/agent/security_file", json!(".security.yml"));
    [json.load().unwrap(), yaml.load().unwrap()]
});

impl World {
    pub(super) fn of(adapter: Adapter, tag: &str) -> Self {
        Self {
            adapter,
            tag: tag.to_owned(),
            agent: json!({}),
            security: json!({}),
            channels: BTreeMap::new(),
            cookies: BTreeMap::new(),
            base_url: Some("http://10.88.0.1:8081".to_owned()),
            token: SecretString::from("alice:00ff"),
            chat: None,
            applied: None,
            config: None,
            security_file: None,
        }
    }

    /// The test agent of configuration version 1, 2 or 3, with a security file in JSON.
    pub(super) fn echo(config_version: u32) -> Self {
        let tag = ["1.0.0", "1.1.0", "2.0.0"][config_version as usize - 1];
        Self::of(ECHO[0].clone(), tag)
    }

    /// The same with a security file in YAML.
    pub(super) fn echo_with_yaml(config_version: u32) -> Self {
        Self {
            adapter: ECHO[1].clone(),
            ..Self::echo(config_version)
        }
    }

    pub(super) fn channel(mut self, name: &str, values: Value) -> Self {
        let values = values.as_object().unwrap().clone().into_iter().collect();
        self.channels.insert(name.to_owned(), values);
        self
    }

    pub(super) fn cookie(mut self, domain: &str, value: &str) -> Self {
        self.cookies.insert(domain.to_owned(), value.to_owned());
        self
    }

    pub(super) fn global(mut self, agent: Value, security: Value) -> Self {
        (self.agent, self.security) = (agent, security);
        self
    }

    /// The files as the user has them.
    pub(super) fn found(mut self, config: Value, security: Value) -> Self {
        self.config = Some(serde_json::to_vec(&config).unwrap());
        // JSON is YAML too.
        self.security_file = Some(serde_json::to_vec(&security).unwrap());
        self
    }

    pub(super) fn try_render(&self) -> Result<Rendered, RenderError> {
        self.adapter.render(&Inputs {
            image_tag: &self.tag,
            agent: &self.agent,
            security: &self.security,
            channels: &self.channels,
            cookies: &self.cookies,
            mcp: self.base_url.as_deref().map(|base_url| McpAccess {
                base_url,
                token: &self.token,
            }),
            chat: self.chat.as_ref(),
            applied: self.applied.as_ref(),
            found: self.files(),
        })
    }

    pub(super) fn files(&self) -> Found<'_> {
        Found {
            config: self.config.as_deref(),
            security: self.security_file.as_deref(),
        }
    }

    #[track_caller]
    pub(super) fn render(&self) -> Rendered {
        match self.try_render() {
            Ok(rendered) => rendered,
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) fn refusal(&self) -> RenderError {
        self.try_render().err().unwrap()
    }

    /// Renders and takes the files over, as the reconciler does.
    #[track_caller]
    pub(super) fn apply(&mut self) -> Rendered {
        let rendered = self.render();
        if rendered.config.changed {
            self.config = Some(rendered.config.bytes.clone());
        }
        if rendered.security.changed {
            self.security_file = Some(rendered.security.bytes.clone());
        }
        self.applied = Some(rendered.applied.clone());
        rendered
    }

    pub(super) fn config(&self) -> Value {
        serde_json::from_slice(self.config.as_ref().unwrap()).unwrap()
    }

    pub(super) fn secrets(&self) -> Value {
        serde_yaml::from_slice(self.security_file.as_ref().unwrap()).unwrap()
    }
}

/// The files as text, with what is said about them.
pub(super) fn report(rendered: &Rendered) -> String {
    let text = |file: &RenderedFile| String::from_utf8(file.bytes.clone()).unwrap();
    let managed = serde_json::to_string_pretty(&rendered.applied.managed).unwrap();
    format!(
        "agent {} config version {}\n--- config\n{}--- security\n{}--- managed\n{managed}\n--- skipped {:?}\n",
        rendered.agent_version,
        rendered.config_version,
        text(&rendered.config),
        text(&rendered.security),
        rendered.skipped,
    )
}
