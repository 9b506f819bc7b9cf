//! Cuts a long schedule into pieces that run in turn.
//!
//! Straight-line code of thousands of operations exceeds the instruction cache, and its
//! intermediate results exceed the registers. Some schedules consist of parts that have little in
//! common, such as the stripes of a group of delayed parity generation. They are cut between these
//! parts:
//!
//! - Inputs are ordered so that those of a stripe are neighbours.
//! - An operation belongs to the position of the last input that it depends on.
//! - A cut is made where few values pass from one side to the other.
//! - If an operation uses several values of an earlier piece, they are summed up in that piece, and
//!   the sum is kept for the later one.
//!
//! On AVX-512, BB-DPG (16, 4, 8) encodes at 12 GB/s as one program, which is slower than eight
//! stripes that are each encoded with all eight parities. In pieces it encodes at 24 GB/s.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::error::Result;
use crate::limits::{MOST_UNEVEN_CUT, OPERANDS_A_CROSSING, PIECES_FROM, PIECES_JOINED};
use crate::plan::cost::Cost;
use crate::plan::schedule::{Op, Schedule, Slot};

/// A value that a piece reads from outside or leaves there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PieceValue {
    /// An input of the whole schedule.
    Input(u32),
    /// An output of the whole schedule.
    Output(u32),
    /// A value that one piece keeps for another, by number.
    Kept(u32),
}

/// A part of a schedule, and the values that its inputs and outputs stand for.
#[derive(Debug)]
pub(crate) struct SchedulePiece {
    pub(crate) schedule: Schedule,
    pub(crate) inputs: Vec<PieceValue>,
    pub(crate) outputs: Vec<PieceValue>,
}

/// Returns the pieces of a long schedule in the order in which they run, and the number of values
/// kept between them. Returns `None` if the schedule is better left whole. Inputs are ordered by
/// their `ranks`, and cuts are made only between different ranks.
///
/// # Errors
/// Never, for a valid schedule.
pub(crate) fn cut(
    schedule: &Schedule,
    ranks: &[usize],
) -> Result<Option<(Vec<SchedulePiece>, usize)>> {
    if !schedule.is_single_assignment() || Cost::of(schedule).total <= PIECES_FROM {
        return Ok(None);
    }
    let (by_rank, positions) = sorted(ranks);
    let mut cuts = Vec::new();
    CutSizes::new(schedule, &by_rank, &positions).cut(0..schedule.inputs(), &mut cuts);
    if cuts.is_empty() {
        return Ok(None);
    }
    let mut cutting = Cutting::new(cuts, positions);
    schedule.ops().iter().for_each(|op| cutting.place(op));
    cutting.join();
    cutting.pieces().map(Some)
}

/// Returns the ranks in order, and the position of each input in this order.
fn sorted(ranks: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut inputs: Vec<usize> = (0..ranks.len()).collect();
    inputs.sort_by_key(|&input| ranks[input]);
    let mut positions = vec![0; ranks.len()];
    inputs.iter().enumerate().for_each(|(position, &input)| positions[input] = position);
    (inputs.into_iter().map(|input| ranks[input]).collect(), positions)
}

/// A source of an operation: the last position that it depends on, and whether it is an input,
/// which any piece can read.
type Origin = (usize, bool);

/// For each operation, the origins of its sources, ascending.
fn origins(schedule: &Schedule, positions: &[usize]) -> Vec<Vec<Origin>> {
    let mut of_made: HashMap<Slot, usize> = HashMap::new();
    let of_op = |op: &Op| {
        let of_source = |source: &Slot| match source {
            Slot::Input(n) => (positions[*n as usize], true),
            made => (of_made.get(made).copied().unwrap_or(0), false),
        };
        let mut origins: Vec<Origin> = op.sources.iter().map(of_source).collect();
        origins.sort_unstable();
        of_made.insert(op.target, origins.last().map_or(0, |&(last, _)| last));
        origins
    };
    schedule.ops().iter().map(of_op).collect()
}

/// For each place between two positions, the size of the part of the schedule that lies before it
/// or crosses it.
struct CutSizes {
    /// Whether the place is between two ranks.
    is_between: Vec<bool>,
    /// Operands before the place.
    operands: Vec<usize>,
    /// Operands of the operations that lie wholly before it.
    done: Vec<usize>,
    /// Outputs of these operations.
    outputs: Vec<usize>,
    /// Operations after the place that read a value computed before it (inputs can be read on
    /// either side).
    crossing: Vec<usize>,
}

