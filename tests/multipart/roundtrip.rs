//! Whatever CouchDB writes is read back, however the stream is cut, and what is
//! cut off is never taken for the whole.

use proptest::collection::vec;
use proptest::prelude::*;

use pouchdb_fast_sync::multipart::MultipartError;

use crate::reading::{Seen, cut, read};
use crate::writing::answers;

proptest! {
    #[test]
    fn what_was_written_is_read_back(
        answer in answers(),
        lengths in vec(1usize..100, 1..8),
    ) {
        let stream = answer.write();
        let expected = answer.seen();
        for lengths in [&[][..], &[1], &lengths] {
            let reading = read(&answer.content_type(), cut(&stream, lengths));
            prop_assert_eq!(&reading.result, &Ok(()));
            prop_assert_eq!(&reading.seen, &expected);
        }
    }

    #[test]
    fn a_preamble_and_an_epilogue_change_nothing(
        answer in answers(),
        preamble in "[ -~\r\n]{0,40}",
        epilogue in vec(any::<u8>(), 0..40),
        lengths in vec(1usize..50, 1..8),
    ) {
        let delimiter = format!("--{}", answer.outer);
        prop_assume!(!format!("\r\n{preamble}").contains(&format!("\r\n{delimiter}")));
        let stream = [preamble.as_bytes(), &answer.write(), &epilogue].concat();
        let reading = read(&answer.content_type(), cut(&stream, &lengths));
        prop_assert_eq!(reading.result, Ok(()));
        prop_assert_eq!(reading.seen, answer.seen());
    }
}

proptest! {
    // Each of them reads its stream once for every byte in it.
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// What is there before the cut is there as it was; an attachment that is
    /// not complete never says that it is.
    #[test]
    fn a_stream_that_is_cut_anywhere_is_truncated(answer in answers()) {
        let stream = answer.write();
        let expected = answer.seen();
        for end in 0..stream.len() - 2 {
            let mut reading = read(&answer.content_type(), [&stream[..end]]);
            prop_assert_eq!(reading.result, Err(MultipartError::Truncated), "cut at {}", end);
            if let Some(Seen::Attachment(headers, data)) = reading.seen.last() {
                let whole = &expected[reading.seen.len() - 1];
                let Seen::Attachment(whole_headers, whole_data) = whole else {
                    return Err(TestCaseError::fail("not the attachment that was written"));
                };
                prop_assert_eq!(headers, whole_headers);
                prop_assert!(whole_data.starts_with(data));
                reading.seen.pop();
            }
            prop_assert_eq!(&reading.seen[..], &expected[..reading.seen.len()]);
        }
    }
}
