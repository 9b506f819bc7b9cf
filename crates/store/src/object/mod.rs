//! The bytes of a shard and their arithmetic. The same shard may be kept in a file or on a node of
//! a volume.
//!
//! An [`ObjectLayout`](layout::ObjectLayout) has the shape of one object, and a
//! [`Segment`](segment::Segment) is the memory of the blocks that are encoded together.
//!
//! ```
//! use paritas_store::object::layout::{NewObject, ObjectLayout};
//!
//! let code = paritas::Code::new(&"4+2".parse()?)?;
//! let layout = ObjectLayout::new(code, "hello", NewObject::default())?;
//! let mut segment = layout.segment()?;
//! let bytes = segment.fill(0, &mut &b"hello, world"[..])?;
//! segment.make(0..6)?;
//! (0..6).for_each(|part| _ = segment.seal(part));
//!
//! // A reader has any four of the blocks.
//! let mut again = layout.segment()?;
//! again.begin(0, &layout.extent(bytes as u64));
//! for part in 2..6 {
//!     assert!(again.accept(part, &segment.block(part).concat()).is_empty());
//! }
//! again.make_data()?;
//! assert_eq!(again.data(bytes).concat(), b"hello, world");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod crew;
pub mod encode;
pub mod format;
pub mod geometries;
pub mod geometry;
pub mod layout;
pub mod names;
pub mod pieces;
pub mod segment;
