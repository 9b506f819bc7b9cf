//! The optimised decoder: it computes nothing before all data is determined, and then only what is
//! needed.

use crate::define::lt::Peeling;
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::lt::program::LtProgram;

/// Computes each data block from the block that gave it and that block's other neighbours.
pub(super) fn plan(peeling: &Peeling) -> Result<Plan> {
    let mut program = LtProgram::new(peeling.graph());
    for found in peeling.found() {
        if let Some(block) = found.block {
            program.solve(found.data, block);
        }
    }
    program.finish()
}
