//! Passes: each turns a schedule into a cheaper or better ordered schedule.
//!
//! [`direct`] makes the first schedule from rows; [`smart`], [`matching`] and [`slp`] reduce XORs;
//! `groups` does what `slp` does, a few rows at a time, for programs that are too big for it;
//! `parts` finds rows that can be shortened by themselves; `reduce` runs the pass that the caller
//! chose; [`fuse`] merges the remaining pairs into n-ary operations; [`refine`] undoes parts of a
//! schedule and computes them anew; [`order`] arranges. A pass takes and returns single-assignment
//! schedules, except for [`order::data_first`], which comes last. Internally, passes rewrite
//! `rows`; `passes` has them as functions of schedules.

pub(crate) mod by_source;
pub(crate) mod direct;
pub(crate) mod fuse;
pub(crate) mod groups;
#[cfg(feature = "research")]
pub(crate) mod matching;
pub(crate) mod order;
pub(crate) mod parts;
#[cfg(feature = "research")]
pub mod passes;
pub(crate) mod reduce;
pub(crate) mod refine;
pub(crate) mod rows;
pub(crate) mod slp;
pub(crate) mod smart;
