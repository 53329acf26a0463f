//! What is scanned: the same tree, as each kind of source has it; or tables, for kinds that are databases. Servers run here, in this process, so that
//! they outlive the scans that are killed.

use std::any::Any;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use domesday_testkit::{http, s3};
use serde_json::json;

use super::tables;
use super::tree::{self, Shape, Tree};

/// Commits that the tree comes in, as a git history.
const COMMITS: usize = 12;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    #[default]
    Files,
    Git,
    /// An object store, over S3's protocol.
    S3,
    /// A code host with the history.
    Github,
    /// Web addresses, from a list.
    Url,
    /// A database that is a file.
    Sqlite,
    Postgres,
    /// As MariaDB speaks it.
    Mysql,
    /// As a scripted server speaks it.
    Sqlserver,
}

impl Kind {
    pub const ALL: &'static [Kind] = &[
        Kind::Files,
        Kind::Git,
        Kind::S3,
        Kind::Github,
        Kind::Url,
        Kind::Sqlite,
        Kind::Postgres,
        Kind::Mysql,
        Kind::Sqlserver,
    ];

    /// Whether what it has is tables.
    pub fn is_database(self) -> bool {
        matches!(self, Kind::Sqlite | Kind::Postgres | Kind::Mysql | Kind::Sqlserver)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Files => "files",
            Kind::Git => "git",
            Kind::S3 => "s3",
            Kind::Github => "github",
            Kind::Url => "url",
            Kind::Sqlite => "sqlite",
            Kind::Postgres => "postgres",
            Kind::Mysql => "mysql",
            Kind::Sqlserver => "sqlserver",
        }
    }
}

/// A source, ready to be scanned.
pub struct Source {
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, String)>,
    /// Values of the counted rule that every complete scan finds.
    pub planted: u64,
    /// What serves it for as long as this lives.
    _server: Option<Box<dyn Any>>,
}

/// The source of this kind and seed below `folder`, made if it is not there yet.
pub fn prepare(kind: Kind, folder: &Path, seed: u64, shape: Shape) -> Result<Source> {
    match kind {
        Kind::Sqlite => return tables::sqlite(folder, seed, shape),
        Kind::Postgres => return tables::postgres(seed, shape),
        Kind::Mysql => return tables::mysql(seed, shape),
        Kind::Sqlserver => return tables::sqlserver(seed, shape),
        Kind::Files | Kind::Git | Kind::S3 | Kind::Github | Kind::Url => {}
    }
    let tree = tree::prepare(folder, seed, shape)?;
    let planted = tree.planted;
    Ok(match kind {
        Kind::Files => Source::local(tree.path, planted),
        Kind::Git => Source::local(history(&tree)?, planted),
        Kind::S3 => bucket(&tree)?,
        Kind::Github => host(&tree)?,
        _ => site(&tree)?,
    })
}

impl Source {
    fn local(path: PathBuf, planted: u64) -> Source {
        Source { arguments: vec![path.into()], environment: Vec::new(), planted, _server: None }
    }

    pub(super) fn served(arguments: Vec<String>, planted: u64, server: impl Any) -> Source {
        let arguments = arguments.into_iter().map(OsString::from).collect();
        Source { arguments, environment: Vec::new(), planted, _server: Some(Box::new(server)) }
    }
}

