//! What the planner does, one behaviour a test: the tests' names tell the story.
//! What has to be true of every run is in `tests/oracle`.

mod attachments;
mod batches;
mod checkpoint;
mod demand;
mod diff;
mod feed;
mod memory;
mod pace;
mod retries;
mod second_ask;
mod support;
mod words;
