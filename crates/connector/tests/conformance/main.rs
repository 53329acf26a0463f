//! The suite on a connector that keeps its promises, under each resume policy, and on ones that break one
//! promise each: the suite must notice.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod source;

use std::sync::Arc;

use domesday_connector::conformance::{Case, Fixture, THEMES, broken};
use domesday_connector::credentials::Method;
use domesday_connector::{Surroundings, Trial};
use domesday_model::ResumePolicy;

use source::{Fault, InMemory};

mod from_resume_point {
    use super::*;

    async fn new() -> Arc<dyn Fixture> {
        Arc::new(InMemory::new(ResumePolicy::FromResumePoint, Fault::None))
    }

    domesday_connector::conformance_tests!(new);
}

mod exclude_staged {
    use super::*;

    async fn new() -> Arc<dyn Fixture> {
        Arc::new(InMemory::new(ResumePolicy::ExcludeStaged, Fault::None))
    }

    domesday_connector::conformance_tests!(new);
}

mod clear_and_relist {
    use super::*;

    async fn new() -> Arc<dyn Fixture> {
        Arc::new(InMemory::new(ResumePolicy::ClearAndRelist, Fault::None))
    }

    domesday_connector::conformance_tests!(new);
}

fn case(name: &str) -> Case {
    let mut all = THEMES.iter().flat_map(|(_, cases)| *cases);
    *all.find(|(case, _)| *case == name).unwrap_or_else(|| panic!("there is no case {name}"))
}

#[test]
fn a_broken_promise_is_noticed() {
    for (fault, name) in [
        (Fault::LosesAnEntry, "every_object_is_listed_once"),
        (Fault::ListsTwice, "every_object_is_listed_once"),
        (Fault::MoreThanAsked, "every_object_is_listed_once"),
        (Fault::EmptyInBetween, "every_object_is_listed_once"),
        (Fault::AnotherOrder, "listings_are_the_same_each_time"),
        (Fault::WrongSize, "sizes_are_those_of_the_objects"),
        (Fault::MissingIsEmpty, "a_missing_container_is_an_error"),
        (Fault::WrongBytes, "every_object_gives_its_bytes"),
        (Fault::OtherBytesAtAPlace, "every_object_gives_its_bytes"),
        (Fault::OtherBytesAhead, "objects_read_ahead_give_their_bytes"),
        (Fault::VanishedWithoutName, "a_missing_object_has_vanished"),
        (Fault::VanishedWithoutName, "what_is_removed_has_vanished"),
        (Fault::EndsTooEarly, "a_listing_goes_on_wherever_it_was_cut"),
        (Fault::ResumesTooLate, "a_listing_goes_on_wherever_it_was_cut"),
        (Fault::StaleMarks, "marks_change_with_the_object_and_only_then"),
        (Fault::RestlessMarks, "listings_are_the_same_each_time"),
        (Fault::ShowsTheSecret, "a_bad_credential_is_told_and_not_shown"),
        (Fault::RefusalLooksPassing, "a_bad_credential_is_told_and_not_shown"),
        (Fault::CutIsTheEnd, "flaky_reads_give_the_right_bytes_or_an_error"),
        (Fault::LostPageIsTheEnd, "flaky_listings_are_complete_or_an_error"),
        (Fault::LeavesTasks, "a_dropped_listing_leaves_nothing"),
    ] {
        assert_eq!(broken_with(&[case(name)], fault), [name], "{fault:?}");
    }
}

fn broken_with(cases: &[Case], fault: Fault) -> Vec<&'static str> {
    let new = move || async move {
        Arc::new(InMemory::new(ResumePolicy::FromResumePoint, fault)) as Arc<dyn Fixture>
    };
    broken(cases, new)
}

#[tokio::test]
async fn a_trial_ends_at_what_is_wrong() {
    let source = InMemory::new(ResumePolicy::ExcludeStaged, Fault::None);
    let given = |reference: &str| Surroundings::default().with_typed(reference.parse().unwrap());
    let not_allowed = Surroundings::default().for_source(Some("env:PATH")).unwrap();
    let refused = source.with_bad_credential().await.unwrap().connector;
    for (connector, surroundings, method, passed, problem) in [
        (source.connector().await, given("env:NO_SUCH_VARIABLE"), None, 0, "the variable is not set"),
        (source.connector().await, given("env:PATH"), Some(Method::S3), 0, "`access_key_id`"),
        (source.connector().await, Surroundings::default(), Some(Method::Basic), 0, "needs a credential"),
        (source.connector().await, given("env:PGPASSWORD"), None, 0, "of this process's own"),
        (source.connector().await, not_allowed, None, 0, "--allow-credentials 'env:PATH'"),
        (refused, given("env:PATH"), Some(Method::Bearer), 1, "the token is not valid"),
    ] {
        let trial = Trial::of(connector, &surroundings, method).await;
        assert_eq!(trial.passed.len(), passed, "{trial:?}");
        assert!(trial.problem.as_deref().is_some_and(|told| told.contains(problem)), "{trial:?}");
    }
    let trial = Trial::of(source.connector().await, &given("env:PATH"), Some(Method::Bearer)).await;
    assert_eq!((trial.problem, trial.objects, trial.containers), (None, 5, 1));
    assert_eq!(trial.passed[0], "authentication is bearer, from env:PATH");
}

#[test]
fn what_holds_all_it_lists_is_noticed() {
    let name = "a_large_listing_needs_no_more_memory_than_a_small_one";
    let holds = || assert_eq!(broken_with(&[case(name)], Fault::HoldsAll), [name]);
    domesday_connector::conformance::alone(
        concat!(module_path!(), "::what_holds_all_it_lists_is_noticed"),
        holds,
    );
}
