//! Reads what a server or a database answered into the planner's words, and
//! keeps the bodies. A shape that was not asked for is an error, never a guess.

use std::rc::Rc;

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use super::driver::Kept;
use super::host::{get, json_text, key, set};
use crate::error::{Failure, FailureKind};
use crate::request::{Answer, DocHandle, Entry, FeedPage, FeedRow, GotDoc, Params, RowHandle};

fn bad(reason: impl Into<String>) -> Failure {
    Failure::new(FailureKind::BadShape, reason)
}

fn list(value: &JsValue, name: &str) -> Result<Array, Failure> {
    get(value, name)
        .dyn_into()
        .map_err(|_| bad(format!("no list `{name}`")))
}

/// A page of `_changes`. Nothing is kept where the page is not whole.
pub(super) fn page(value: &JsValue, kept: &mut Kept) -> Result<FeedPage, Failure> {
    let results = list(value, "results")?;
    let last_seq = get(value, "last_seq");
    if last_seq.is_undefined() {
        return Err(bad("a feed page without last_seq"));
    }
    let mut rows = Vec::with_capacity(results.length() as usize);
    for row in results.iter() {
        let id = key(&get(&row, "id")).ok_or_else(|| bad("a feed row without id"))?;
        let changes = list(&row, "changes").map_err(|_| bad("a feed row without changes"))?;
        let revs: Option<Vec<Rc<str>>> = changes.iter().map(|c| key(&get(&c, "rev"))).collect();
        let revs = revs.ok_or_else(|| bad("a feed row with a change that names no rev"))?;
        let seq = get(&row, "seq");
        let seq = (!seq.is_null() && !seq.is_undefined()).then(|| json_text(&seq));
        rows.push((row, id, revs, seq));
    }
    let rows = rows.into_iter().map(|(row, id, revs, seq)| {
        let handle = RowHandle(kept.rows.keep(row));
        FeedRow {
            handle,
            id,
            revs,
            seq,
        }
    });
    Ok(FeedPage {
        rows: rows.collect(),
        last_seq: json_text(&last_seq),
        pending: get(value, "pending")
            .as_f64()
            .map(|pending| pending.max(0.0) as u64),
    })
}

/// The answer of `_revs_diff`: of each row asked, the revisions that are missing.
pub(super) fn diff(
    value: &JsValue,
    rows: &[RowHandle],
    kept: &Kept,
) -> Result<Vec<Vec<Rc<str>>>, Failure> {
    if !value.is_object() {
        return Err(bad("a diff that is no object"));
    }
    let mut missing = Vec::with_capacity(rows.len());
    for row in rows {
        let id = get(&kept.rows.peek(row.0), "id");
        // Its own: a document may be called `constructor`.
        if !Object::has_own(value.unchecked_ref::<Object>(), &id) {
            missing.push(Vec::new());
            continue;
        }
        let of = Reflect::get(value, &id).unwrap_or(JsValue::UNDEFINED);
        let revs: Option<_> = list(&of, "missing")?.iter().map(|rev| key(&rev)).collect();
        missing.push(revs.ok_or_else(|| bad("a diff with a revision that is no string"))?);
    }
    Ok(missing)
}

/// The answer of `_bulk_get`, an [`Answer`] for each entry.
///
/// CouchDB answers in the order asked. Others gather what belongs to one
/// document, so an answer that is out of place is looked for by id and revision.
pub(super) fn docs(
    value: &JsValue,
    entries: &[Entry],
    params: Params,
    kept: &mut Kept,
) -> Result<Vec<Answer>, Failure> {
    let results = list(value, "results")?;
    if results.length() as usize != entries.len() {
        return Err(bad(format!(
            "{} results for {} asked",
            results.length(),
            entries.len()
        )));
    }
    let mut read = Vec::with_capacity(entries.len());
    for result in results.iter() {
        let id = key(&get(&result, "id")).ok_or_else(|| bad("a result without id"))?;
        read.push(Some((id, list(&result, "docs")?)));
    }
    let mut answers = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        let fits = |slot: &Option<(Rc<str>, Array)>| {
            slot.as_ref()
                .is_some_and(|(id, docs)| *id == entry.id && belongs(docs, entry, params))
        };
        let from = if fits(&read[at]) {
            Some(at)
        } else {
            read.iter().position(fits)
        };
        let Some((_, docs)) = from.and_then(|from| read[from].take()) else {
            return Err(bad(format!("no result for {} at {}", entry.id, entry.rev)));
        };
        answers.push(answer(&docs, entry, params)?);
    }
    Ok(answers
        .into_iter()
        .map(|answer| answer.keep(kept))
        .collect())
}

