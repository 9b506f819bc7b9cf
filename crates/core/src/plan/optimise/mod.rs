//! Passes: schedules in, cheaper or better ordered schedules out.
//!
//! [`direct`] makes the first schedule from rows; [`smart`], [`matching`] and [`slp`] reduce XORs;
//! `groups` does what `slp` does for programs too big for it, a few rows at a time;
//! [`fuse`] turns what is left of pairs into n-ary operations; [`refine`] takes parts of a
//! schedule back and does them again; [`order`] arranges. A pass takes and gives single-assignment
//! schedules, except for [`order::data_first`], which comes last. Inside, passes rewrite
//! `rows`.

pub(crate) mod by_source;
pub mod direct;
pub mod fuse;
pub(crate) mod groups;
pub mod matching;
pub mod order;
pub mod refine;
pub(crate) mod rows;
pub mod slp;
pub mod smart;
