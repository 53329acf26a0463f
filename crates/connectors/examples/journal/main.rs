//! How a connector is written: `connector.rs` is all of one, and `registry` is its registration. `docs/connectors.md`
//! goes through it. `cargo run --example journal -- FILE` lists and reads a file's lines.

mod connector;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::Read;

use domesday_connector::{Registry, Surroundings};
use domesday_model::{ListedObject, ObjectKey, RecordKind};

use connector::{JournalFactory, KIND};

fn registry() -> Registry {
    Registry::default().with(JournalFactory)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::path::absolute(std::env::args_os().nth(1).ok_or("usage: journal FILE")?)?;
    let configuration = serde_json::json!({ "path": path });
    let connector = registry().create(KIND, &configuration, &Surroundings::default())?;
    let mut listing = connector.list(&ObjectKey::default(), None).await?;
    loop {
        let batch = listing.next_batch(1_000).await?;
        if batch.is_empty() {
            return Ok(());
        }
        for record in batch.into_iter().filter(|record| record.kind == RecordKind::File) {
            let line = ListedObject::in_container(&ObjectKey::default(), &record);
            let mut content = String::new();
            connector.open(&line)?.into_bytes()?.reader.read_to_string(&mut content)?;
            println!("{}: {content}", line.key);
        }
    }
}
