//! Checkpoints inside of very large objects: whoever claims the task next goes on from there.

use std::time::Duration;

use domesday_model::{ObjectCheckpoint, Reason};

use super::book::*;
use super::cases;
use crate::types::*;

cases![
    the_next_claim_finds_what_those_before_it_kept,
    the_first_one_takes_the_place_of_all,
    objects_and_tasks_have_their_own,
    the_half_of_a_split_task_finds_its_objects,
    an_object_with_a_new_checkpoint_in_each_claim_is_never_given_up,
    an_object_without_a_new_one_is_given_up,
    starting_over_is_no_progress,
    what_nobody_needs_is_swept,
];

/// Longer than a task is kept back that was alone with a worker that ended.
const KEPT_BACK: Duration = Duration::from_secs(5);

async fn save(book: &Book, packet: &WorkPacket, object: &str, number: u32) {
    book.store().save_object_checkpoint(&packet.claim, &key(object), checkpoint(number)).await.unwrap();
}

/// Those of one object.
async fn known(book: &Book, packet: &WorkPacket, object: &str) -> Vec<ObjectCheckpoint> {
    book.store().object_checkpoints(&packet.claim, &[key(object)]).await.unwrap().remove(0)
}

/// The worker ends; the task can be claimed again.
async fn abandon(running: &mut Running) -> ReapReport {
    let report = running.abandon().await;
    running.book.advance(KEPT_BACK);
    report
}

async fn the_next_claim_finds_what_those_before_it_kept(book: Book) {
    let mut running = book.running(job("a")).await;
    let first = running.classify(&["f"]).await;
    assert_eq!(known(&book, &first, "f").await, []);
    save(&book, &first, "f", 0).await;
    save(&book, &first, "f", 1).await;
    // Its answer was lost.
    save(&book, &first, "f", 1).await;
    abandon(&mut running).await;
    let second = running.classification().await;
    assert_eq!(known(&book, &second, "f").await, [checkpoint(0), checkpoint(1)]);
    save(&book, &second, "f", 2).await;
    book.store().give_back(&second.claim, GiveBack::Returned).await.unwrap();
    let third = running.classification().await;
    assert_eq!(known(&book, &third, "f").await, [0, 1, 2].map(checkpoint));
    let late = book.store().save_object_checkpoint(&second.claim, &key("f"), checkpoint(3)).await;
    assert!(late.is_err_and(|error| error.is_lost()));
    assert_eq!(known(&book, &third, "f").await.len(), 3);
}

async fn the_first_one_takes_the_place_of_all(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    for number in 0..3 {
        save(&book, &packet, "f", number).await;
    }
    let mut other = checkpoint(0);
    other.of.size = 7;
    book.store().save_object_checkpoint(&packet.claim, &key("f"), other.clone()).await.unwrap();
    assert_eq!(known(&book, &packet, "f").await, [other]);
}

async fn objects_and_tasks_have_their_own(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f", "g"]).await;
    save(&book, &packet, "f", 0).await;
    let of_both = book.store().object_checkpoints(&packet.claim, &[key("g"), key("f")]).await.unwrap();
    assert_eq!(of_both, [vec![], vec![checkpoint(0)]]);
    let other = book.running(job("b").group("other").request(2)).await;
    let of_another = other.classify(&["f"]).await;
    assert_eq!(known(&book, &of_another, "f").await, []);
}

async fn the_half_of_a_split_task_finds_its_objects(book: Book) {
    let mut running = book.running(job("a")).await;
    let whole = running.classify(&["f", "g"]).await;
    save(&book, &whole, "g", 0).await;
    assert_eq!(abandon(&mut running).await.returned, 1);
    running.classification().await;
    assert_eq!(abandon(&mut running).await.split, 1);
    for _ in 0..2 {
        let half = running.classification().await;
        let object = book.store().packet_objects(&half).await.unwrap().remove(0).key;
        let expected = if object == key("g") { vec![checkpoint(0)] } else { vec![] };
        assert_eq!(known(&book, &half, &object.to_string()).await, expected);
        book.store().sweep(100).await.unwrap();
        save(&book, &half, &object.to_string(), expected.len() as u32).await;
        assert_eq!(known(&book, &half, &object.to_string()).await.len(), expected.len() + 1);
    }
}

async fn an_object_with_a_new_checkpoint_in_each_claim_is_never_given_up(book: Book) {
    let mut running = book.running(job("a")).await;
    let mut packet = running.classify(&["f"]).await;
    for number in 0..12 {
        save(&book, &packet, "f", number).await;
        assert_eq!(abandon(&mut running).await.returned, 1);
        packet = running.classification().await;
    }
    assert_eq!(known(&book, &packet, "f").await.len(), 12);
    running.complete(&packet).await;
    assert_eq!(book.store().problems(running.master, 10).await.unwrap(), []);
}

/// How often a worker may end with the object before it is given up, when each scan of it starts over or finds out
/// nothing new.
async fn ends(book: Book, starts_over: bool) -> usize {
    let mut running = book.running(job("a")).await;
    let mut packet = running.classify(&["f"]).await;
    save(&book, &packet, "f", 0).await;
    let mut ends = 0;
    loop {
        if starts_over {
            save(&book, &packet, "f", 0).await;
        }
        ends += 1;
        if abandon(&mut running).await.poisoned == 1 {
            break;
        }
        assert!(ends < 10);
        packet = running.classification().await;
    }
    let problems = book.store().problems(running.master, 10).await.unwrap();
    assert_eq!(problems[0].reason, Some(Reason::Poisoned));
    ends
}

async fn an_object_without_a_new_one_is_given_up(book: Book) {
    assert_eq!(ends(book, false).await, 5);
}

/// Of an object that changes before each claim the first checkpoint is a new one each time.
async fn starting_over_is_no_progress(book: Book) {
    assert_eq!(ends(book, true).await, 5);
}

async fn what_nobody_needs_is_swept(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    save(&book, &packet, "f", 0).await;
    save(&book, &packet, "f", 1).await;
    assert_eq!(book.store().sweep(100).await.unwrap(), 0);
    running.complete(&packet).await;
    assert_eq!(book.store().sweep(1).await.unwrap(), 1);
    assert_eq!(book.store().sweep(100).await.unwrap(), 1);
    assert_eq!(known(&book, &packet, "f").await, []);
}
