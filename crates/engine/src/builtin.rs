//! What the build script (`build.rs`) makes of `rules/*.toml`. A new family is a new file there and nothing else.

/// The name and text of each rule file, in order of names.
pub const FAMILIES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/families.rs"));

/// Their rules, see [`compiled`](crate::rules).
pub static RULES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rules.bin"));

/// How the prefilter finds their literals, see [`plan`](crate::prefilter).
pub static PLANS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plans.bin"));
