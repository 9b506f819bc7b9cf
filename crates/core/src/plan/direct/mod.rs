//! Direct answers: wanted cells as sums of cells at hand, as the equations give them.
//!
//! A new question is answered without a plan. Its equations are solved, and a kernel reads the
//! result as data: the packets whose XOR each wanted packet is ([`packets`]), the bytes by which
//! the words of each shard are multiplied ([`words`]), or the transform that computes all words
//! ([`crate::plan::transform`]). That takes about as long as running over a few kilobytes. Nothing
//! is shortened, ordered, compiled or proved. For questions that are asked about many bytes, a plan
//! is made; it runs faster, but takes a hundred times as long to make.
//!
//! The solution is checked before it is used, on a *sample*: a strip of every buffer, with random
//! data and the parity that the generator gives for it. The kernel itself runs over the sample, so
//! one look covers the solution and the kernel. An error in a cell is a sum of cells that is not
//! zero for all data, and each random bit misses it with a chance of at most one half: a packet of
//! the sample has 512 random bits. A sample of words has 64 random bits, and each random byte
//! misses an error with a chance of 1 in 256; more would take longer than the first call of a wide
//! code.

mod packets;
pub(crate) mod sums;
mod words;

use crate::define::cells::CellSet;
use crate::define::code::Code;
use crate::define::made::FirstMade;
use crate::define::points::CodePoints;
use crate::plan::chance::Chance;
use crate::plan::direct::packets::GeneratorBits;
use crate::plan::direct::sums::Sums;
use crate::plan::layout::Layout;
use crate::plan::machine::LINE;

/// The seed of the samples.
const SEED: u64 = 0x70_6477;

/// Answers questions about one code over buffers of one layout.
#[derive(Debug)]
pub(crate) struct DirectSolver {
    form: Form,
    /// For each buffer a strip with packets of a cache line, made when it is first needed.
    sample: FirstMade<Vec<Vec<u8>>>,
}

#[derive(Debug)]
enum Form {
    Packets(GeneratorBits),
    /// The points of the nodes, if the code has points; found when they are first needed.
    Words(FirstMade<Option<CodePoints>>),
}

impl DirectSolver {
    /// Prepares for the questions of a code; `None` if they need plans: buffers have different
    /// numbers of rows, words have several bytes, data is stored nowhere, or the generator is too
    /// large.
    pub(crate) fn new(code: &Code, layout: &Layout) -> Option<Self> {
        let form = match code.symbols() {
            Some(_) => words::are_bytes(code).then(|| Form::Words(FirstMade::new()))?,
            None => Form::Packets(GeneratorBits::new(code, layout)?),
        };
        Some(Self { form, sample: FirstMade::new() })
    }

    /// Returns how the cells of `want` are computed from those of `have`; `None` if the question
    /// needs a plan. A plan is needed if the question has no answer, if it wants cells at hand, or
    /// if the cells at hand do not determine all data.
    pub(crate) fn solve(
        &self,
        code: &Code,
        layout: &Layout,
        have: &CellSet,
        want: &CellSet,
    ) -> Option<Sums> {
        match &self.form {
            Form::Packets(generator) => generator.solve(code, layout, have, want),
            Form::Words(points) => words::answer(code, points, have, want),
        }
    }

    /// Returns the sample: for each buffer a strip with packets of a cache line.
    pub(crate) fn sample(&self, code: &Code, layout: &Layout) -> &[Vec<u8>] {
        self.sample.get(|| {
            let mut chance = Chance::new(SEED);
            match &self.form {
                Form::Packets(generator) => generator.sample(code, layout, || {
                    (0..LINE / 8).flat_map(|_| chance.bits().to_le_bytes()).collect()
                }),
                Form::Words(_) => words::sample(code, || chance.bits()),
            }
        })
    }
}
