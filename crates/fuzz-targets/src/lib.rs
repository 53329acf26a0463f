//! What is fuzzed: one function per parser of hostile bytes, and the limits that one input must keep.
//!
//! Each target exists once. The fuzzer (`fuzz/`, outside of the workspace) calls it with inputs of its own making; a test
//! of this crate calls it with the corpus (`fuzz/corpus/<target>/`). Targets go through the public way in of a crate
//! wherever there is one, so that what is fuzzed is what a scan does.
//!
//! For tests only: nothing of the product depends on this crate.
#![allow(clippy::unwrap_used, reason = "a target that cannot set its stage up must not seem to have passed")]

mod configuration;
mod containers;
mod git;
mod memory;
mod records;
mod rules;
mod runtime;
pub mod servers;
mod sqlite;
mod texts;
mod web;

pub use memory::Counting;

/// Bytes that the heap may grow by for one input: 64 MiB.
const MEMORY_MAX: usize = 64 << 20;

/// A parser, as the fuzzer sees it.
pub struct Target {
    pub name: &'static str,
    /// What is parsed.
    pub about: &'static str,
    run: fn(&[u8]),
}

impl Target {
    const fn new(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
        Target { name, about, run }
    }

    /// Parses the input. Panics where it breaks what the target promises, or takes more memory than it may. How much it
    /// took is known only in a process whose allocator is [`Counting`].
    pub fn run(&self, input: &[u8]) -> usize {
        memory::begin();
        (self.run)(input);
        let taken = memory::taken();
        assert!(
            taken <= MEMORY_MAX,
            "{}: {} bytes of input took {taken} bytes of memory, {MEMORY_MAX} at most",
            self.name,
            input.len(),
        );
        taken
    }
}

/// All of them, by name.
pub const TARGETS: &[Target] = &[
    Target::new("archive", "containers of every kind within one another", containers::any),
    Target::new("compressed", "gzip, bzip2, xz and zstd", containers::compressed),
    Target::new("configuration", "configurations of data sources, and addresses", configuration::check),
    Target::new("encoding", "texts in UTF-16", texts::encoding),
    Target::new("git_index", "the index of a work tree", git::index),
    Target::new("git_object", "commits, trees and tags", git::object),
    Target::new("git_pack", "packs and their deltas", git::pack),
    Target::new("git_pack_index", "the index of a pack", git::pack_index),
    Target::new("git_refs", "references, their tables, configuration, links to other folders", git::refs),
    Target::new("html", "the links of a page", web::html),
    Target::new("mysql", "replies of a MySQL server", servers::mysql),
    Target::new("postgres", "replies of a PostgreSQL server", servers::postgres),
    Target::new("robots", "robots.txt", web::robots),
    Target::new("rules", "rule files of ours and of Gitleaks", rules::load),
    Target::new("separated", "files of separated values", texts::separated),
    Target::new("sitemap", "sitemaps and lists of addresses", web::sitemap),
    Target::new("sqlite", "files that are SQLite databases", sqlite::read),
    Target::new("sqlserver", "replies of a SQL Server", servers::sqlserver),
    Target::new("tar", "tar archives", containers::tar),
    Target::new("text", "texts, with all built-in rules", texts::scan),
    Target::new("unsupported", "formats that are recognised and not read", containers::unsupported),
    Target::new("zip", "zip archives", containers::zip),
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
