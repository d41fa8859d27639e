//! Variants of the adapter `echo`.

use std::io::{Cursor, Write};

use schema::adapter::Adapter;
use serde_json::Value;
use sha2::{Digest, Sha256};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The package `echo` with another index, as a zip.
pub fn zip(edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut files = Adapter::builtin("echo").unwrap().unwrap().files().clone();
    files.remove("hash");
    let mut index: Value = serde_json::from_str(&files["index.json"]).unwrap();
    edit(&mut index);
    files.insert("index.json".to_owned(), index.to_string());
    let line = |(path, text): (&String, &String)| {
        format!("{}  {path}\n", hex::encode(Sha256::digest(text)))
    };
    let list = files.iter().map(line).collect();
    files.insert("hash".to_owned(), list);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in files {
        zip.start_file(path, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The same, read.
pub fn echo(edit: impl FnOnce(&mut Value)) -> Adapter {
    Adapter::from_zip(&zip(edit)).unwrap()
}
