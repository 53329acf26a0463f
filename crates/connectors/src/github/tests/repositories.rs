//! Repositories as git sources: cloned, listed, opened, and those that cannot be.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use async_trait::async_trait;

use super::*;

pub(super) fn git(folder: &Path, arguments: &[&str]) -> String {
    String::from_utf8(git_bytes(folder, arguments)).unwrap().trim_end().to_owned()
}

pub(super) fn git_bytes(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.com"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

impl Fake {
    /// Serves a repository with these files, one commit each.
    pub(super) fn serve(&self, name: &str, files: &[(&str, &str)]) {
        let work = self.folder.path().join("work").join(name);
        fs::create_dir_all(&work).unwrap();
        git(&work, &["init", "-q", "-b", "main"]);
        for (path, content) in files {
            fs::write(work.join(path), content).unwrap();
            git(&work, &["add", "-A"]);
            git(&work, &["commit", "-q", "-m", &format!("adds {path}")]);
        }
        let bare = self.folder.path().join("served").join(format!("{name}.git"));
        fs::create_dir_all(bare.parent().unwrap()).unwrap();
        git(&work, &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
        git(&bare, &["update-server-info"]);
        self.add(name, json!({}));
    }
}

/// The contents of a container's objects, by key.
async fn contents(connector: &dyn Connector, container: &str) -> BTreeMap<String, String> {
    let (records, targets) = list(connector, container, 3).await.unwrap();
    assert!(targets.is_empty());
    let mut contents = BTreeMap::new();
    for record in records.iter().filter(|record| record.kind == RecordKind::File) {
        let key = ObjectKey::new(container).join(&record.name);
        let mut text = String::new();
        open(connector, &key).unwrap().reader.read_to_string(&mut text).unwrap();
        contents.insert(key.to_string(), text);
    }
    contents
}

#[tokio::test]
async fn each_repository_is_a_git_source() {
    let fake = Fake::new();
    fake.serve("acme/one", &[("a", "content a\n"), ("b", "content b\n")]);
    fake.serve("acme/two", &[("a", "content a\n"), ("c", "content c\n")]);
    let connector =
        fake.connector(json!({ "organisation": "acme", "paths": ["a", "c"], "max_file_size": 1_000 }));
    let (records, _) = list(connector.as_ref(), "", 10).await.unwrap();
    assert_eq!(names(&records), ["acme/one", "acme/two"]);
    let key = ObjectKey::new("acme/one");
    assert_eq!(connector.resume_policy(&key), ResumePolicy::ExcludeListed);
    let one = contents(connector.as_ref(), "acme/one").await;
    let two = contents(connector.as_ref(), "acme/two").await;
    let files = |contents: &BTreeMap<String, String>| {
        let mut files: Vec<String> =
            contents.values().filter(|text| text.starts_with("content")).cloned().collect();
        files.sort();
        files.concat()
    };
    assert_eq!(files(&one), "content a\n");
    assert_eq!(files(&two), "content a\ncontent c\n");
    assert_eq!((one.len(), two.len()), (3, 4), "with two commits each");
    let blob = git(&fake.folder.path().join("work/acme/one"), &["rev-parse", "HEAD:a"]);
    assert!(one.contains_key(&format!("acme/one/{blob}")) && two.contains_key(&format!("acme/two/{blob}")));
    // Another process opens by key alone.
    let other = fake.connector(json!({ "organisation": "acme" }));
    let mut text = String::new();
    let key = ObjectKey::new(format!("acme/one/{blob}"));
    open(other.as_ref(), &key).unwrap().reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "content a\n");
    assert!(fake.asked("/api/v3/repos/acme/one").is_empty(), "what can be cloned is not asked about");
    for wrong in ["acme", "", "acme/one/nothing"] {
        assert!(open(other.as_ref(), &ObjectKey::new(wrong)).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn blobs_are_judged_by_their_paths_in_the_repository() {
    let fake = Fake::new();
    fake.serve("acme/one", &[("main.c", "int main;\n"), ("letter.txt", "dear\n")]);
    let connector = fake.connector(json!({ "organisation": "acme" }));
    let container = ObjectKey::new("acme/one");
    let (records, _) = list(connector.as_ref(), "acme/one", 10).await.unwrap();
    let objects: Vec<_> =
        records.iter().map(|record| ListedObject::in_container(&container, record)).collect();
    let work = fake.folder.path().join("work/acme/one");
    for (path, is_code) in [("main.c", true), ("letter.txt", false)] {
        let key = ObjectKey::new(format!("acme/one/{}", git(&work, &["rev-parse", &format!("HEAD:{path}")])));
        let object = objects.iter().find(|object| object.key == key).unwrap();
        assert_eq!(connector.path_kind(object).code, is_code, "{path}");
    }
}

#[tokio::test]
async fn one_token_lists_clones_and_traces() {
    let fake = Fake::new();
    fake.serve("acme/one", &[("a", "content a\n"), ("b", "content b\n")]);
    let surroundings = fake.with_token("tok-1");
    let connector = fake.connector_in(json!({ "organisation": "acme" }), &surroundings);
    assert_eq!(list(connector.as_ref(), "", 10).await.unwrap().0.len(), 1);
    assert_eq!(contents(connector.as_ref(), "acme/one").await.len(), 4);
    let work = fake.folder.path().join("work/acme/one");
    let key = ObjectKey::new(format!("acme/one/{}", git(&work, &["rev-parse", "HEAD:b"])));
    let origins = connector.origins(std::slice::from_ref(&key), &Moved::default()).await.unwrap();
    let [(of, origin)] = &origins[..] else { panic!("{origins:?}") };
    assert_eq!((of, origin.path.as_ref()), (&key, Some(&ObjectKey::new("b"))));
    assert_eq!(origin.commit, git(&work, &["rev-parse", "HEAD"]));
    // Who may see it by the API and may not clone it fails for this repository alone.
    fake.state.lock().unwrap().token = Some("tok-2".to_owned());
    let renewed = Response::ok(fake.state.lock().unwrap().repositories[0].to_string());
    fake.then([renewed]);
    let error = connector.list(&ObjectKey::new("acme/one"), None).await.map(drop).unwrap_err();
    assert!(matches!(error, ConnectorError::Container { .. }), "{error:?}");
    assert_eq!(error.reason(), Reason::PermissionDenied, "{error}");
    assert!(!error.to_string().contains("tok-"), "{error}");
}

#[tokio::test]
async fn an_empty_repository_has_nothing() {
    let fake = Fake::new();
    fake.serve("acme/empty", &[]);
    let connector = fake.connector(json!({ "organisation": "acme" }));
    assert_eq!(contents(connector.as_ref(), "acme/empty").await.len(), 0);
}

#[tokio::test]
async fn a_repository_that_cannot_be_read_says_why_and_others_go_on() {
    let fake = Fake::new();
    fake.serve("acme/fine", &[("a", "content a\n")]);
    fake.add("acme/disabled", json!({ "disabled": true }));
    fake.add("acme/broken", json!({}));
    let connector = fake.connector(json!({ "organisation": "acme" }));
    let why = async |name: &str| {
        let listing = connector.list(&ObjectKey::new(name), None).await;
        let error = listing.map(drop).unwrap_err();
        assert!(matches!(error, ConnectorError::Container { .. }), "{error}");
        (error.reason(), error.to_string())
    };
    let (reason, said) = why("acme/disabled").await;
    assert_eq!((reason, said.as_str()), (Reason::PermissionDenied, "acme/disabled: github has disabled it"));
    let (reason, said) = why("acme/gone").await;
    assert_eq!(reason, Reason::Vanished);
    assert!(said.starts_with("acme/gone: it is gone, or the credential may not see it"), "{said}");
    let (reason, said) = why("acme/broken").await;
    assert!(reason == Reason::ReadError && said.contains("git clone"), "{said}");
    fake.then([Response::status(451).body(r#"{"message":"Repository access blocked"}"#)]);
    let (reason, said) = why("acme/broken").await;
    assert!(reason == Reason::PermissionDenied && said.contains("Repository access blocked"), "{said}");
    assert_eq!(why("nonsense").await.0, Reason::Vanished);
    assert_eq!(contents(connector.as_ref(), "acme/fine").await.len(), 2);
    fake.then([Response::status(429).header("Retry-After", "90")]);
    let waited = connector.list(&ObjectKey::new("acme/broken"), None).await.map(drop).unwrap_err();
    assert!(matches!(waited, ConnectorError::Wait { .. }), "{waited}");
}

#[tokio::test]
async fn a_renamed_repository_is_listed_under_its_new_name() {
    let fake = Fake::new();
    fake.serve("acme/new", &[("a", "content a\n")]);
    let connector = fake.connector(json!({ "repositories": ["acme/old", "acme/new"] }));
    let moved = || Response::status(301).header("Location", "/api/v3/repos/acme/new");
    fake.then([moved()]);
    let (records, targets) = list(connector.as_ref(), "", 10).await.unwrap();
    assert_eq!((names(&records), targets.len()), (vec!["acme/new"], 1), "once");
    assert_eq!(contents(connector.as_ref(), "acme/new").await.len(), 2);
    fake.then([moved()]);
    let error = connector.list(&ObjectKey::new("acme/old"), None).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("renamed to acme/new"), "{error}");
}

/// A configuration, and the credential that came with it.
type Made = (Value, Option<String>);

/// Reads no repository, and remembers what it was made with.
#[derive(Clone, Default)]
struct Remembering(Arc<Mutex<Vec<Made>>>);

impl ConnectorFactory for Remembering {
    fn kind(&self) -> &'static str {
        "remembering"
    }

    fn create(
        &self,
        configuration: &Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        let credential = surroundings.credential.as_ref().map(ToString::to_string);
        self.0.lock().unwrap().push((configuration.clone(), credential));
        Ok(Arc::new(Tracing { url: configuration["url"].as_str().unwrap().to_owned() }))
    }
}

/// Every object comes from the commit that its repository's address is.
struct Tracing {
    url: String,
}

#[async_trait]
impl Connector for Tracing {
    fn resume_policy(&self, _: &ObjectKey) -> ResumePolicy {
        ResumePolicy::ClearAndRelist
    }

    async fn list(&self, _: &ObjectKey, _: Option<&str>) -> Result<Box<dyn Listing>, ConnectorError> {
        Err(ConnectorError::Denied { detail: "not here".to_owned() })
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        Err(ObjectError::new(Reason::Changed, object.key.to_string()))
    }

    async fn origins(
        &self,
        objects: &[ObjectKey],
        _: &Moved,
    ) -> Result<Vec<(ObjectKey, Origin)>, ConnectorError> {
        if self.url.contains("gone") {
            return Err(ConnectorError::Denied { detail: "gone".to_owned() });
        }
        let origin = Origin {
            path: None,
            commit: self.url.clone(),
            author: String::new(),
            time_ms: 0,
            is_abandoned: false,
        };
        Ok(objects.iter().map(|object| (object.clone(), origin.clone())).collect())
    }
}

#[tokio::test]
async fn everything_inside_is_handed_on_to_the_repositorys_own_connector() {
    let inner = Remembering::default();
    let configuration = json!({
        "owner": "acme", "base_url": "https://api.ghe.example.com/", "paths": ["p"], "exclude_paths": ["x"],
        "max_file_size": 7,
    });
    let surroundings =
        Surroundings { credential: Some("env:TOKEN".parse().unwrap()), ..Surroundings::default() };
    let connector = GithubFactory::over(inner.clone()).create(&configuration, &surroundings).unwrap();
    assert!(inner.0.lock().unwrap().is_empty(), "not before it is needed");
    let keys = ["b/b/2", "a/a/1", "b/b/x/y", "gone/gone/3", "nonsense"].map(ObjectKey::new);
    let origins = connector.origins(&keys, &Moved::default()).await.unwrap();
    let found: Vec<(String, String)> =
        origins.into_iter().map(|(key, origin)| (key.to_string(), origin.commit)).collect();
    let url = |name: &str| format!("https://ghe.example.com/{name}.git");
    let expected = [("a/a/1", "a/a"), ("b/b/2", "b/b"), ("b/b/x/y", "b/b")];
    assert_eq!(
        found,
        expected.map(|(key, name)| (key.to_owned(), url(name))),
        "others than the one that is gone"
    );
    assert!(connector.traces_origins() && connector.origins(&keys[3..4], &Moved::default()).await.is_err());
    let error = open(connector.as_ref(), &keys[2]).map(drop).unwrap_err();
    assert_eq!((error.reason, error.detail.as_str()), (Reason::Changed, "x/y"));
    assert_eq!(connector.resume_policy(&ObjectKey::new("a/a")), ResumePolicy::ClearAndRelist);
    let made = inner.0.lock().unwrap().clone();
    assert_eq!(made.len(), 3, "each repository's is made once");
    let whole = json!({
        "url": url("a/a"), "authentication": "github", "paths": ["p"], "exclude": ["x"], "max_file_size": 7,
    });
    assert_eq!(made[0], (whole, Some("env:TOKEN".to_owned())));
    let public = json!({ "owner": "acme", "authentication": "unauthenticated" });
    let connector = GithubFactory::over(inner.clone()).create(&public, &surroundings).unwrap();
    assert!(open(connector.as_ref(), &keys[1]).is_err());
    let last = inner.0.lock().unwrap().last().unwrap().clone();
    assert_eq!(last, (json!({ "url": "https://github.com/a/a.git" }), None));
}