impl CutSizes {
    fn new(schedule: &Schedule, by_rank: &[usize], positions: &[usize]) -> Self {
        let count = schedule.inputs() + 1;
        let is_between = (0..count)
            .map(|at| at > 0 && at < by_rank.len() && by_rank[at - 1] != by_rank[at])
            .collect();
        let (mut operands, mut done, mut outputs) =
            (vec![0; count], vec![0; count], vec![0; count]);
        let (mut enter, mut leave) = (vec![0; count], vec![0; count]);
        for (op, origins) in schedule.ops().iter().zip(origins(schedule, positions)) {
            let Some(&(last, _)) = origins.last() else { continue };
            let first = match origins[..] {
                [(_, true), (second, _), ..] => second,
                _ => origins[0].0,
            };
            enter[first + 1] += 1;
            leave[last + 1] += 1;
            outputs[last + 1] += usize::from(matches!(op.target, Slot::Output(_)));
            done[last + 1] += origins.len();
            origins.iter().for_each(|&(position, _)| operands[position + 1] += 1);
        }
        let totals = |counts: Vec<usize>| -> Vec<usize> {
            let add = |total: &mut usize, count| {
                *total += count;
                Some(*total)
            };
            counts.into_iter().scan(0, add).collect()
        };
        let (enter, leave) = (totals(enter), totals(leave));
        let crossing = enter.iter().zip(&leave).map(|(enter, leave)| enter - leave).collect();
        Self {
            is_between,
            operands: totals(operands),
            done: totals(done),
            outputs: totals(outputs),
            crossing,
        }
    }

    /// Adds the places at which a range is best cut, ascending.
    fn cut(&self, range: Range<usize>, cuts: &mut Vec<usize>) {
        let places = range.start + 1..range.end;
        let least = (self.operands[range.end] - self.operands[range.start]) / MOST_UNEVEN_CUT;
        let is_cut = |&place: &usize| {
            let before = |of: &[usize]| of[place] - of[range.start];
            let behind = |of: &[usize]| of[range.end] - of[place];
            let operands = before(&self.done).min(behind(&self.operands));
            let outputs = before(&self.outputs).min(behind(&self.outputs));
            // If a cut divided a single stripe, all outputs would depend on both sides.
            let crossing = self.crossing[place];
            let pays = operands >= least.max(OPERANDS_A_CROSSING * crossing);
            self.is_between[place] && pays && crossing <= 2 * outputs
        };
        let best = places.filter(is_cut).min_by_key(|&place| self.crossing[place]);
        if let Some(place) = best {
            self.cut(range.start..place, cuts);
            cuts.push(place);
            self.cut(place..range.end, cuts);
        }
    }
}

/// A source of an operation while pieces are being built.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PieceSource {
    Input(u32),
    /// The result of an operation, by number.
    Made(usize),
}

/// An operation: the number of its result, and its sources.
type Making = (usize, Vec<PieceSource>);

struct Cutting {
    cuts: Vec<usize>,
    positions: Vec<usize>,
    /// Operations of each piece.
    pieces: Vec<Vec<Making>>,
    /// For each result, its piece, and the number of the output if the result is an output.
    made: Vec<(usize, Option<u32>)>,
    numbers: HashMap<Slot, usize>,
}

impl Cutting {
    fn new(cuts: Vec<usize>, positions: Vec<usize>) -> Self {
        let pieces = vec![Vec::new(); cuts.len() + 1];
        Self { cuts, positions, pieces, made: Vec::new(), numbers: HashMap::new() }
    }

    /// Puts an operation into the last piece that it depends on. If it uses more than one value of
    /// an earlier piece, their sum is computed in that piece.
    fn place(&mut self, op: &Op) {
        let mut by_piece: BTreeMap<usize, Vec<PieceSource>> = BTreeMap::new();
        for slot in &op.sources {
            let source = match (slot, self.numbers.get(slot)) {
                (Slot::Input(n), _) => PieceSource::Input(*n),
                (_, number) => PieceSource::Made(number.copied().unwrap_or_default()),
            };
            by_piece.entry(self.piece_of(source)).or_default().push(source);
        }
        let (last, mut sources) = by_piece.pop_last().unwrap_or_default();
        for (piece, of_piece) in by_piece {
            match of_piece[..] {
                [single] => sources.push(single),
                _ => sources.push(PieceSource::Made(self.make(piece, of_piece, None))),
            }
        }
        let output = if let Slot::Output(n) = op.target { Some(n) } else { None };
        let number = self.make(last, sources, output);
        self.numbers.insert(op.target, number);
    }

