//! No stream makes the multipart parser panic, and none is read differently when
//! it is cut differently. What holds of every single reading (the order of the
//! events, attachments as long as they say, little held back) is checked on the
//! way, by the reader that the tests use.
//!
//! The input's first bytes choose where the stream is cut, the rest is the
//! stream. The outer boundary is fixed, so that damage goes into the stream:
//!
//! ```text
//! cargo +nightly fuzz run multipart fuzz/corpus/multipart fuzz/seeds/multipart -- \
//!     -dict=fuzz/multipart.dict -max_total_time=600
//! ```
#![no_main]

#[allow(dead_code)]
#[path = "../../tests/multipart/reading.rs"]
mod reading;

use libfuzzer_sys::fuzz_target;

use reading::{cut, read};

const CONTENT_TYPE: &str = "multipart/mixed; boundary=\"-o\"";
const LENGTHS: usize = 4;

fuzz_target!(|input: &[u8]| {
    let Some((lengths, stream)) = input.split_at_checked(LENGTHS) else {
        return;
    };
    let whole = read(CONTENT_TYPE, [stream]);
    let lengths: Vec<usize> = lengths.iter().map(|&length| usize::from(length)).collect();
    assert_eq!(read(CONTENT_TYPE, cut(stream, &lengths)), whole);
    assert_eq!(read(CONTENT_TYPE, cut(stream, &[1])), whole);
});
