//! The optimised decoder: nothing is computed before all is determined, and then nothing in vain.

use crate::define::lt::Peeling;
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::lt::program::Program;

/// Each data block from the block that gave it and the other neighbours of that.
pub(super) fn plan(peeling: &Peeling) -> Result<Plan> {
    let mut program = Program::new(peeling.graph());
    for found in peeling.found() {
        if let Some(block) = found.block {
            program.solve(found.data, block);
        }
    }
    program.finish()
}
