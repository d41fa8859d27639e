//! The console: its pages and their files, apart from the operations of the API.

mod assets;
mod language;
mod pages;
mod place;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use schema::user::Role;

use self::pages::Pages;
pub(crate) use self::place::Place;
use crate::error::{ApiError, Result};
use crate::reply::Response;

/// Methods of all addresses of the console.
pub(crate) const ALLOW: &str = "GET, HEAD, OPTIONS";

/// The built files of the console.
pub trait ConsoleFiles: Send + Sync + 'static {
    /// A file by its path in the folder of the build, such as `assets/app-1a2b3c4d.js`; `None` when there is none.
    fn file(&self, path: &str) -> Option<Bytes>;
}

/// The console, ready to be served.
pub struct Console {
    files: Arc<dyn ConsoleFiles>,
    pages: Pages,
}

/// A file that a build of the console has to have.
#[derive(Debug, thiserror::Error)]
#[error("the console was built without {0}")]
pub struct Incomplete(&'static str);

/// The account that asks for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Viewer {
    /// No session.
    Guest,
    /// A session with this role.
    Account(Role),
    /// The session could not be looked up; the page itself holds no secret.
    Unknown,
}

/// A request for a place of the console.
pub(crate) struct Asked<'a> {
    /// GET or HEAD; others are refused.
    pub(crate) method: &'a Method,
    /// Path without the prefix.
    pub(crate) path: &'a str,
    /// Query without its question mark.
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    /// Part of the browser's path before `path`, without a slash at its end.
    pub(crate) prefix: &'a str,
}

impl Console {
    /// Takes the pages out of the files.
    ///
    /// # Errors
    /// [`Incomplete`] when a page is missing.
    pub fn new(files: Arc<dyn ConsoleFiles>) -> Result<Self, Incomplete> {
        let pages = Pages::new(files.as_ref())?;
        Ok(Self { files, pages })
    }

    /// Answers a request. `viewer` is asked only for pages that depend on it.
    ///
    /// # Errors
    /// 404 for a file that does not exist, 405 for other methods than GET and HEAD.
    pub(crate) async fn answer(
        &self,
        place: Place<'_>,
        asked: &Asked<'_>,
        viewer: impl Future<Output = Viewer>,
    ) -> Result<Response> {
        if *asked.method == Method::OPTIONS {
            return assets::options();
        }
        if !asked.method.is_safe() {
            return Err(ApiError::MethodNotAllowed { allow: ALLOW });
        }
        match place {
            Place::Start => redirect(asked.prefix, "/login"),
            Place::AdminStart => redirect(asked.prefix, place::DASHBOARD),
            Place::Asset(name) => assets::answer(self.files.as_ref(), name, asked.headers),
            Place::SignIn => match viewer.await {
                Viewer::Account(role) => {
                    redirect(asked.prefix, &place::after_sign_in(asked.query, role))
                }
                Viewer::Guest | Viewer::Unknown => self.page(pages::Page::SignIn, asked),
            },
            Place::Inside(area) => match area.leads_to(viewer.await) {
                None => self.page(pages::Page::Shell, asked),
                Some(place::Elsewhere::Page(path)) => redirect(asked.prefix, path),
                Some(place::Elsewhere::SignIn) => {
                    let next = place::sign_in_and_return(asked.path, asked.query);
                    redirect(asked.prefix, &next)
                }
            },
        }
    }

    fn page(&self, page: pages::Page, asked: &Asked<'_>) -> Result<Response> {
        let mut languages = asked.headers.get_all(ACCEPT_LANGUAGE).iter();
        let language = languages.find_map(|value| language::preferred(value.to_str().ok()?));
        self.pages.answer(
            page,
            asked.prefix,
            language.unwrap_or_default(),
            asked.headers,
        )
    }

    /// Addresses of the files that give failures of a sign-in their looks.
    pub(crate) fn styles(&self) -> &[String] {
        self.pages.styles()
    }
}

/// Finds the place of the console that a path names; `None` for all other paths.
pub(crate) fn place_of(path: &str) -> Option<Place<'_>> {
    Place::find(path)
}

fn redirect(prefix: &str, path: &str) -> Result<Response> {
    let to = HeaderValue::try_from(format!("{prefix}{path}")).map_err(ApiError::internal)?;
    let mut response = Response::default();
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    headers.insert(LOCATION, to);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(VARY, HeaderValue::from_static("Cookie"));
    Ok(response)
}

#[cfg(test)]
mod tests;
