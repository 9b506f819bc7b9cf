//! The functions that the WebAssembly module exports.
//!
//! The caller asks for room ([`paritas_room`]), writes a message there, and calls
//! [`paritas_answer`]. The answer stays at the address [`paritas_answer_start`] until the next
//! call. This code does not follow pointers: the caller writes into the module's memory from
//! outside.

// Rust requires `unsafe` for an exported name. There is no other unsafe code.
#![allow(unsafe_code)]

use std::cell::RefCell;

use crate::answer::answer_to;
use crate::kept::KeptCodecs;

#[derive(Default)]
struct Exchange {
    kept: KeptCodecs,
    message: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static EXCHANGE: RefCell<Exchange> = RefCell::default();
}

/// Makes room for a message of `bytes` bytes, and returns its address; null if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn paritas_room(bytes: usize) -> *mut u8 {
    EXCHANGE.with_borrow_mut(|exchange| {
        // The memory of the last exchange is freed before the same amount is allocated again.
        exchange.answer = Vec::new();
        exchange.message = Vec::new();
        if exchange.message.try_reserve_exact(bytes).is_err() {
            return std::ptr::null_mut();
        }
        exchange.message.resize(bytes, 0);
        exchange.message.as_mut_ptr()
    })
}

/// Answers the message, and returns the number of bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn paritas_answer() -> usize {
    EXCHANGE.with_borrow_mut(|exchange| {
        let message = std::mem::take(&mut exchange.message);
        exchange.answer = answer_to(&mut exchange.kept, &message);
        exchange.answer.len()
    })
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn paritas_answer_start() -> *const u8 {
    EXCHANGE.with_borrow(|exchange| exchange.answer.as_ptr())
}
