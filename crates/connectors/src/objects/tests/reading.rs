//! Reads: in parts, ahead, at any place, through faults, and of one version only.

use domesday_content::ReadAt;
use domesday_scheduler::OpenBytes;
use domesday_testkit::s3::Faults;

use super::*;

/// Bytes that are different at every place.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(next).collect()
}

async fn listed(shop: &Shop) -> Arc<[ListedObject]> {
    let walk = walk(|| shop.connector(), BATCH).await;
    let object = |(key, record): (ObjectKey, UnitRecord)| {
        let UnitRecord { size, marks, .. } = record;
        ListedObject { size, marks, ..ListedObject::by_key(key) }
    };
    walk.records.into_iter().map(object).collect()
}

fn read_all(open: OpenBytes) -> Result<Vec<u8>, Reason> {
    let (mut reader, mut bytes) = (open.reader, Vec::new());
    reader.read_to_end(&mut bytes).map_err(|error| ObjectError::from(error).reason)?;
    Ok(bytes)
}

#[tokio::test]
async fn objects_of_every_size_are_read_whole_through_faults() {
    const PART: usize = 8 << 20;
    let shop = Shop::new();
    let sizes = [0, 1, 100, PART - 1, PART, PART + 1, 3 * PART + 17];
    for size in sizes {
        shop.memory.put(format!("{size}"), noise(size));
    }
    for seed in [None, Some(3), Some(4)] {
        shop.server.set_faults(seed.map(Faults::some).unwrap_or_default());
        let connector = shop.connector();
        let objects = listed(&shop).await;
        let ahead = connector.read_ahead(&objects).unwrap();
        for (index, object) in objects.iter().enumerate() {
            let size: usize = object.key.to_string().parse().unwrap();
            let open = ahead.open(index).and_then(Opened::into_bytes).unwrap();
            assert_eq!(open.size, Some(size as u64));
            assert!(read_all(open).unwrap() == noise(size), "{size} bytes ahead, seed {seed:?}");
            let bytes = read(connector.as_ref(), &size.to_string()).unwrap();
            assert!(bytes == noise(size), "{size} bytes, seed {seed:?}");
        }
    }
    assert!(shop.server.counts().faults > 0);
}

#[tokio::test]
async fn a_packet_is_read_ahead_in_any_order_and_dropped_in_its_middle() {
    let shop = Shop::with_keys((0..500).map(|n| format!("{n:03}")));
    let objects = listed(&shop).await;
    let connector = shop.connector();
    let ahead = connector.read_ahead(&objects).unwrap();
    for index in (0..500).rev().step_by(3).chain([7, 7]) {
        let text =
            String::from_utf8(read_all(ahead.open(index).and_then(Opened::into_bytes).unwrap()).unwrap())
                .unwrap();
        assert_eq!(text, format!("text of {index:03}"));
    }
    drop(ahead);
    assert_eq!(read(connector.as_ref(), "001").unwrap(), b"text of 001");
}

#[tokio::test]
async fn an_object_that_is_replaced_is_never_a_mixture() {
    let shop = Shop::new();
    let old = noise(20 << 20);
    shop.memory.put("a", old.clone());
    let objects = listed(&shop).await;
    let connector = shop.connector();
    // In its middle.
    let mut opened = open(connector.as_ref(), &ObjectKey::new("a")).unwrap();
    let mut head = vec![0; 1000];
    opened.reader.read_exact(&mut head).unwrap();
    assert!(head == old[..1000]);
    shop.memory.put("a", vec![b'n'; 20 << 20]);
    assert_eq!(read_all(opened), Err(Reason::Changed));
    // Between listing and reading.
    let ahead = connector.read_ahead(&objects).unwrap();
    assert_eq!(ahead.open(0).err().map(|error| error.reason), Some(Reason::Changed));
    // It goes.
    shop.memory.remove("a");
    assert_eq!(read(connector.as_ref(), "a"), Err(Reason::Vanished));
}

#[tokio::test]
async fn an_archive_is_read_from_its_end_without_reading_twice() {
    let shop = Shop::new();
    let bytes = noise(30 << 20);
    shop.memory.put("a.zip", bytes.clone());
    let opened = open(shop.connector().as_ref(), &ObjectKey::new("a.zip")).unwrap();
    let random = opened.random.unwrap();
    let mut buf = vec![0; 64 << 10];
    let mut at = |offset: usize| {
        let got = random.read_at(&mut buf, offset as u64).unwrap();
        assert!(got > 0 && buf[..got] == bytes[offset..offset + got], "at {offset}");
    };
    let size = bytes.len();
    for offset in
        [size - 22, size - 65_000, size - 22, 0, 30, 5_000_000, size - 300_000, 20 << 20, (20 << 20) + 9]
    {
        at(offset);
    }
    assert_eq!(random.read_at(&mut buf, size as u64).unwrap(), 0);
    assert_eq!(random.size().unwrap(), size as u64);
    // The beginning, the block at the end, and one in the middle.
    let counts = shop.server.counts();
    assert_eq!((counts.reads, counts.bytes), (3, (8 + 1 + 1) << 20));
}

#[tokio::test]
async fn a_store_that_fails_for_good_is_a_named_failure() {
    let shop = Shop::with_keys(["a"]);
    shop.server.set_faults(Faults { truncations: 1_000, ..Faults::default() });
    let connector = shop.connector();
    // Each attempt brings half of what is missing; the last bytes never come.
    shop.memory.put("a", noise(100_000));
    assert_eq!(read(connector.as_ref(), "a"), Err(Reason::Unavailable));
}
