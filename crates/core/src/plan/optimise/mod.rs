//! Passes: each turns a schedule into a cheaper or better ordered schedule.
//!
//! [`direct`] makes the first schedule from rows; [`smart`], [`matching`] and [`slp`] reduce XORs;
//! `groups` does what `slp` does, a few rows at a time, for programs that are too big for it;
//! `parts` finds rows that can be shortened by themselves;
//! [`fuse`] merges the remaining pairs into n-ary operations; [`refine`] undoes parts of a schedule
//! and computes them anew; [`order`] arranges. A pass takes and returns single-assignment
//! schedules, except for [`order::data_first`], which comes last. Internally, passes rewrite
//! `rows`.

pub(crate) mod by_source;
pub mod direct;
pub mod fuse;
pub(crate) mod groups;
pub mod matching;
pub mod order;
pub(crate) mod parts;
pub mod refine;
pub(crate) mod rows;
pub mod slp;
pub mod smart;
