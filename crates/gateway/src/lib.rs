//! An S3 gateway over a volume.
//!
//! Programs that speak S3 put objects into a volume and get them out of it, as if it were a server:
//! buckets are the first folders of names. The gateway holds no state. Any number of gateways,
//! and the command, may work on one volume at the same time, and its nodes stay plain folders and
//! buckets.
//!
//! The way of a request: `door` takes connections and bounds them, and `patience` tells when a
//! client is given up; `arrival` has the bodies on their way in, `chunks` their framing; the
//! adapter s3s checks signatures and reads requests, for the bucket that `host` or the path names;
//! `keys` says what a key opens, and `demands` what is offered; `store` hands the operation to
//! `objects`, `listing` or `uploads`; these call the volume, with `body` between the connection and
//! the volume's threads. `facts` is what S3 says of an object beside its bytes, as the notes of its
//! manifest keep it.
//!
//! What a client gets is what the volume guarantees: an acknowledged object is durable and found by
//! every reader, and an answer with wrong bytes never ends as if it were complete.

mod arrival;
mod body;
mod chunks;
mod conditions;
mod continued;
mod delayed;
mod demands;
mod document;
mod door;
mod errors;
mod facts;
mod findings;
mod headers;
mod held;
mod host;
mod judge;
mod keys;
mod listing;
mod metrics;
mod names;
mod objects;
mod pages;
mod patience;
mod room;
#[cfg(test)]
mod simulation;
mod store;
mod traffic;
mod uploads;
mod whole;

pub use door::{DoorOptions, Gateway, Tls};
pub use findings::UpkeepFindings;
pub use keys::Keys;
