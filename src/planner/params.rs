//! The parameters of a request for documents. `_bulk_get` takes them for the
//! whole request, so they are chosen by what its entries need at most.

use crate::request::Params;

/// What kind of ask an entry waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Depth {
    /// The revision itself, from any replica.
    Plain,
    /// It answered "missing": its leaves, from a quorum. CouchDB's replicas may
    /// lag, and a revision updated and compacted since the feed was read lives
    /// on in its leaves only.
    Latest,
    /// The document came with stubs: now with its attachments' bytes.
    Attached,
}

/// Parameters of a request whose entries wait for `depth`. `first_generation`:
/// no entry has a history beyond itself. `again`:
/// leaves are to answer for it. `couch`: the server said that it is
/// CouchDB, so that `r` is understood. `piecewise`: it does not stream attachments.
pub(super) fn params(
    depth: Depth,
    again: bool,
    first_generation: bool,
    couch: bool,
    single: bool,
    piecewise: bool,
) -> Params {
    Params {
        // A revision written without its history makes a false conflict on a
        // target that holds an ancestor. Only generation 1 has none; the driver
        // fills that in. With `latest`, a leaf of any generation may answer.
        revs: again || !first_generation,
        latest: again,
        one_replica: couch && !again,
        attachments: depth == Depth::Attached,
        piecewise: depth == Depth::Attached && (piecewise || single),
        single,
    }
}

/// The revision's history is itself.
pub(super) fn is_first_generation(rev: &str) -> bool {
    rev.starts_with("1-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_are_asked_for_unless_every_revision_is_the_first() {
        assert!(!params(Depth::Plain, false, true, true, false, false).revs);
        assert!(params(Depth::Plain, false, false, true, false, false).revs);
        assert!(params(Depth::Latest, true, true, true, false, false).revs);
    }

    #[test]
    fn the_second_ask_is_with_leaves_and_quorum() {
        let second = params(Depth::Latest, true, false, true, false, false);
        assert!(second.latest && !second.one_replica);
        let first = params(Depth::Plain, false, false, true, false, false);
        assert!(!first.latest && first.one_replica);
    }

    #[test]
    fn unknown_servers_get_no_parameter_that_stock_would_not_send() {
        assert!(!params(Depth::Plain, false, false, false, false, false).one_replica);
    }
}
