//! The geometries of objects, rebuilt from what their shards state: the code with its pin, and the
//! sizes of packets and segments.

use std::collections::HashMap;
use std::sync::Arc;

use crate::shown::counted;
use paritas::code::Pin;
use paritas::{Code, CodecOptions, Spec};

use crate::object::format::{Digest, Identity, describe, layout_of};
use crate::object::geometry::{Geometry, planned_bytes};

/// Returns the options that a code is run with.
pub type Options<'o> = &'o dyn Fn(&Spec) -> CodecOptions;

/// A cache of rebuilt geometries, so that a directory of many objects rebuilds each code only once.
pub struct Geometries<'o> {
    options: Options<'o>,
    known: HashMap<GeometryKey, Result<Arc<Geometry>, String>>,
}

/// All fields of an identity that decide the geometry, and the number of bytes that it plans for.
type GeometryKey = (String, Vec<(String, Vec<u64>)>, String, Digest, [u32; 3], Option<u64>);

impl<'o> Geometries<'o> {
    /// Begins without any code.
    pub fn new(options: Options<'o>) -> Self {
        Self { options, known: HashMap::new() }
    }

    /// Returns the geometry of an identity's object. `length` is the length that one of its shards
    /// states.
    pub fn of(
        &mut self,
        identity: &Identity,
        length: Option<u64>,
    ) -> Result<Arc<Geometry>, String> {
        let numbers = [identity.packet, identity.stripes, identity.shards];
        let length = identity.length_hint.or(length);
        let planned = length.and_then(planned_bytes);
        let (layout, Identity { spec, pin, description, .. }) = (identity.layout(), identity);
        let shape = (spec.clone(), pin.clone(), layout.to_owned(), *description, numbers, planned);
        let rebuilt = || rebuild(identity, length, self.options).map(Arc::new);
        self.known.entry(shape).or_insert_with(rebuilt).clone()
    }
}

/// Rebuilds the geometry that an identity pins, for an object of about `length` bytes.
pub(crate) fn rebuild(
    identity: &Identity,
    length: Option<u64>,
    options: Options<'_>,
) -> Result<Geometry, String> {
    let spec: Spec = identity
        .spec
        .parse()
        .map_err(|error| format!("names a code that does not exist: {error}"))?;
    let pin = identity
        .pin
        .iter()
        .fold(Pin::new(), |pin, (name, numbers)| pin.with(name, numbers.iter().copied()));
    let code = Code::rebuild(&spec, &pin)
        .map_err(|error| format!("cannot be read by this version: {error}"))?;
    let (nodes, shards) = (code.node_count(), identity.shards);
    if nodes != shards as usize {
        return Err(format!("states {}, but {spec} has {nodes}", counted(shards, "shard")));
    }
    if layout_of(&code) != identity.layout() {
        return Err(format!("states layout {}, which {spec} does not have", identity.layout()));
    }
    if describe(&code) != identity.description {
        return Err(format!(
            "states a generator matrix that differs from that of {spec} with its pin"
        ));
    }
    let options = options(code.spec());
    let (packet, stripes) = (identity.packet as usize, identity.stripes as usize);
    Geometry::new(code, packet, stripes, length, options)
        .map_err(|error| format!("states impossible sizes: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::format::ObjectId;

    /// A header that states another layout is refused, and the other objects keep their geometry.
    #[test]
    fn headers_with_a_wrong_layout_stand_alone() {
        let code = Code::new(&"4+2".parse().unwrap()).unwrap();
        let mut right = Identity::new(&code, "object".as_ref(), ObjectId::new([1; 16]));
        (right.packet, right.stripes) = (64, 1);
        let bytes = minicbor::to_vec(&right).unwrap();
        // A text of 7 bytes becomes one of 5.
        let at = bytes.windows(8).position(|text| text == b"\x67packets").unwrap();
        let bytes = [&bytes[..at], b"\x65words", &bytes[at + 8..]].concat();
        let wrong: Identity = minicbor::decode(&bytes).unwrap();
        assert_eq!(wrong.layout(), "words");
        for order in [[&right, &wrong], [&wrong, &right]] {
            let options = |_: &Spec| CodecOptions::default();
            let mut geometries = Geometries::new(&options);
            for identity in order {
                let geometry = geometries.of(identity, None).map(|_| ());
                assert_eq!(geometry.is_ok(), *identity == right, "{geometry:?}");
            }
        }
    }
}
