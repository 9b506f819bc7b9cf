//! What the drop-in replacements of other libraries share.
//!
//! Callers of those libraries pass a table or a matrix in their own memory with every call, and
//! mostly the same one. A program is compiled once for each content ([`Programs`]), and found again
//! by comparing the whole content, because a caller may rewrite its table at any time. Regions of
//! memory become shards ([`Regions`]).

#![allow(unsafe_code)]

mod programs;
mod regions;

use paritas::code::{BitMatrix, CodeBuilder, Field, SymbolMatrix};
pub use programs::{Kept, Key, Programs, Recent};
pub use regions::Regions;

use paritas::{Code, Codec, CodecOptions, Prepared, Result, Spec};

/// Options of all programs. The libraries that are replaced use the caller's thread alone.
fn options() -> CodecOptions {
    CodecOptions::default().threads(1)
}

/// Returns the code whose parity words are sums of multiples of data words.
fn words(field: Field, rows: Vec<Vec<u32>>) -> Result<Code> {
    let data = rows.first().map_or(0, Vec::len);
    let mut builder = CodeBuilder::new(data + rows.len());
    builder.words(SymbolMatrix::new(field, data, rows)?);
    builder.finish(Spec::new("caller"), 0)
}

/// Prepares the product of a matrix over GF(2^w), a row for each target, and words of w bits.
///
/// # Errors
/// If the matrix is empty or larger than planning bears.
pub fn product(field: Field, rows: Vec<Vec<u32>>) -> Result<Prepared> {
    Codec::with_options(words(field, rows)?, options())?.encoder()
}

/// Prepares adding a multiple of one source to each target.
///
/// # Errors
/// If all factors are 0, so that there is nothing to add.
pub fn multiples(field: Field, factors: &[u32]) -> Result<Prepared> {
    let rows = factors.iter().map(|&factor| vec![factor]).collect();
    Codec::with_options(words(field, rows)?, options())?.difference_updater(0)
}

/// Prepares the product of a bit matrix and packets of `packet` bytes. A shard has `w` packets in a
/// strip, so `w` columns or rows of the matrix.
///
/// # Errors
/// If there is nothing to compute.
pub fn packets(matrix: &BitMatrix, w: usize, packet: usize) -> Result<Prepared> {
    let (data, parity) = (matrix.columns() / w, matrix.rows() / w);
    let mut builder = CodeBuilder::new(data + parity);
    let cells = builder.data_nodes(data, w);
    for node in 0..parity {
        let block = |column: usize| {
            let mut block = BitMatrix::zero(w, w);
            for row in 0..w {
                for bit in (0..w).filter(|bit| matrix.get(node * w + row, column * w + bit)) {
                    block.set(row, bit, true);
                }
            }
            block
        };
        let blocks: Vec<BitMatrix> = (0..data).map(block).collect();
        builder.blocks(data + node, &cells, &blocks);
    }
    let code = builder.finish(Spec::new("caller"), 0)?;
    Codec::with_options(code, options().packet(packet))?.encoder()
}
