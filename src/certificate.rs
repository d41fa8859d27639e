//! The end of certificates, as their files say.

use std::path::Path;

use schema::ids::Timestamp;
use x509_parser::pem::Pem;

/// Longest text in which certificates are read; no chain is longer.
const LONGEST: usize = 1 << 20;

/// Returns the end of the first certificate of a file.
///
/// # Errors
/// The reason for which it cannot be read.
pub fn file_end(file: &Path) -> Result<Timestamp, String> {
    let found = std::fs::metadata(file).map_err(|error| error.to_string())?;
    if found.len() > LONGEST as u64 {
        return Err("too large for a certificate".to_owned());
    }
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    let pem = Pem::iter_from_buffer(&text).next();
    let pem = pem.ok_or("contains no certificate")?;
    end(&pem.map_err(|error| error.to_string())?)
}

/// Returns the end of the certificate that ends first of those in a text; `None` when there is none that can be read.
pub fn first_end(text: &str) -> Option<Timestamp> {
    let text = text.get(..LONGEST).unwrap_or(text);
    let found = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok);
    found.filter_map(|pem| end(&pem).ok()).min()
}

fn end(pem: &Pem) -> Result<Timestamp, String> {
    let certificate = pem.parse_x509().map_err(|error| error.to_string())?;
    let end = certificate.validity().not_after.timestamp();
    Ok(Timestamp::from_secs(end))
}
