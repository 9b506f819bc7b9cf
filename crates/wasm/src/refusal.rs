//! The reason why a request is refused.

use std::fmt;

use serde_json::{Value, json};

/// A request that the library or this crate refuses.
#[derive(Debug)]
pub struct Refusal {
    kind: String,
    message: String,
}

/// The result of a request.
pub type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    /// Refuses a request that does not fit its code or codec.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self { kind: "Request".to_owned(), message: message.into() }
    }

    /// Returns the refusal as an answer.
    pub(crate) fn value(&self) -> Value {
        json!({ "error": { "kind": self.kind, "message": self.message } })
    }
}

impl From<paritas::Error> for Refusal {
    fn from(error: paritas::Error) -> Self {
        Self { kind: format!("{:?}", error.kind()), message: error.to_string() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
