//! What the module keeps between requests.

use std::rc::Rc;

use paritas::Code;

use crate::codecs::Codecs;
use crate::refusal::Result;

/// Number of codes that are kept, so that a code is made only once for several questions about it.
const KEPT_CODES: usize = 4;

/// The codes of the latest questions, and the open codecs.
#[derive(Default)]
pub struct KeptCodecs {
    codes: Vec<(String, Rc<Code>)>,
    codecs: Codecs,
}

impl KeptCodecs {
    /// Returns the code that a spec names.
    ///
    /// # Errors
    /// If the spec does not name a code.
    pub(crate) fn code(&mut self, spec: &str) -> Result<Rc<Code>> {
        if let Some((_, code)) = self.codes.iter().find(|(name, _)| name == spec) {
            return Ok(Rc::clone(code));
        }
        let code = Rc::new(spec.parse::<Code>()?);
        self.codes.truncate(KEPT_CODES - 1);
        self.codes.insert(0, (spec.to_owned(), Rc::clone(&code)));
        Ok(code)
    }

    pub(crate) fn codecs(&mut self) -> &mut Codecs {
        &mut self.codecs
    }
}
