//! LT codes as codes: a graph drawn from a seed, its blocks dealt out to nodes in turn.
//!
//! The numbers that decide the graph are pinned (see [`LtCode::pin`]). Which losses are recoverable
//! depends on the graph, and so on chance. So the tolerance is 0. Even all blocks together may fail
//! to determine the data, if there are few of them.

use crate::define::builder::CodeBuilder;
use crate::define::code::Code;
use crate::define::families::Family;
use crate::define::lt::{self, LtCode};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::{Error, Result};

pub(super) const FAMILY: Family = Family {
    name: lt::FAMILY,
    summary: "LT: every block the XOR of a few data blocks; somewhat more than any k of n blocks are enough",
    limits: "k up to 65536, n from k to 2^20 blocks on nodes=16, with 2^24 neighbours in all; c above 0 and up to 100, delta from 0.000000001 \
             up to 1; variant=uniform, plain, originals[+singles] or coverage, [+decodable]; seed=0",
    example: "lt:k=64,n=128",
    define,
    rebuild: |spec, pin| rebuild(spec, pin),
};

/// Upper bound on the total number of neighbours of all blocks. It keeps the memory for reading a
/// header within that of a segment.
const MAX_EDGES: usize = 1 << 24;

fn define(spec: &Spec) -> Result<Code> {
    // Before `LtCode::new` draws graphs in search of a good one.
    expect_few_edges(&LtCode::parse(spec)?)?;
    build(&LtCode::new(spec)?)
}

fn rebuild(spec: &Spec, pin: &Pin) -> Result<Code> {
    build(&LtCode::rebuild(spec, pin)?)
}

fn build(lt: &LtCode) -> Result<Code> {
    expect_few_edges(lt)?;
    let graph = lt.graph()?;
    let mut builder = CodeBuilder::new(lt.nodes());
    builder.graph(&graph).pin(lt.pin());
    builder.finish(lt.spec(), 0)
}

fn expect_few_edges(lt: &LtCode) -> Result<()> {
    match lt.parameters().edges() {
        0..=MAX_EDGES => Ok(()),
        edges => Err(Error::parameters(format!(
            "{}: {edges} neighbours are more than the {MAX_EDGES} of a stored code; take fewer blocks, \
             a larger c or less coverage",
            lt.spec()
        ))),
    }
}
