//! The connectors, one folder each. They must not know the store, nor each other.

pub mod databases;
pub mod filesystem;
pub mod github;
pub mod objects;
pub mod stdin;
pub mod url;
