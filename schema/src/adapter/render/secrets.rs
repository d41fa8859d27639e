//! Which texts of an agent's files are secrets, so that they can be kept out of what is shown.

use serde_json::Value;

use super::{Adapter, Found, RenderError};
use crate::config::secret_texts;

impl Adapter {
    /// The secrets in a user's files, whoever has set them: all of the security file, and of the configuration file what
    /// documents mask.
    ///
    /// # Errors
    /// [`RenderError::InvalidUserConfig`].
    pub fn secrets_in(&self, found: Found<'_>) -> Result<Vec<String>, RenderError> {
        let documents = self.read(found)?;
        let mut secrets = secret_texts(documents.config, &self.secret_paths);
        leaves(&documents.security, &mut secrets);
        // Agents show parameters of URLs as they read them, too.
        let read: Vec<String> = secrets.iter().flat_map(|text| decoded(text)).collect();
        secrets.extend(read);
        Ok(secrets)
    }
}

/// What a text that is encoded for a URL stands for.
fn decoded(text: &str) -> impl Iterator<Item = String> {
    let pairs = url::form_urlencoded::parse(text.as_bytes());
    let texts = pairs.flat_map(|(name, value)| [name.into_owned(), value.into_owned()]);
    texts.filter(move |read| text.contains('%') && !read.is_empty())
}

fn leaves(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => texts.push(number.to_string()),
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, texts)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, texts)),
    }
}
