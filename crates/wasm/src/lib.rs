//! Paritas for JavaScript.
//!
//! The module takes one message and returns one ([`answer::answer_to`]). A message is a JSON object
//! and the bytes of any number of shards: what is computed is described in JSON, and only shards
//! are bytes. So there is a single interface between the two languages, and the JavaScript side
//! (`npm/paritas.js`) needs no generated code. [`request`] has the requests, [`abi`] the functions
//! that the module exports.
//!
//! Codes and losses are explained by [`facts`] and [`loss`], which the explorer of the site draws.
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
