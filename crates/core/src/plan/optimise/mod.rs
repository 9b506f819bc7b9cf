//! Passes: schedules in, cheaper or better ordered schedules out.
//!
//! [`direct`] makes the first schedule from rows; [`smart`] and [`slp`] reduce XORs; [`fuse`]
//! turns what is left of pairs into n-ary operations; [`order`] arranges. A pass takes and gives
//! single-assignment schedules, except for [`order::data_first`], which comes last.

pub(crate) mod by_source;
pub mod direct;
pub mod fuse;
pub mod order;
pub mod slp;
pub mod smart;
