//! Serves the API document, with and without descriptions of its types, as it is and compressed.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, VARY};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OnceCell;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::{document, shorten};
use crate::accept_encoding::accepts_encoding;
use crate::answer::Resource;
use crate::deps::Deps;
use crate::dispatch::Anyone;
use crate::error::{ApiError, Cause, Result};
use crate::input::Input;
use crate::long_work::run_blocking;
use crate::route::{Area, Route};

/// The routes of this file.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("api_document", "/api/openapi.json", serve)
            .title(Area::Service, "Get this document")
            .about("OpenAPI 3.1 of every route. It is compressed for clients that accept gzip."),
    ]
}

/// Parameters of the document.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = DocumentParams)]
pub struct Params {
    /// Include descriptions and examples of fields; without them the document is short.
    descriptions: Option<bool>,
}

/// One text, as it is and compressed.
struct Compressed {
    plain: Bytes,
    gzip: Bytes,
}

impl Compressed {
    fn new(document: &Value) -> Result<Self, Cause> {
        let plain = document.to_string();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(plain.as_bytes())?;
        Ok(Self {
            plain: plain.into(),
            gzip: gzip.finish()?.into(),
        })
    }
}

/// The document in its two lengths.
struct Documents {
    short: Compressed,
    full: Compressed,
}

impl Documents {
    fn new() -> Result<Self, Cause> {
        let mut document = document(&crate::routes::all())?;
        let full = Compressed::new(&document)?;
        shorten(&mut document);
        Ok(Self {
            short: Compressed::new(&document)?,
            full,
        })
    }
}

/// Made once: the routes stay the same for as long as the process runs.
static DOCUMENTS: OnceCell<Documents> = OnceCell::const_new();

async fn serve(_: Anyone, input: Input<Params>, _: Deps) -> Result<Resource<ApiDocument>> {
    let documents = DOCUMENTS.get_or_try_init(async || {
        let made = run_blocking(Documents::new).await;
        let made = made.ok_or_else(|| ApiError::internal("the API document was not completed"))?;
        made.map_err(ApiError::internal)
    });
    let documents = documents.await?;
    let document = match input.params.descriptions {
        Some(true) => &documents.full,
        Some(false) | None => &documents.short,
    };
    let by_encoding = HeaderValue::from_static("Accept-Encoding");
    if accepts_encoding(&input.meta.headers, "gzip") {
        let gzip = HeaderValue::from_static("gzip");
        return Ok(Resource::ready_made(document.gzip.clone())
            .header(CONTENT_ENCODING, gzip)
            .header(VARY, by_encoding));
    }
    Ok(Resource::ready_made(document.plain.clone()).header(VARY, by_encoding))
}

/// An OpenAPI document.
pub struct ApiDocument;

impl ToSchema for ApiDocument {}

impl PartialSchema for ApiDocument {
    fn schema() -> RefOr<Schema> {
        let part = |of| ObjectBuilder::new().schema_type(of);
        ObjectBuilder::new()
            .property("openapi", part(Type::String).examples(["3.1.0"]))
            .property("info", part(Type::Object))
            .property("paths", part(Type::Object))
            .required("openapi")
            .required("info")
            .required("paths")
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use http::Response;
    use http::header::ACCEPT_ENCODING;

    use super::*;

    async fn get(path: &str, encodings: Option<&str>) -> Response<Bytes> {
        let world = crate::testing::world().await;
        let routes = crate::routes::all();
        let api = crate::dispatch::Api::new(routes, world.deps.clone()).unwrap();
        let mut request = warp::test::request().path(path);
        if let Some(encodings) = encodings {
            request = request.header(ACCEPT_ENCODING, encodings);
        }
        request.reply(&api.filter()).await
    }

    #[tokio::test]
    async fn document_is_short_and_compressed_on_request() {
        let plain = get("/api/v1/openapi.json", None).await;
        assert_eq!(plain.status(), 200);
        assert_eq!(plain.headers()["content-type"], "application/json");
        assert_eq!(plain.headers()["vary"], "Accept-Encoding");
        super::super::conformance::check_response("GET", &plain);
        let size = plain.body().len();
        assert!(size <= 284_000, "{size} bytes; shorten.rs makes it short");
        let small = get("/api/openapi.json", Some("br, gzip;q=0.5")).await;
        assert_eq!(small.headers()["content-encoding"], "gzip");
        let mut text = Vec::new();
        GzDecoder::new(&small.body()[..])
            .read_to_end(&mut text)
            .unwrap();
        assert_eq!(text, plain.body()[..]);
        let full = get("/api/openapi.json?descriptions=true", None).await;
        let full: Value = serde_json::from_slice(full.body()).unwrap();
        assert_eq!(full, document(&crate::routes::all()).unwrap());
    }
}
