//! GCS and Azure: their documented listing and reading protocols, replayed.

use std::io::Write;

use domesday_testkit::http::{Request, Response, Server};

use super::replay::{error, path, query, range_of};
use super::*;

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn surroundings(secret: &NamedTempFile) -> Surroundings {
    Surroundings::default().with_typed(format!("file:{}", secret.path().display()).parse().unwrap())
}

/// Azure's List Blobs and Get Blob over some names: pages by marker, and now and then one with nothing on it.
fn azure(names: Vec<String>) -> Server {
    Server::start(move |asked| {
        if !asked.header("authorization").is_some_and(|value| value.starts_with("SharedKey acme:")) {
            return error(403, "AuthenticationFailed");
        }
        if query(asked, "comp") == "list" { azure_page(asked, &names) } else { azure_blob(asked, &names) }
    })
}

fn azure_page(asked: &Request, names: &[String]) -> Response {
    assert_eq!((path(asked), query(asked, "restype")), ("/shop".into(), "container".into()));
    assert!(asked.header("x-ms-version").unwrap() >= "2021-02-12");
    let max: usize = query(asked, "maxresults").parse().unwrap();
    let (prefix, marker) = (query(asked, "prefix"), query(asked, "marker"));
    let mut from: usize = marker.trim_end_matches('!').parse().unwrap_or(0);
    let name = |name: &str| match name.chars().any(|c| c.is_control()) {
        true => format!(
            "<Name Encoded=\"true\">{}</Name>",
            percent_encoding::percent_encode(name.as_bytes(), percent_encoding::NON_ALPHANUMERIC)
        ),
        false => format!("<Name>{}</Name>", escape(name)),
    };
    let (mut xml, mut given, mut next) = (String::new(), 0, String::new());
    if from % 5 == 4 && !marker.ends_with('!') {
        next = format!("{from}!");
        from = names.len();
    }
    while from < names.len() {
        let blob = &names[from];
        let Some(below) = blob.strip_prefix(&prefix) else {
            from += 1;
            continue;
        };
        if given == max {
            next = from.to_string();
            break;
        }
        given += 1;
        match below.find('/').filter(|_| query(asked, "delimiter") == "/") {
            Some(at) => {
                let folder = format!("{prefix}{}", &below[..=at]);
                xml.push_str(&format!("<BlobPrefix>{}</BlobPrefix>", name(&folder)));
                while from < names.len() && names[from].starts_with(&folder) {
                    from += 1;
                }
            }
            None => {
                let tier = if blob == "frozen" { "Archive" } else { "Hot" };
                let size = format!("text of {blob}").len();
                xml.push_str(&format!(
                    "<Blob>{}<Properties><Last-Modified>Mon, 27 Jan 2014 23:02:29 GMT</Last-Modified><Etag>0x{from:X}\
                     </Etag><Content-Length>{size}</Content-Length><AccessTier>{tier}</AccessTier></Properties></Blob>",
                    name(blob)
                ));
                from += 1;
            }
        }
    }
    let xml = format!(
        "<?xml version=\"1.0\"?><EnumerationResults><Blobs>{xml}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>"
    );
    Response::ok(xml)
}

fn azure_blob(asked: &Request, names: &[String]) -> Response {
    let path = path(asked);
    let name = path.strip_prefix("/shop/").unwrap();
    match names.iter().position(|known| known == name) {
        None => error(404, "BlobNotFound"),
        Some(_) if name == "frozen" => error(409, "BlobArchived"),
        Some(at) => range_of(asked, format!("text of {name}").as_bytes(), &format!("\"0x{at:X}\"")),
    }
}