    fn piece_of(&self, source: PieceSource) -> usize {
        match source {
            PieceSource::Input(n) => {
                let position = self.positions[n as usize];
                self.cuts.partition_point(|&cut| cut <= position)
            }
            PieceSource::Made(number) => self.made[number].0,
        }
    }

    fn make(&mut self, piece: usize, sources: Vec<PieceSource>, output: Option<u32>) -> usize {
        let number = self.made.len();
        self.made.push((piece, output));
        self.pieces[piece].push((number, sources));
        number
    }

    /// Joins neighbouring pieces as long as the result is short.
    fn join(&mut self) {
        let mut joined: Vec<(usize, Vec<Making>)> = Vec::new();
        // For each piece, the joined piece that it becomes part of.
        let mut places = Vec::with_capacity(self.pieces.len());
        for ops in std::mem::take(&mut self.pieces) {
            let operands: usize = ops.iter().map(|(_, sources)| sources.len()).sum();
            match joined.last_mut().filter(|(others, _)| others + operands <= PIECES_JOINED) {
                Some((total, all)) => {
                    *total += operands;
                    all.extend(ops);
                }
                None => joined.push((operands, ops)),
            }
            places.push(joined.len() - 1);
        }
        self.made.iter_mut().for_each(|(piece, _)| *piece = places[*piece]);
        self.pieces = joined.into_iter().map(|(_, ops)| ops).collect();
    }

    /// Returns the pieces that have operations, and the number of values that they keep for each
    /// other.
    fn pieces(self) -> Result<(Vec<SchedulePiece>, usize)> {
        let mut kept: HashMap<usize, u32> = HashMap::new();
        for (piece, ops) in self.pieces.iter().enumerate() {
            for source in ops.iter().flat_map(|(_, sources)| sources) {
                if let &PieceSource::Made(number) = source
                    && self.made[number].0 != piece
                    && self.made[number].1.is_none()
                {
                    let next = kept.len() as u32;
                    kept.entry(number).or_insert(next);
                }
            }
        }
        let value = |source: PieceSource| match source {
            PieceSource::Input(n) => Some(PieceValue::Input(n)),
            PieceSource::Made(number) => match self.made[number].1 {
                Some(output) => Some(PieceValue::Output(output)),
                None => kept.get(&number).map(|&number| PieceValue::Kept(number)),
            },
        };
        let busy = self.pieces.iter().filter(|ops| !ops.is_empty());
        let pieces = busy.map(|ops| piece(ops, &value)).collect::<Result<Vec<_>>>()?;
        Ok((pieces, kept.len()))
    }
}

