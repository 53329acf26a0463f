//! Classification: objects through the scan core.

mod completer;
mod packet;

pub(crate) use completer::{Completer, completing};
pub(crate) use packet::{PacketSource, classify, packet_options};
