//! The bucket behind the protocol: keys in order, objects in memory or made up as they are asked for.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
use s3s::dto::{
    BucketVersioningStatus, CommonPrefix, ETag, EncodingType, GetBucketVersioningInput,
    GetBucketVersioningOutput, GetObjectInput, GetObjectOutput, ListObjectsV2Input, ListObjectsV2Output,
    Object, ObjectStorageClass, StreamingBlob,
};
use s3s::{Body, S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use super::{BUCKET, Keys, Shared};

/// Keys of a page, at most, as AWS has it.
const PAGE_MAX: usize = 1_000;

/// One version of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    pub bytes: Bytes,
    pub tag: String,
    /// In storage that must be restored first.
    pub is_archived: bool,
}

/// Objects in memory.
#[derive(Default)]
pub struct Memory {
    objects: Mutex<(u64, BTreeMap<String, Stored>)>,
}

impl Memory {
    pub fn put(&self, key: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.store(key.into(), bytes.into(), false);
    }

    /// Puts an object into storage that must be restored first.
    pub fn put_archived(&self, key: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.store(key.into(), bytes.into(), true);
    }

    pub fn remove(&self, key: &str) {
        self.objects.lock().1.remove(key);
    }

    fn store(&self, key: String, bytes: Vec<u8>, is_archived: bool) {
        let mut objects = self.objects.lock();
        objects.0 += 1;
        let stored = Stored { bytes: bytes.into(), tag: format!("v{}", objects.0), is_archived };
        objects.1.insert(key, stored);
    }
}

impl Keys for Memory {
    fn first(&self, from: Bound<&str>) -> Option<String> {
        let objects = self.objects.lock();
        objects.1.range::<str, _>((from, Bound::Unbounded)).next().map(|(key, _)| key.clone())
    }

    fn get(&self, key: &str) -> Option<Stored> {
        self.objects.lock().1.get(key).cloned()
    }
}

/// As many keys as one likes, which take no room: the key of each number, in the order of the numbers.
pub struct Generated {
    pub count: u64,
    pub key: fn(u64) -> String,
}

