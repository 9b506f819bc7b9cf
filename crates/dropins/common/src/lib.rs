//! Code that the drop-in replacements of other libraries share.
//!
//! With every call, callers of those libraries pass a table or a matrix in their own memory,
//! usually the same one. A program is compiled once for each content ([`Programs`]). It is found
//! again by comparing the whole content, because a caller may rewrite its table at any time.
//! [`Regions`] passes a caller's memory regions to a program as shards.

#![allow(unsafe_code)]

mod programs;
mod regions;

use paritas::code::{BitMatrix, CodeBuilder, Field, SymbolMatrix};
pub use programs::{Kept, Key, Programs, Recent};
pub use regions::Regions;

use paritas::{Code, Codec, CodecOptions, Prepared, Result, Spec};

/// Options of all programs: one thread, because the replaced libraries run on the caller's thread
/// only.
fn options() -> CodecOptions {
    CodecOptions::default().threads(1)
}

/// Returns the code whose parity words are the product of the matrix `rows` and the data words.
fn words(field: Field, rows: Vec<Vec<u32>>) -> Result<Code> {
    let data = rows.first().map_or(0, Vec::len);
    let mut builder = CodeBuilder::new(data + rows.len());
    builder.words(SymbolMatrix::new(field, data, rows)?);
    builder.finish(Spec::new("caller"), 0)
}

/// Prepares the product of a matrix over GF(2^w) and words of w bits. The matrix has one row for
/// each target.
///
/// # Errors
/// If the matrix is empty or too large to plan.
pub fn product(field: Field, rows: Vec<Vec<u32>>) -> Result<Prepared> {
    Codec::with_options(words(field, rows)?, options())?.encoder()
}

/// Prepares the addition of `factors[i]` times one source to each target i.
///
/// # Errors
/// If all factors are 0, so that there is nothing to add.
pub fn multiples(field: Field, factors: &[u32]) -> Result<Prepared> {
    let rows = factors.iter().map(|&factor| vec![factor]).collect();
    Codec::with_options(words(field, rows)?, options())?.difference_updater(0)
}

/// Prepares the product of a bit matrix and packets of `packet` bytes. A shard has `w` packets in
/// each strip, so a data shard takes `w` columns of the matrix and a parity shard `w` rows.
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
