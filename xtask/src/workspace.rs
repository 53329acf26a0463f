//! What cargo knows about the workspace: its root, its target folder, its packages and their
//! dependencies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

pub struct Workspace {
    pub root: PathBuf,
    pub target: PathBuf,
    pub packages: Vec<Package>,
}

#[derive(Clone)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    /// Where it comes from; `None` for the workspace's own.
    pub source: Option<String>,
    /// Names of what it depends on in a build of the product; what only its tests need is left out.
    pub dependencies: BTreeSet<String>,
}

/// How the binary is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// As users have it.
    Release,
    /// The same, with points at which it can be made to end.
    WithFailpoints,
}

impl Workspace {
    pub fn load() -> Result<Workspace> {
        let root = root();
        let output = cargo(root)
            .args(["metadata", "--format-version", "1", "--locked"])
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        Ok(Workspace {
            root: root.to_owned(),
            target: text(&metadata["target_directory"])?.into(),
            packages: packages.iter().map(package).collect::<Result<_>>()?,
        })
    }

    /// Builds the binary, and puts a copy aside into `folder` that no later build replaces.
    pub fn build(&self, folder: &Path, how: Build) -> Result<PathBuf> {
        let mut build = cargo(&self.root);
        build.args(["build", "--quiet", "--release", "--package", "domesday"]);
        if how == Build::WithFailpoints {
            build.args(["--features", "failpoints"]);
        }
        let status = build.status().context("cannot run cargo build")?;
        if !status.success() {
            bail!("cannot build the binary: {status}");
        }
        let binary = folder.join("domesday");
        std::fs::copy(self.target.join("release/domesday"), &binary).context("cannot copy the binary")?;
        Ok(binary)
    }

    /// The workspace's own packages.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.source.is_none())
    }
}

/// The folder of the workspace this program was built from.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// The cargo that runs this, in `folder`.
pub fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
}

fn package(value: &Value) -> Result<Package> {
    let dependencies = value["dependencies"].as_array().context("a package has no dependencies")?;
    let in_product = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
    Ok(Package {
        name: text(&value["name"])?,
        version: text(&value["version"])?,
        license: value["license"].as_str().map(str::to_owned),
        source: value["source"].as_str().map(str::to_owned),
        dependencies: in_product.map(|dependency| text(&dependency["name"])).collect::<Result<_>>()?,
    })
}

fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().context("cargo metadata lacks a text")?.to_owned())
}