/// A stream does not tell which leaves answer for one revision; it was asked for
/// alone, so they all do.
pub(super) fn gather(value: &JsValue) {
    let Ok(results) = list(value, "results") else {
        return;
    };
    let first = results.get(0);
    let Ok(docs) = list(&first, "docs") else {
        return;
    };
    for result in results.iter().skip(1) {
        docs.push(&Array::from(&get(&result, "docs")).get(0));
    }
    set(value, "results", &Array::of1(&first));
}

/// The documents that a result names are of the revision asked for, or (with
/// `latest`) of leaves below it.
fn belongs(docs: &Array, entry: &Entry, params: Params) -> bool {
    docs.iter().all(|doc| {
        let ok = get(&doc, "ok");
        let named = match key(&get(&ok, "_rev")).or_else(|| key(&get(&doc, "missing"))) {
            Some(rev) => Some(rev),
            None => key(&get(&get(&doc, "error"), "rev")),
        };
        named.is_none_or(|rev| params.latest || rev == entry.rev)
    })
}

/// An answer whose bodies are not kept yet.
enum Read {
    Docs(Vec<JsValue>),
    Other(Answer),
}

impl Read {
    fn keep(self, kept: &mut Kept) -> Answer {
        match self {
            Read::Other(answer) => answer,
            Read::Docs(docs) => Answer::Docs(
                docs.into_iter()
                    .map(|doc| GotDoc {
                        stubs: stubs(&doc),
                        handle: DocHandle(kept.docs.keep(doc)),
                    })
                    .collect(),
            ),
        }
    }
}

fn answer(docs: &Array, entry: &Entry, params: Params) -> Result<Read, Failure> {
    let mut found = Vec::new();
    for doc in docs.iter() {
        let ok = get(&doc, "ok");
        if ok.is_object() {
            if key(&get(&ok, "_id")).is_none_or(|id| id != entry.id) {
                return Err(bad(format!("another document than {}", entry.id)));
            }
            history(&ok, entry, params)?;
            found.push(ok);
            continue;
        }
        // CouchDB: { error: { id, rev, error, reason } }; PouchDB: { missing: rev },
        // { error: <its own error> } or {}.
        let error = get(&doc, "error");
        let name = ["error", "name"]
            .iter()
            .find_map(|name| get(&error, name).as_string());
        let missing = error.is_undefined()
            || name.as_deref() == Some("not_found")
                && get(&error, "reason")
                    .as_string()
                    .is_none_or(|r| r == "missing" || r == "deleted");
        if !missing {
            let reason = get(&error, "reason").as_string().unwrap_or_default();
            let name = name.unwrap_or_else(|| "unknown error".into());
            return Ok(Read::Other(Answer::Error(format!("{name}: {reason}"))));
        }
    }
    Ok(if found.is_empty() {
        Read::Other(Answer::Missing)
    } else {
        Read::Docs(found)
    })
}

/// Every document is written with its history. That of generation 1 is the
/// revision itself, and was not asked for.
fn history(doc: &JsValue, entry: &Entry, params: Params) -> Result<(), Failure> {
    let revisions = get(doc, "_revisions");
    if revisions.is_object() {
        return Ok(());
    }
    let rev = get(doc, "_rev").as_string().unwrap_or_default();
    match rev.strip_prefix("1-") {
        Some(hash) if !params.revs || params.single => {
            let revisions = Object::new();
            set(&revisions, "start", &1.into());
            set(&revisions, "ids", &Array::of1(&hash.into()));
            set(doc, "_revisions", &revisions);
            Ok(())
        }
        _ => Err(bad(format!(
            "{} at {} came without its history",
            entry.id, entry.rev
        ))),
    }
}

/// The bytes of the attachments that the answer left out, as far as it tells;
/// `None` where it left out none.
fn stubs(doc: &JsValue) -> Option<u64> {
    let attachments = get(doc, "_attachments");
    if !attachments.is_object() {
        return None;
    }
    let entries = Object::values(attachments.unchecked_ref::<Object>());
    let missing = entries
        .iter()
        .filter(|attachment| get(attachment, "data").is_undefined())
        .map(|stub| get(&stub, "length").as_f64().unwrap_or(0.0) as u64);
    missing.reduce(|sum, length| sum + length)
}
