//! DO IT: runs plans over bytes.
//!
//! A plan arrives here as an [`Execution`](crate::plan::execution::Execution): programs bound to
//! buffers, with the instructions of every variant. A kernel prepares each program once and runs it
//! over any number of stripes. [`dispatch`] is the only place that knows which kernels this
//! processor has. [`executable`] checks the buffers of a call and hands its stripes to [`threads`].
//! All `unsafe` code of the crate is in this folder.

pub(crate) mod blocks;
pub(crate) mod buffers;
pub(crate) mod claimed;
pub(crate) mod direct;
pub(crate) mod dispatch;
pub(crate) mod executable;
pub(crate) mod jit;
pub(crate) mod long;
pub(crate) mod pages;
#[cfg(test)]
mod tests;
pub(crate) mod threads;
pub(crate) mod tiled;