impl Generated {
    /// The number of the first key that is not before a bound.
    fn index(&self, from: Bound<&str>) -> u64 {
        let is_before = |number: u64| match from {
            Bound::Included(bound) => (self.key)(number).as_str() < bound,
            Bound::Excluded(bound) => (self.key)(number).as_str() <= bound,
            Bound::Unbounded => false,
        };
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Keys for Generated {
    fn first(&self, from: Bound<&str>) -> Option<String> {
        let index = self.index(from);
        (index < self.count).then(|| (self.key)(index))
    }

    fn get(&self, key: &str) -> Option<Stored> {
        let found = self.first(Bound::Included(key)).is_some_and(|found| found == key);
        found.then(|| Stored { bytes: key.to_owned().into(), tag: "generated".into(), is_archived: false })
    }
}

/// What `s3s` asks.
pub(super) struct Bucket {
    pub keys: Arc<dyn Keys>,
    pub shared: Arc<Shared>,
}

#[async_trait::async_trait]
impl S3 for Bucket {
    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        check_bucket(&input.bucket)?;
        let max = input.max_keys.map_or(PAGE_MAX, |max| usize::try_from(max).unwrap_or(0)).min(PAGE_MAX);
        let prefix = input.prefix.clone().unwrap_or_default();
        let is_encoded = input.encoding_type.as_ref().is_some_and(|encoding| encoding.as_str() == "url");
        let shown = |text: &str| if is_encoded { form_encoded(text) } else { text.to_owned() };
        let after =
            input.continuation_token.clone().or(input.start_after.clone()).filter(|after| *after >= prefix);
        let is_inclusive = self.shared.manners.lock().is_inclusive && input.continuation_token.is_none();
        let mut next = match &after {
            Some(after) if is_inclusive => self.keys.first(Bound::Included(after)),
            Some(after) => self.keys.first(Bound::Excluded(after)),
            None => self.keys.first(Bound::Included(&prefix)),
        };
        let (mut objects, mut prefixes) = (Vec::new(), Vec::new());
        let mut last = None;
        while let Some(key) = next.take().filter(|key| key.starts_with(&prefix)) {
            if objects.len() + prefixes.len() == max {
                next = Some(key);
                break;
            }
            let folder = input.delimiter.as_ref().and_then(|delimiter| {
                let at = key[prefix.len()..].find(delimiter.as_str())?;
                Some(key[..prefix.len() + at + delimiter.len()].to_owned())
            });
            match folder {
                Some(folder) => {
                    prefixes.push(CommonPrefix { prefix: Some(shown(&folder)) });
                    // `0` comes right after the delimiter: all keys of the folder are before this.
                    let beyond = format!("{}0", &folder[..folder.len() - 1]);
                    next = self.keys.first(Bound::Included(&beyond));
                    last = Some(format!("{folder}\u{10ffff}"));
                }
                None => {
                    if let Some(stored) = self.keys.get(&key) {
                        objects.push(object(shown(&key), &stored));
                    }
                    next = self.keys.first(Bound::Excluded(&key));
                    last = Some(key);
                }
            }
        }
        let is_truncated = next.is_some_and(|key| key.starts_with(&prefix));
        let mut counts = self.shared.counts.lock();
        counts.pages += 1;
        counts.keys += (objects.len() + prefixes.len()) as u64;
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: input.prefix.as_deref().map(shown),
            key_count: i32::try_from(objects.len() + prefixes.len()).ok(),
            contents: Some(objects),
            common_prefixes: Some(prefixes),
            is_truncated: Some(is_truncated),
            next_continuation_token: last.filter(|_| is_truncated),
            encoding_type: is_encoded.then(|| EncodingType::from_static(EncodingType::URL)),
            ..ListObjectsV2Output::default()
        }))
    }

    async fn get_bucket_versioning(
        &self,
        request: S3Request<GetBucketVersioningInput>,
    ) -> S3Result<S3Response<GetBucketVersioningOutput>> {
        check_bucket(&request.input.bucket)?;
        let is_versioned = self.shared.manners.lock().is_versioned;
        let status = BucketVersioningStatus::from_static(BucketVersioningStatus::ENABLED);
        let status = is_versioned.then_some(status);
        Ok(S3Response::new(GetBucketVersioningOutput { status, ..GetBucketVersioningOutput::default() }))
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        check_bucket(&input.bucket)?;
        let stored = self.keys.get(&input.key).ok_or_else(|| s3_error!(NoSuchKey))?;
        if stored.is_archived {
            return Err(s3_error!(InvalidObjectState));
        }
        let wanted = input.if_match.as_ref().and_then(|condition| condition.as_etag());
        if wanted.is_some_and(|wanted| wanted.value() != stored.tag) {
            return Err(s3_error!(PreconditionFailed));
        }
        let size = stored.bytes.len() as u64;
        let range = match input.range {
            Some(range) => range.check(size).map_err(|_| beyond_end(size))?,
            None => 0..size,
        };
        let bytes = stored.bytes.slice(range.start as usize..range.end as usize);
        let mut counts = self.shared.counts.lock();
        counts.reads += 1;
        counts.bytes += bytes.len() as u64;
        Ok(S3Response::new(GetObjectOutput {
            content_length: i64::try_from(bytes.len()).ok(),
            content_range: input.range.map(|_| format!("bytes {}-{}/{size}", range.start, range.end - 1)),
            e_tag: Some(ETag::Strong(stored.tag)),
            body: Some(StreamingBlob::from(Body::from(bytes))),
            ..GetObjectOutput::default()
        }))
    }
}

fn object(key: String, stored: &Stored) -> Object {
    let class = if stored.is_archived { ObjectStorageClass::GLACIER } else { ObjectStorageClass::STANDARD };
    Object {
        key: Some(key),
        size: i64::try_from(stored.bytes.len()).ok(),
        e_tag: Some(ETag::Strong(stored.tag.clone())),
        last_modified: Some((SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)).into()),
        storage_class: Some(ObjectStorageClass::from_static(class)),
        ..Object::default()
    }
}

fn check_bucket(name: &str) -> S3Result<()> {
    if name == BUCKET { Ok(()) } else { Err(s3_error!(NoSuchBucket)) }
}

fn beyond_end(size: u64) -> S3Error {
    let mut error = S3Error::new(S3ErrorCode::InvalidRange);
    let mut headers = hyper::HeaderMap::new();
    if let Ok(value) = format!("bytes */{size}").parse() {
        headers.insert("content-range", value);
    }
    error.set_headers(headers);
    error
}

/// As AWS encodes keys in listings: like a form, so a space is a plus sign; slashes stay.
fn form_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' | b'/' => {
                out.push(byte.into())
            }
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
