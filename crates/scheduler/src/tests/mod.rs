//! The whole core, on objects in memory.

mod chunks;
mod containers;
mod frontier;
mod packets;
mod support;
