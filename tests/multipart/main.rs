//! The multipart parser against recordings of a real CouchDB, generated
//! answers, and answers that are cut or damaged.

mod behaviours;
mod malformed;
mod reading;
mod recordings;
mod roundtrip;
mod writing;
