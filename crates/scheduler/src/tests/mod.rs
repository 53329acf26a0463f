//! The whole core, on objects in memory.

mod checkpoints;
mod chunks;
mod containers;
mod databases;
mod frontier;
mod packets;
mod pieces;
mod separated;
mod support;
mod table;
mod tables;
mod unsupported;
