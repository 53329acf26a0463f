//! How packets begin in each protocol. Scripts have packets without their heads, which are made here: a fuzzer would spend
//! its time on lengths that are wrong.

/// A server's protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    Mysql,
    Postgres,
    Tds,
}

/// Bytes of a TDS packet's head; of a MySQL packet's; of a PostgreSQL message's.
const TDS_HEAD: usize = 8;
const MYSQL_HEAD: usize = 4;
const POSTGRES_HEAD: usize = 5;
/// What TDS servers send.
const TDS_REPLY: u8 = 4;

impl Protocol {
    /// Appends a packet. For TDS the content begins with the packet's status, for PostgreSQL with its type. `number` is
    /// that of the packet in its exchange.
    pub fn frame(self, content: &[u8], number: u8, out: &mut Vec<u8>) {
        match (self, content.split_first()) {
            (Protocol::Mysql, _) => {
                out.extend_from_slice(&(content.len() as u32).to_le_bytes()[..3]);
                out.push(number);
                out.extend_from_slice(content);
            }
            (Protocol::Postgres, Some((kind, rest))) => {
                out.push(*kind);
                out.extend_from_slice(&(rest.len() as u32 + 4).to_be_bytes());
                out.extend_from_slice(rest);
            }
            (Protocol::Tds, Some((status, rest))) => {
                let len = ((rest.len() + TDS_HEAD) as u16).to_be_bytes();
                out.extend_from_slice(&[TDS_REPLY, *status, len[0], len[1], 0, 0, number, 0]);
                out.extend_from_slice(rest);
            }
            (_, None) => {}
        }
    }

    /// The content of the first packet of what a server sent, as a script has it, and the rest. `None` for what is no whole
    /// packet.
    pub fn split(self, bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
        let (content, end) = match self {
            Protocol::Mysql => {
                let head = bytes.get(..MYSQL_HEAD)?;
                let end = MYSQL_HEAD + u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
                (bytes.get(MYSQL_HEAD..end)?.to_vec(), end)
            }
            Protocol::Postgres => {
                let head = bytes.get(..POSTGRES_HEAD)?;
                let end = 1 + u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                ([&head[..1], bytes.get(POSTGRES_HEAD..end)?].concat(), end)
            }
            Protocol::Tds => {
                let head = bytes.get(..TDS_HEAD)?;
                let end = usize::from(u16::from_be_bytes([head[2], head[3]]));
                ([&head[1..2], bytes.get(TDS_HEAD..end)?].concat(), end)
            }
        };
        Some((content, &bytes[end..]))
    }

    /// The number of the first packet of the answer to these bytes of a client.
    pub fn answer_number(self, request: &[u8]) -> u8 {
        match self {
            Protocol::Mysql => request.get(3).map_or(0, |number| number.wrapping_add(1)),
            Protocol::Postgres | Protocol::Tds => 1,
        }
    }
}
