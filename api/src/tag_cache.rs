//! Tags that registries have listed lately: a page of the console asks more often than they change.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use schema::image;

use crate::limits::TAGS;
use crate::ports::RegistryError;

/// How long an answer is good enough.
const FRESH: Duration = Duration::from_secs(300);

/// The cache. Clones share it.
#[derive(Debug, Clone)]
pub struct TagCache(Cache<String, Arc<Vec<String>>>);

impl Default for TagCache {
    fn default() -> Self {
        let cache = TAGS.async_cache().time_to_live(FRESH);
        Self(cache.build())
    }
}

impl TagCache {
    /// What is known under `key`, or what `ask` returns, newest version first. Several who want to know at once ask once;
    /// a failure is not remembered. With `refresh` what is known does not count.
    pub(crate) async fn get(
        &self,
        key: &str,
        refresh: bool,
        ask: impl Future<Output = Result<Vec<String>, RegistryError>>,
    ) -> Result<Arc<Vec<String>>, RegistryError> {
        if refresh {
            self.0.invalidate(key).await;
        }
        // Once, not for each who wants to know.
        let ask = async {
            let mut tags = ask.await?;
            image::sort_newest_first(&mut tags);
            Ok::<_, RegistryError>(Arc::new(tags))
        };
        let known = self.0.try_get_with_by_ref(key, ask).await;
        known.map_err(|error| (*error).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tags(tag: &str) -> Result<Vec<String>, RegistryError> {
        Ok(vec![tag.to_owned()])
    }

    #[tokio::test]
    async fn an_answer_is_remembered_until_somebody_wants_it_fresh() {
        let cache = TagCache::default();
        let get = async |refresh, tag| cache.get("r", refresh, tags(tag)).await.unwrap();
        assert_eq!(*get(false, "1").await, ["1"]);
        assert_eq!(*get(false, "2").await, ["1"]);
        assert_eq!(*get(true, "3").await, ["3"]);
        assert_eq!(*get(false, "4").await, ["3"]);
        let unsorted = ["a", "1.9", "1.10"].map(str::to_owned).to_vec();
        let unsorted = std::future::ready(Ok(unsorted));
        let sorted = cache.get("s", false, unsorted).await.unwrap();
        assert_eq!(*sorted, ["1.10", "1.9", "a"]);
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let cache = TagCache::default();
        let failure = RegistryError("gone".to_owned());
        let failing = std::future::ready(Err(failure.clone()));
        assert_eq!(cache.get("r", false, failing).await, Err(failure));
        assert!(cache.get("r", false, tags("1")).await.is_ok());
    }
}
