//! What a write does with each kind of answer.

use super::*;
use crate::error::FailureKind;

const fn small(bytes: u64) -> Outgoing {
    Outgoing {
        bytes,
        multipart: false,
    }
}

const LARGE: Outgoing = Outgoing {
    bytes: 300_000,
    multipart: true,
};

fn failed(status: u16) -> Failure {
    Failure {
        status,
        ..Failure::new(FailureKind::Status, "no")
    }
}

/// Answers every request by `answer`, and counts how often each document went.
fn run(
    docs: &[Outgoing],
    mut answer: impl FnMut(&Range<usize>, Form) -> Option<Failure>,
) -> (Outcome, Vec<u32>) {
    let mut writes = Writes::new(docs.to_vec(), Pace::new(4, 2), 60_000, 0);
    let (mut now, mut sent) = (0, vec![0; docs.len()]);
    loop {
        if let Some((id, docs, form)) = writes.poll_request(now) {
            docs.clone().for_each(|doc| sent[doc] += 1);
            match answer(&docs, form) {
                None => writes.handle_written(id, now),
                Some(failure) => writes.handle_failure(id, failure, now),
            }
        } else if let Some(outcome) = writes.poll_outcome() {
            return (outcome, sent);
        } else {
            now = writes.poll_timeout().expect("something to wait for");
        }
    }
}

#[test]
fn a_write_is_shared_out_and_every_document_goes_once() {
    let mut parts = Vec::new();
    let (outcome, sent) = run(&[small(100); 1000], |docs, _| {
        parts.push(docs.len());
        None
    });
    assert_eq!(outcome, Outcome::Done(Vec::new()));
    assert_eq!(parts, [500; 2], "as many as may leave");
    assert!(sent.iter().all(|&times| times == 1));
}

#[test]
fn a_later_write_is_shared_out_at_the_pace_that_was_come_to() {
    let mut pace = Pace::new(6, 2);
    (0..4).for_each(|_| pace.succeeded());
    let mut writes = Writes::new(vec![small(100); 1000], pace, 60_000, 0);
    let mut parts = Vec::new();
    while let Some((_, docs, _)) = writes.poll_request(0) {
        parts.push(docs.len());
    }
    assert_eq!(parts, [250; 4]);
}

#[test]
fn a_document_that_is_too_large_fails_alone() {
    let (outcome, _) = run(&[small(100); 300], |docs, _| {
        docs.contains(&77).then(|| failed(413))
    });
    assert_eq!(outcome, Outcome::Done(vec![(77, failed(413))]));
}

#[test]
fn an_overloaded_server_is_waited_for() {
    let mut times = 0;
    let (outcome, sent) = run(&[small(100); 60], |_, _| {
        times += 1;
        (times < 4).then(|| failed(503))
    });
    assert_eq!(outcome, Outcome::Done(Vec::new()));
    assert!(sent.iter().all(|&times| times >= 1));
}

#[test]
fn a_refusal_ends_the_write() {
    let (outcome, _) = run(&[small(100); 60], |_, _| Some(failed(401)));
    assert_eq!(outcome, Outcome::Failed(failed(401)));
}

#[test]
fn a_request_is_not_repeated_for_ever() {
    let (outcome, sent) = run(&[small(100)], |_, _| {
        Some(Failure::new(FailureKind::Network, "reset"))
    });
    assert!(matches!(outcome, Outcome::Failed(_)));
    assert_eq!(sent, [MOST_TRIES]);
}

#[test]
fn a_server_that_answers_nothing_is_not_asked_by_halves_for_ever() {
    let mut writes = Writes::new(vec![small(100); 500], Pace::new(4, 2), 60_000, 0);
    let (mut now, mut times) = (0, 0);
    let outcome = loop {
        while writes.poll_request(now).is_some() {
            times += 1;
        }
        if let Some(outcome) = writes.poll_outcome() {
            break outcome;
        }
        now = writes.poll_timeout().expect("something to wait for");
        for id in writes.stalled(now) {
            writes.handle_failure(id, Failure::new(FailureKind::Stalled, "no answer"), now);
        }
    };
    assert!(matches!(outcome, Outcome::Failed(_)));
    assert!(times < 20 && now < 10 * 60_000, "{times} in {now} ms");
}

#[test]
fn large_documents_go_alone_and_in_their_place() {
    let mut forms = Vec::new();
    let docs = [small(10), LARGE, LARGE, small(10), small(10)];
    let (outcome, _) = run(&docs, |docs, form| {
        forms.push((docs.clone(), form));
        None
    });
    assert_eq!(outcome, Outcome::Done(Vec::new()));
    let expected = [
        (0..1, Form::Bulk),
        (1..2, Form::Multipart),
        (2..3, Form::Multipart),
        (3..5, Form::Bulk),
    ];
    assert_eq!(forms, expected);
}

#[test]
fn what_is_refused_with_its_attachments_behind_it_goes_as_any_other_document() {
    let mut forms = Vec::new();
    let (outcome, _) = run(&[LARGE], |_, form| {
        forms.push(form);
        (form == Form::Multipart).then(|| failed(403))
    });
    assert_eq!(outcome, Outcome::Done(Vec::new()));
    assert_eq!(forms, [Form::Multipart, Form::Inline]);
}

#[test]
fn a_server_that_does_not_know_multipart_is_asked_once() {
    let mut forms = Vec::new();
    let docs = [LARGE; 3];
    let mut writes = Writes::new(docs.to_vec(), Pace::new(1, 2), 60_000, 0);
    while let Some((id, _, form)) = writes.poll_request(0) {
        forms.push(form);
        match form {
            Form::Multipart => {
                let absent = Failure::new(FailureKind::Absent, "bad content type");
                writes.handle_failure(id, absent, 0);
            }
            _ => writes.handle_written(id, 0),
        }
    }
    assert!(writes.refuses_multipart());
    let inline = forms.iter().filter(|&&form| form == Form::Inline);
    assert_eq!((forms.len(), inline.count()), (4, 3));
}

#[test]
fn a_large_upload_is_given_more_time() {
    let mut writes = Writes::new(vec![LARGE], Pace::new(1, 2), 1_000, 0);
    writes.poll_request(0);
    assert!(writes.stalled(10_000).is_empty());
    assert_eq!(writes.stalled(1_000 + 300_000 / SLOWEST).len(), 1);
}

/// The clock goes on between the polling and the setting of the timer.
#[test]
fn a_time_that_comes_after_the_polling_is_told_though_it_has_passed() {
    let mut writes = Writes::new(vec![small(100)], Pace::new(4, 2), 60_000, 0);
    let (id, ..) = writes.poll_request(0).expect("the write");
    let failure = Failure {
        retry_after: Some(50),
        ..failed(429)
    };
    writes.handle_failure(id, failure, 0);
    assert_eq!(writes.poll_request(49), None);
    assert_eq!(writes.poll_timeout(), Some(50));
    assert!(writes.poll_request(51).is_some());
}
