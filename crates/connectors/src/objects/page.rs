//! One page of a listing, read from the XML that stores answer with. S3 and GCS speak one dialect, Azure another;
//! no element means two things, so one reader knows both.
//!
//! Keys are bytes from here on. They are asked for in URL encoding, because XML cannot carry every character a key
//! may have; a store that does not know that option says so by leaving it out of its answer.

use chrono::DateTime;
use domesday_model::VersionMarks;
use percent_encoding::percent_decode;
use quick_xml::Reader;
use quick_xml::events::Event;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Page {
    pub objects: Vec<Object>,
    /// What keys that have the delimiter begin with, up to it and with it.
    pub prefixes: Vec<Vec<u8>>,
    pub is_truncated: bool,
    /// Where the store itself says the next page begins.
    pub next: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Object {
    pub key: Vec<u8>,
    pub size: u64,
    pub marks: VersionMarks,
    /// In storage that must be restored before it can be read, and not restored.
    pub is_archived: bool,
}

/// The form in which an entity tag is hashed: stores quote it here and not there.
pub(super) fn tag_marks(tag: &str) -> VersionMarks {
    VersionMarks::tagged(tag.trim_start_matches("W/").trim_matches('"').as_bytes())
}

/// Whether an answer says that versions are kept, or shows one that is not current.
pub(super) fn has_older_versions(xml: &str) -> bool {
    let is_versioned =
        ["Enabled", "Suspended"].iter().any(|status| xml.contains(&format!("<Status>{status}<")));
    let blobs = || xml.split("<Blob>").skip(1);
    // Of an account without versions a blob has none of these elements.
    let is_old = |blob: &str| {
        blob.contains("<Snapshot>")
            || blob.contains("<VersionId>") && !blob.contains("<IsCurrentVersion>true<")
    };
    xml.contains("<VersioningConfiguration") && is_versioned || blobs().any(is_old)
}

/// What is being read of an entry.
#[derive(Default)]
struct Draft {
    name: String,
    is_encoded: bool,
    size: u64,
    tag: String,
    modified: String,
    class: String,
    is_restored: bool,
    is_folder: bool,
}

pub(super) fn parse(xml: &[u8]) -> Result<Page, String> {
    let mut reader = Reader::from_reader(xml);
    let (mut page, mut drafts, mut prefixes) = (Page::default(), Vec::new(), Vec::new());
    let (mut draft, mut text, mut path) = (Draft::default(), String::new(), Vec::<String>::new());
    let mut is_encoded = false;
    let problem = |error: &dyn std::fmt::Display| format!("the listing is no XML: {error}");
    loop {
        match reader.read_event().map_err(|error| problem(&error))? {
            Event::Start(start) => {
                let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                match name.as_str() {
                    "Contents" | "Blob" | "CommonPrefixes" | "BlobPrefix" => draft = Draft::default(),
                    // Azure marks each name that XML cannot carry.
                    "Name" => {
                        let encoded = start.try_get_attribute("Encoded").ok().flatten();
                        draft.is_encoded = encoded.is_some_and(|value| value.value.as_ref() == b"true");
                    }
                    _ => {}
                }
                path.push(name);
                text.clear();
            }
            Event::Text(part) => text.push_str(&part.decode().map_err(|error| problem(&error))?),
            Event::CData(part) => text.push_str(&part.decode().map_err(|error| problem(&error))?),
            Event::GeneralRef(entity) => {
                let resolved = entity.resolve_char_ref().map_err(|error| problem(&error))?;
                match (resolved, entity.decode().map_err(|error| problem(&error))?.as_ref()) {
                    (Some(c), _) => text.push(c),
                    (None, "lt") => text.push('<'),
                    (None, "gt") => text.push('>'),
                    (None, "amp") => text.push('&'),
                    (None, "quot") => text.push('"'),
                    (None, "apos") => text.push('\''),
                    (None, other) => return Err(format!("the listing has an unknown entity `{other}`")),
                }
            }
            Event::End(_) => {
                let name = path.pop().unwrap_or_default();
                let within = path.last().map_or("", String::as_str);
                match (within, name.as_str()) {
                    ("Contents", "Key") | ("Blob" | "BlobPrefix", "Name") | ("CommonPrefixes", "Prefix") => {
                        draft.name = std::mem::take(&mut text);
                    }
                    (_, "Size" | "Content-Length") => {
                        draft.size = text.trim().parse().map_err(|_| format!("`{text}` is no size"))?;
                    }
                    (_, "ETag" | "Etag") => draft.tag = std::mem::take(&mut text),
                    (_, "LastModified" | "Last-Modified") => draft.modified = std::mem::take(&mut text),
                    (_, "StorageClass" | "AccessTier") => draft.class = std::mem::take(&mut text),
                    (_, "RestoreExpiryDate") => draft.is_restored = true,
                    (_, "ResourceType") => draft.is_folder = text == "directory",
                    (_, "IsTruncated") => page.is_truncated = text.trim() == "true",
                    (_, "EncodingType") => is_encoded = text.trim() == "url",
                    (_, "NextContinuationToken" | "NextMarker") if !text.is_empty() => {
                        page.next = Some(std::mem::take(&mut text));
                    }
                    (_, "Contents" | "Blob") => drafts.push(std::mem::take(&mut draft)),
                    (_, "CommonPrefixes" | "BlobPrefix") => prefixes.push(std::mem::take(&mut draft)),
                    _ => {}
                }
                text.clear();
            }
            Event::Eof if path.is_empty() => break,
            Event::Eof => return Err("the listing broke off".into()),
            _ => {}
        }
    }
    page.is_truncated |= page.next.is_some();
    // Folders of a hierarchical Azure account are listed beside blobs, and have no content.
    let objects = drafts.into_iter().filter(|draft| !draft.is_folder);
    page.objects = objects.map(|draft| draft.object(is_encoded)).collect();
    page.prefixes = prefixes.into_iter().map(|draft| draft.key(is_encoded)).collect();
    Ok(page)
}

impl Draft {
    /// The key's bytes. S3 stores encode as forms do: a plus sign that stands alone is a space.
    fn key(&self, is_form_encoded: bool) -> Vec<u8> {
        if is_form_encoded {
            return percent_decode(self.name.replace('+', " ").as_bytes()).collect();
        }
        if self.is_encoded {
            return percent_decode(self.name.as_bytes()).collect();
        }
        self.name.clone().into_bytes()
    }

    fn object(self, is_form_encoded: bool) -> Object {
        let modified = DateTime::parse_from_rfc3339(&self.modified)
            .or_else(|_| DateTime::parse_from_rfc2822(&self.modified))
            .ok()
            .and_then(|time| time.timestamp_nanos_opt());
        let tag = if self.tag.is_empty() { VersionMarks::default() } else { tag_marks(&self.tag) };
        Object {
            key: self.key(is_form_encoded),
            size: self.size,
            marks: VersionMarks { mtime_ns: modified.unwrap_or_default(), ..tag },
            is_archived: !self.is_restored
                && matches!(self.class.as_str(), "GLACIER" | "DEEP_ARCHIVE" | "Archive"),
        }
    }
}