#[tokio::test]
async fn azure_is_listed_by_markers_and_read() {
    let mut names: Vec<String> =
        ODD_KEYS.iter().copied().chain(["frozen", " lead and trail "]).map(str::to_owned).collect();
    names.extend((0..1_200).map(|n| format!("many/{}/{n:04}", n / 400)));
    names.sort();
    let server = azure(names.clone());
    let endpoint = server.url("");
    let secret = file("ZmFrZSBrZXkgb2YgdGhlIHRlc3Q=");
    let configuration =
        json!({ "container": "shop", "account": "acme", "endpoint": endpoint, "allow_http": true });
    let connect = || ObjectsFactory(Kind::Azure).create(&configuration, &surroundings(&secret)).unwrap();
    for batch in [BATCH, 100, 64] {
        let walk = walk(connect, batch).await;
        assert_eq!(walk.keys(), names, "pages of {batch}");
        assert!(walk.containers > 1);
        assert_eq!(walk.skipped("frozen"), Some(Reason::Archived));
    }
    let connector = connect();
    let listed = walk(connect, BATCH).await;
    let a = &listed.records[&ObjectKey::new("a")];
    assert_eq!((a.size, a.marks.mtime_ns), (9, 1_390_863_749_000_000_000));
    for name in ODD_KEYS.iter().chain(&[" lead and trail ", "many/0/0007"]) {
        let text = read(connector.as_ref(), name).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(text, Ok(format!("text of {name}")), "{name:?}");
    }
    assert_eq!(read(connector.as_ref(), "frozen"), Err(Reason::Archived));
    assert_eq!(read(connector.as_ref(), "gone"), Err(Reason::Vanished));
    // What is listed is what is read: the tags agree, with quotes and without.
    let listed: Arc<[ListedObject]> = Arc::new([ListedObject::in_container(&ObjectKey::default(), a)]);
    assert!(connector.read_ahead(&listed).unwrap().open(0).is_ok());
    let nobody = json!({ "container": "shop", "account": "acme", "endpoint": endpoint, "allow_http": true,
                         "authentication": "unauthenticated" });
    let nobody = ObjectsFactory(Kind::Azure).create(&nobody, &Surroundings::default()).unwrap();
    assert_eq!(nobody.test().await.unwrap_err().reason(), Reason::PermissionDenied);
}

/// GCS's XML protocol: S3's listing, other credentials, and objects as they are stored.
#[tokio::test]
async fn gcs_is_listed_after_keys_and_read_as_stored() {
    let keys: Vec<String> = (0..25).map(|n| format!("k {n:02}")).collect();
    let server = Server::start(move |asked| {
        if !asked.header("authorization").is_some_and(|value| value.starts_with("Bearer")) {
            return error(401, "AuthenticationRequired");
        }
        if let Some(key) = path(asked).strip_prefix("/shop/") {
            assert_eq!(asked.header("accept-encoding"), Some("gzip"));
            return range_of(asked, key.as_bytes(), "\"tag\"");
        }
        if asked.target.ends_with("?versioning") {
            return Response::ok(
                "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>",
            );
        }
        assert_eq!((query(asked, "list-type"), query(asked, "encoding-type")), ("2".into(), "url".into()));
        let max: usize = query(asked, "max-keys").parse().unwrap();
        let (after, prefix) = (query(asked, "start-after"), query(asked, "prefix"));
        let left: Vec<&String> =
            keys.iter().filter(|key| **key > after && key.starts_with(&prefix)).collect();
        let content = |key: &&String| {
            let key = key.replace(' ', "%20");
            format!(
                "<Contents><Key>{key}</Key><LastModified>2024-05-06T07:08:09.123Z</LastModified><ETag>\"tag\"</ETag>\
                 <Size>4</Size></Contents>"
            )
        };
        let contents: String = left.iter().take(max).map(content).collect();
        Response::ok(format!(
            "<ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'><Name>shop</Name>\
             <EncodingType>url</EncodingType><IsTruncated>{}</IsTruncated>{contents}</ListBucketResult>",
            left.len() > max
        ))
    });
    let secret = file(
        &json!({ "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": "" })
            .to_string(),
    );
    let configuration = json!({ "bucket": "shop", "endpoint": server.url(""), "allow_http": true });
    let connect = || ObjectsFactory(Kind::Gcs).create(&configuration, &surroundings(&secret)).unwrap();
    let walk = walk(connect, 10).await;
    assert_eq!((walk.records.len(), walk.pages), (26, 3), "with what stands for older versions");
    assert_eq!(walk.records[&ObjectKey::new("k 07")].marks.mtime_ns, 1_714_979_289_123_000_000);
    assert_eq!(read(connect().as_ref(), "k 07").unwrap(), b"k 07");
}

#[test]
fn older_versions_are_seen_in_what_each_store_says() {
    let blob = |inside: &str| {
        format!("<EnumerationResults><Blobs><Blob>{inside}</Blob></Blobs></EnumerationResults>")
    };
    let versioning =
        |inside: &str| format!("<VersioningConfiguration xmlns='x'>{inside}</VersioningConfiguration>");
    for (xml, expected) in [
        (versioning(""), false),
        (versioning("<Status>Enabled</Status>"), true),
        (versioning("<Status>Suspended</Status>"), true),
        (blob("<Name>a</Name>"), false),
        (blob("<Name>a</Name><Snapshot>2024-05-06T07:08:09.1234567Z</Snapshot>"), true),
        (blob("<Name>a</Name><VersionId>1</VersionId><IsCurrentVersion>true</IsCurrentVersion>"), false),
        (blob("<Name>a</Name><VersionId>1</VersionId>"), true),
        ("<ListBucketResult><Key><Status>Enabled</Status></Key></ListBucketResult>".to_owned(), false),
    ] {
        assert_eq!(page::has_older_versions(&xml), expected, "{xml}");
    }
}