/// The files of a tree whose paths are text, by those; links are left out.
fn files(tree: &Tree) -> Result<Vec<(String, PathBuf)>> {
    let (mut files, mut folders) = (Vec::new(), vec![tree.path.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Some(name) = path.strip_prefix(&tree.path)?.to_str()
            {
                files.push((name.to_owned(), path));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Values that are not in these files, because their paths are no text.
fn unserved(tree: &Tree, files: &[(String, PathBuf)]) -> Result<u64> {
    let mut unserved = 0;
    for entry in fs::read_dir(tree.path.join("odd"))? {
        let name = entry?.file_name();
        let is_served = |name: &str| files.iter().any(|(file, _)| file.starts_with(&format!("odd/{name}/")));
        let is_empty = name == "empty";
        unserved += u64::from(!is_empty && !name.to_str().is_some_and(is_served));
    }
    Ok(unserved)
}

fn bucket(tree: &Tree) -> Result<Source> {
    let (memory, files) = (s3::Memory::default(), files(tree)?);
    for (key, path) in &files {
        memory.put(key.clone(), fs::read(path)?);
    }
    let server = s3::Server::start(Arc::new(memory));
    let set = format!("endpoint={}", server.endpoint());
    let mut arguments = vec![format!("s3://{}", s3::BUCKET)];
    arguments
        .extend(["--set", &set, "--set", "allow_http=true", "--set", "region=us-east-1"].map(str::to_owned));
    let mut source = Source::served(arguments, tree.planted - unserved(tree, &files)?, server);
    source.environment = vec![
        ("AWS_ACCESS_KEY_ID", s3::ACCESS_KEY_ID.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", s3::SECRET_ACCESS_KEY.to_owned()),
    ];
    Ok(source)
}

/// The history as the first repository of an owner who has another, empty one; each on a page of its own.
fn host(tree: &Tree) -> Result<Source> {
    let history = history(tree)?;
    let folder = history.with_file_name("served");
    let owner = folder.join("acme");
    fs::create_dir_all(&owner)?;
    let (full, empty) = (owner.join("history.git"), owner.join("empty.git"));
    for (path, from) in [(&full, Some(&history)), (&empty, None)] {
        if !path.exists() {
            let mut git = Command::new("git");
            match from {
                Some(from) => git.args(["clone", "--quiet", "--bare"]).arg(from).arg(path),
                None => git.args(["init", "--quiet", "--bare"]).arg(path),
            };
            run(&mut git)?;
            run(Command::new("git").arg("--git-dir").arg(path).arg("update-server-info"))?;
        }
    }
    let repository = |id: u64, name: &str| {
        json!([{
            "id": id, "full_name": format!("acme/{name}"), "private": false, "fork": false, "archived": false,
            "disabled": false, "default_branch": "main", "owner": { "login": "acme" },
        }])
    };
    let server = http::Server::start(move |request| match request.path() {
        "/api/v3/orgs/acme/repos" | "/api/v3/users/acme/repos" => {
            let is_last = request.query("page") == Some("2");
            let page = if is_last { repository(2, "history") } else { repository(1, "empty") };
            let answer = http::Response::ok(page.to_string()).header("Content-Type", "application/json");
            let host = request.header("host").unwrap_or_default();
            let next = format!("<http://{host}{}?page=2>; rel=\"next\"", request.path());
            if is_last { answer } else { answer.header("Link", next) }
        }
        "/api/v3/users/acme" | "/api/v3/orgs/acme" => {
            http::Response::ok(json!({ "login": "acme", "type": "Organization" }).to_string())
        }
        path => http::Response::file(&folder, path),
    });
    let set = format!("base_url={}", server.url("/api/v3"));
    let arguments = vec!["github:acme".to_owned(), "--set".to_owned(), set];
    Ok(Source::served(arguments, tree.planted, server))
}

/// The files by number, so that every path is a plain one.
fn site(tree: &Tree) -> Result<Source> {
    let files = files(tree)?;
    let planted = tree.planted - unserved(tree, &files)?;
    let paths: Vec<PathBuf> = files.into_iter().map(|(_, path)| path).collect();
    let server = http::Server::start(move |request| match request.path() {
        "/list.txt" => {
            let host = request.header("host").unwrap_or_default();
            let lines = (0..paths.len()).map(|number| format!("http://{host}/file/{number}\n"));
            http::Response::ok(lines.collect::<String>())
        }
        path => {
            let number = path.strip_prefix("/file/").and_then(|number| number.parse::<usize>().ok());
            match number.and_then(|number| fs::read(paths.get(number)?).ok()) {
                Some(body) => http::Response::ok(body),
                None => http::Response::status(404),
            }
        }
    });
    let arguments = vec![server.url("/list.txt"), "--address-list".to_owned(), "--allow-private".to_owned()];
    Ok(Source::served(arguments, planted, server))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

/// The tree as a bare repository: part of it in each commit, some of it deleted again, the first half packed.
fn history(tree: &Tree) -> Result<PathBuf> {
    let folder = tree.path.parent().context("a tree is in a folder")?;
    let (repository, marker) = (folder.join("history.git"), folder.join("history.complete"));
    if marker.exists() {
        return Ok(repository);
    }
    if repository.exists() {
        fs::remove_dir_all(&repository).with_context(|| format!("cannot remove {}", repository.display()))?;
    }
    let git = |arguments: &[&str]| -> Result<()> {
        let status = Command::new("git")
            .arg("--git-dir")
            .arg(&repository)
            .arg("--work-tree")
            .arg(&tree.path)
            .args(["-c", "user.name=Someone", "-c", "user.email=someone@corp-mail.org", "-c", "gc.auto=0"])
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", "2024-05-01T12:00:00Z")
            .env("GIT_COMMITTER_DATE", "2024-05-01T12:00:00Z")
            .current_dir(&tree.path)
            .stdout(Stdio::null())
            .status()
            .context("cannot run git")?;
        if !status.success() {
            bail!("git {} failed: {status}", arguments.join(" "));
        }
        Ok(())
    };
    run(Command::new("git").args(["init", "--quiet", "--bare"]).arg(&repository))?;
    let mut parts: Vec<OsString> = Vec::new();
    for entry in fs::read_dir(&tree.path)? {
        let entry = entry?;
        match entry.file_name() {
            name if name == "ordinary" => {
                for inner in fs::read_dir(entry.path())? {
                    parts.push(Path::new("ordinary").join(inner?.file_name()).into());
                }
            }
            name => parts.push(name),
        }
    }
    parts.sort();
    for (number, part) in parts.chunks(parts.len().div_ceil(COMMITS)).enumerate() {
        for path in part {
            let path = path.to_str().context("the tree's own folders have plain names")?;
            git(&["add", "--force", path])?;
        }
        git(&["commit", "--quiet", "--message", &format!("part {number}")])?;
        if number == COMMITS / 2 {
            git(&["repack", "--quiet", "-a", "-d"])?;
            // What a later commit takes away is still in the history.
            git(&["rm", "--quiet", "-r", "--cached", part[0].to_str().context("a plain name")?])?;
        }
    }
    fs::write(marker, "")?;
    Ok(repository)
}
