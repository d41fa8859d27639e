//! Digests of manifests: from the header of an answer without a body, or from the manifest itself.

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use schema::image::ImageReference;
use sha2::{Digest, Sha256};

use super::Problem;
use super::real::{Asking, read};

/// Kinds of manifests, those of images for several platforms first: the digest is that of what an engine would ask for.
const KINDS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
/// Largest manifest, in bytes: the most that a registry has to take.
const MANIFEST_BYTES: usize = 4 * 1024 * 1024;

impl Asking<'_> {
    /// The digest of the manifest at the address of this question.
    pub(super) async fn digest(
        mut self,
        image: &ImageReference,
    ) -> Result<Option<String>, Problem> {
        let url = self.registry.clone();
        let asked = self.ask(image, Method::HEAD, &url, Some(KINDS)).await;
        let response = asked.map_err(|problem| name_image(image, problem))?;
        match response.status() {
            // Some registries, and caches in front of them, know no such method.
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {}
            StatusCode::OK => {
                if let Some(digest) = header_digest(response.headers()) {
                    return Ok(Some(digest));
                }
            }
            other => return read_refusal(image, other),
        }
        let asked = self.ask(image, Method::GET, &url, Some(KINDS)).await;
        let response = asked.map_err(|problem| name_image(image, problem))?;
        if response.status() != StatusCode::OK {
            return read_refusal(image, response.status());
        }
        let given = header_digest(response.headers());
        let manifest = read(response, MANIFEST_BYTES).await?;
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&manifest)));
        match given {
            Some(given) if given != digest => Err(Problem::Unreadable(
                "a manifest that does not have the digest it is said to have",
            )),
            _ => Ok(Some(digest)),
        }
    }
}

/// Meaning of another status than success.
fn read_refusal(image: &ImageReference, status: StatusCode) -> Result<Option<String>, Problem> {
    match status {
        StatusCode::NOT_FOUND => Ok(None),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(Problem::Refused(image.to_string()))
        }
        StatusCode::TOO_MANY_REQUESTS => Err(Problem::TooOften),
        other => Err(Problem::Status(other.as_u16())),
    }
}

/// Says of which image a registry, or its token service, refuses to speak.
fn name_image(image: &ImageReference, problem: Problem) -> Problem {
    match problem {
        Problem::Unauthorized => Problem::Refused(image.to_string()),
        other => other,
    }
}

/// The digest that a registry names, if it is one.
fn header_digest(headers: &HeaderMap) -> Option<String> {
    let digest = headers.get("docker-content-digest")?.to_str().ok()?;
    let hex = digest.strip_prefix("sha256:")?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (hex.len() == 64 && hex.bytes().all(is_hex)).then(|| digest.to_owned())
}
