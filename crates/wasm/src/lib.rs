//! Paritas for JavaScript.
//!
//! The module takes one message and returns one ([`answer_to`]). A message is a JSON object and the
//! bytes of any number of shards: what is computed is described in JSON, and only shards are bytes.
//! So there is one way across the border, and the JavaScript side (`npm/paritas.js`) needs no
//! generated code. [`request`] has the requests, [`abi`] the functions that the module exports.
//!
//! Codes and losses are explained by [`facts`] and [`loss`], which the explorer of the site draws.
//! [`codecs`] encodes and reconstructs.

pub mod abi;
pub mod codecs;
pub mod facts;
pub mod loss;
pub mod message;
pub mod refusal;
pub mod request;

use std::rc::Rc;

use paritas::Code;

use crate::codecs::Codecs;
use crate::message::Message;
use crate::refusal::{Refusal, Result};
use crate::request::Request;

/// Number of codes that are kept, so that questions about one code make it once.
const KEPT_CODES: usize = 4;

/// What the module keeps between requests.
#[derive(Default)]
pub struct Module {
    codes: Vec<(String, Rc<Code>)>,
    codecs: Codecs,
}

impl Module {
    /// Returns the code that a spec names.
    ///
    /// # Errors
    /// If the spec names no code.
    pub(crate) fn code(&mut self, spec: &str) -> Result<Rc<Code>> {
        if let Some((_, code)) = self.codes.iter().find(|(name, _)| name == spec) {
            return Ok(Rc::clone(code));
        }
        let code = Rc::new(spec.parse::<Code>()?);
        self.codes.truncate(KEPT_CODES - 1);
        self.codes.insert(0, (spec.to_owned(), Rc::clone(&code)));
        Ok(code)
    }

    /// Answers a message. An error is an answer too: `{"error": {"kind": …, "message": …}}`.
    pub fn answer_to(&mut self, message: &[u8]) -> Vec<u8> {
        let answer = Message::read(message).and_then(|message| {
            let request: Request = serde_json::from_value(message.json.clone())
                .map_err(|error| Refusal::request(format!("this is no request: {error}")))?;
            request.answer(self, &message)
        });
        answer.unwrap_or_else(|error| Message::of(error.value())).write()
    }

    pub(crate) fn codecs(&mut self) -> &mut Codecs {
        &mut self.codecs
    }
}
