//! DO IT: schedules over bytes.
//!
//! A [`Program`](program::Program) is a schedule bound to buffers: which packet of which buffer
//! each input and output is. A kernel compiles a program once and runs it over any number of
//! stripes. [`select`] is the one place that knows which kernels this processor has;
//! `parallel` splits stripes over threads. All `unsafe` is below
//! [`kernel`], [`words`] and `jit`.

pub(crate) mod blocks;
pub(crate) mod jit;
pub mod kernel;
pub(crate) mod pages;
pub(crate) mod parallel;
pub mod program;
pub mod select;
#[cfg(test)]
mod tests;
pub mod words;
