//! Paritas for JavaScript.
//!
//! The module takes one message and returns one ([`answer::answer_to`]). A message is a JSON object
//! and the bytes of any number of shards: JSON says what to compute, and only shards are bytes. So
//! there is a single interface between the two languages, and the JavaScript side
//! (`npm/paritas.js`) needs no generated code. [`request`] has the requests, [`abi`] the functions
//! that the module exports.
//!
//! [`facts`] describes codes and [`loss`] explains losses; the explorer of the site draws both.
//! [`codecs`] encodes and reconstructs.

pub mod abi;
pub mod answer;
pub mod codecs;
pub mod facts;
pub mod kept;
pub mod loss;
pub mod message;
pub mod refusal;
pub mod request;
