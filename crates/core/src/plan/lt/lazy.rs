//! The optimised decoder: nothing is computed before all is determined, and then nothing in vain.

use crate::define::lt::Peeling;
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::lt::Program;
use crate::plan::schedule::{Op, Slot};

/// Each data block from the block that gave it and the other neighbours of that.
pub(super) fn plan(peeling: &Peeling<'_>) -> Result<Plan> {
    let mut program = Program::new(peeling.graph());
    for found in peeling.found() {
        let neighbours = peeling.graph().row(found.block);
        let others = neighbours.iter().filter(|&&data| data != found.data);
        let mut sources = vec![program.input(found.block)];
        sources.extend(others.map(|&data| Slot::Output(data)));
        program.ops.push(Op::assign(Slot::Output(found.data), sources));
    }
    program.finish()
}