/// Makes a piece from its operations. `value` tells which outside value a source is, if it is one.
fn piece(
    ops: &[Making],
    value: &dyn Fn(PieceSource) -> Option<PieceValue>,
) -> Result<SchedulePiece> {
    let mut slots: HashMap<PieceSource, Slot> = HashMap::new();
    let (mut inputs, mut outputs, mut temps) = (Vec::new(), Vec::new(), 0);
    for &(number, _) in ops {
        let made = PieceSource::Made(number);
        let slot = match value(made) {
            Some(outside) => {
                outputs.push(outside);
                Slot::Output(outputs.len() as u32 - 1)
            }
            None => {
                temps += 1;
                Slot::Temp(temps - 1)
            }
        };
        slots.insert(made, slot);
    }
    let mut schedule = Vec::with_capacity(ops.len());
    for (number, sources) in ops {
        let mut slot = |source: &PieceSource| {
            *slots.entry(*source).or_insert_with(|| {
                inputs.extend(value(*source));
                Slot::Input(inputs.len() as u32 - 1)
            })
        };
        let sources = sources.iter().map(&mut slot).collect();
        schedule.push(Op::assign(slot(&PieceSource::Made(*number)), sources));
    }
    let schedule = Schedule::new(inputs.len(), temps as usize, outputs.len(), schedule)?;
    Ok(SchedulePiece { schedule, inputs, outputs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::cells::{CellId, CellSet, Role};
    use crate::define::code::Code;
    use crate::plan::interpret::interpret;

    /// Runs pieces on bytes and returns the outputs.
    fn run(
        pieces: &[SchedulePiece],
        kept: usize,
        inputs: &[Vec<u8>],
        outputs: usize,
    ) -> Vec<Vec<u8>> {
        let (mut outside, mut between) = (vec![Vec::new(); outputs], vec![Vec::new(); kept]);
        for SchedulePiece { schedule, inputs: taken, outputs: left } in pieces {
            let given: Vec<&[u8]> = taken
                .iter()
                .map(|value| match *value {
                    PieceValue::Input(n) => &inputs[n as usize][..],
                    PieceValue::Output(n) => &outside[n as usize][..],
                    PieceValue::Kept(n) => &between[n as usize][..],
                })
                .collect();
            let made = interpret(schedule, &given).unwrap();
            for (value, bytes) in left.iter().zip(made) {
                match *value {
                    PieceValue::Output(n) => outside[n as usize] = bytes,
                    PieceValue::Kept(n) => between[n as usize] = bytes,
                    PieceValue::Input(_) => panic!("an input is made"),
                }
            }
        }
        outside
    }

    /// A question's schedule, the ranks of its inputs, and the pieces that it is cut into.
    struct Cut {
        schedule: Schedule,
        pieces: Option<(Vec<SchedulePiece>, usize)>,
    }

    impl Cut {
        fn of(code: &Code, (have, want): (CellSet, CellSet)) -> Self {
            let plan = code.schedule(&have, &want).unwrap();
            let last = |&cell: &CellId| *code.row(cell).last().unwrap() as usize;
            let ranks: Vec<usize> =
                plan.inputs().iter().map(|cell| last(cell) / code.lane_rows()).collect();
            let schedule = plan.into_schedule();
            Self { pieces: cut(&schedule, &ranks).unwrap(), schedule }
        }

        fn totals(&self) -> Vec<usize> {
            let pieces = self.pieces.iter().flat_map(|(pieces, _)| pieces);
            pieces.map(|piece| Cost::of(&piece.schedule).total).collect()
        }

        /// Whether the pieces compute the same as the schedule.
        fn is_right(&self) -> bool {
            let Some((pieces, kept)) = &self.pieces else { return true };
            let fill = |i: usize| (0..9).map(|b| (31 * i + 7 * b * b + i * i) as u8).collect();
            let inputs: Vec<Vec<u8>> = (0..self.schedule.inputs()).map(fill).collect();
            let given: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            let expected = interpret(&self.schedule, &given).unwrap();
            run(pieces, *kept, &inputs, self.schedule.outputs()) == expected
        }
    }

    fn encoding(code: &Code) -> (CellSet, CellSet) {
        (code.stored(Role::Data), code.made_in(1))
    }

    fn worst_loss(code: &Code) -> (CellSet, CellSet) {
        let mut have = code.cells_of(code.nodes());
        let lost = code.cells_of(code.nodes().take(code.tolerance()));
        lost.iter().for_each(|cell| have.remove(cell));
        (have, lost)
    }

    #[test]
    fn groups_are_cut_between_stripes_and_compute_the_same() {
        for (spec, most) in [
            ("bbdpg:k=9,m=3,m2=5", [1, 1]),
            ("bbdpg:k=12,m=3,m2=6", [2, 3]),
            ("dpg:k=12,m=3,m2=6,interleave=first", [2, 3]),
            ("dpg:k=12,m=3,m2=6,interleave=all", [2, 3]),
            ("bbdpg:k=16,m=4,m2=8", [4, 8]),
        ] {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            for (question, most) in [encoding(&code), worst_loss(&code)].into_iter().zip(most) {
                let cut = Cut::of(&code, question);
                assert!(cut.is_right(), "{spec}");
                assert!((1..=most).contains(&cut.totals().len()), "{spec}: {:?}", cut.totals());
                // Sums for later pieces add some operands.
                let most = PIECES_JOINED + PIECES_JOINED / 8;
                assert!(cut.totals().iter().all(|&t| t <= most), "{spec}: {:?}", cut.totals());
            }
            let promotion = code.promotion(2).unwrap();
            assert!(Cut::of(&code, (promotion.reads, promotion.makes)).is_right(), "{spec}");
        }
    }

    #[test]
    fn codes_of_one_stripe_stay_whole() {
        for spec in ["20+4", "24+8", "32+16", "cauchy:k=10,m=4,w=8", "star:k=31", "rdp:k=30"] {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            let cut = Cut::of(&code, encoding(&code));
            assert!(cut.pieces.is_none(), "{spec}: {:?}", cut.totals());
        }
    }
}
