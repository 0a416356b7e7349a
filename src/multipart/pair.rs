//! Decides which of a document's `follows` entries an attachment of the stream
//! is. It knows names and their order, nothing else; that lengths and digests
//! agree is for the caller to check.
//!
//! CouchDB writes the attachments in the order of the JSON's entries. But the
//! host reads that JSON with `JSON.parse`, and a JS object lists keys that look
//! like array indices before all others, so the order can be lost there. Names
//! cannot, but a server need not write them in a way that survives a header.

use super::MultipartError;

/// For each attachment of the stream, in its order, the index of its entry.
///
/// `follows` are the names of the entries with `follows: true`, in the order in
/// which the host lists them; `files` the names that came, in stream order.
/// Names decide where every one is there and unique. Order decides otherwise,
/// unless the host may have changed it or a name speaks against it.
pub fn pair_attachments(
    follows: &[&str],
    files: &[Option<&str>],
) -> Result<Vec<usize>, MultipartError> {
    if follows.len() != files.len() {
        return Err(MultipartError::AttachmentCount);
    }
    let entry_of = |file: &Option<&str>| {
        let name = (*file)?;
        only_place(files.iter().copied(), name)?;
        only_place(follows.iter().copied().map(Some), name)
    };
    let by_name: Vec<Option<usize>> = files.iter().map(entry_of).collect();
    if let Some(pairs) = by_name.iter().copied().collect() {
        return Ok(pairs);
    }
    let contradicted = by_name
        .iter()
        .enumerate()
        .any(|(place, entry)| entry.is_some_and(|entry| entry != place));
    let reordered = follows.len() > 1 && follows.iter().any(|name| is_index(name));
    if contradicted || reordered {
        return Err(MultipartError::AttachmentOrder);
    }
    Ok((0..files.len()).collect())
}

/// Where a name stands that is there exactly once. Every name is looked for in
/// the whole list: a document has few attachments, and sorting or hashing them
/// would be a tenth of the engine's size.
fn only_place<'a>(mut names: impl Iterator<Item = Option<&'a str>>, wanted: &str) -> Option<usize> {
    let place = names.position(|name| name == Some(wanted))?;
    (!names.any(|name| name == Some(wanted))).then_some(place)
}

/// Whether JS may list the key out of order. Engines differ in how large such
/// an index may be, so its size does not matter here.
fn is_index(name: &str) -> bool {
    let digits = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    digits && (name == "0" || !name.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use MultipartError::{AttachmentCount, AttachmentOrder};

    fn pair(follows: &[&str], files: &[&str]) -> Result<Vec<usize>, MultipartError> {
        let files: Vec<Option<&str>> = files.iter().copied().map(Some).collect();
        pair_attachments(follows, &files)
    }

    #[test]
    fn names_decide_whatever_the_order() {
        assert_eq!(pair(&["0", "b"], &["b", "0"]), Ok(vec![1, 0]));
        assert_eq!(pair(&["a", "b", "c"], &["c", "a", "b"]), Ok(vec![2, 0, 1]));
        assert_eq!(pair(&[], &[]), Ok(vec![]));
    }

    #[test]
    fn order_decides_where_names_do_not() {
        assert_eq!(pair(&["a\r\nb: c", "d"], &["a", "d"]), Ok(vec![0, 1]));
        assert_eq!(pair(&["a\"\r\nb: c", "a"], &["a", "a"]), Ok(vec![0, 1]));
        assert_eq!(pair_attachments(&["a", "b"], &[None, None]), Ok(vec![0, 1]));
        assert_eq!(pair_attachments(&["7"], &[None]), Ok(vec![0]));
        assert_eq!(pair(&["é", "b"], &["e\u{301}", "b"]), Ok(vec![0, 1]));
    }

    #[test]
    fn order_is_not_believed_where_the_host_may_have_changed_it() {
        let files = [None, None];
        assert_eq!(pair_attachments(&["0", "b"], &files), Err(AttachmentOrder));
        assert_eq!(pair_attachments(&["b", "42"], &files), Err(AttachmentOrder));
        // Not keys that JS takes for indices.
        for name in ["007", "-1", "1.5", "", "1e3"] {
            assert_eq!(
                pair_attachments(&["b", name], &files),
                Ok(vec![0, 1]),
                "{name}"
            );
        }
    }

    #[test]
    fn order_is_not_believed_against_a_name() {
        assert_eq!(pair(&["a", "b"], &["b", "x"]), Err(AttachmentOrder));
        assert_eq!(
            pair_attachments(&["a", "b"], &[None, Some("a")]),
            Err(AttachmentOrder)
        );
    }

    #[test]
    fn none_may_be_missing_or_too_many() {
        assert_eq!(pair(&["a", "b"], &["a"]), Err(AttachmentCount));
        assert_eq!(pair(&["a"], &["a", "b"]), Err(AttachmentCount));
        assert_eq!(pair(&[], &["a"]), Err(AttachmentCount));
    }
}
