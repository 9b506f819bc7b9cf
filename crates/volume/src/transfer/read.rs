//! Reading the bytes of an object in the way that suits its code.

use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt};
use paritas_store::error::Result;

use crate::transfer::rateless;
use crate::transfer::receive::{Pieces, Receiver, Wanted};

impl Receiver {
    /// Returns the object's wanted bytes, in order. Nothing follows an error. Blocks of an LT code
    /// are taken as they come, those of other codes unit by unit.
    pub fn bytes(self: Arc<Self>, wanted: impl Into<Wanted>) -> BoxStream<'static, Result<Pieces>> {
        match self.layout.code().graph() {
            Some(_) => rateless::bytes(self, wanted.into()).boxed(),
            None => self.in_units(wanted.into()),
        }
    }
}
