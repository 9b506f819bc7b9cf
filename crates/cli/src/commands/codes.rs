//! `paritas codes`: lists the families, or describes one code.

use std::path::Path;

use paritas::code::{CellId, Promotion, Role};
use paritas::erasure::{Survival, survival};
use paritas::{Code, FAMILIES, Family, Spec};
use paritas_report::codes::{
    CodeLine, CodeStageEntry, FamilyLine, FasterCodeEntry, FiguresFields, SurvivedLossesEntry,
};
use paritas_shards::{ReceptionReport, counted};

use crate::args::codes::Codes;
use crate::commands::operations::places;
use crate::commands::picture::{self, parity_rows};
use crate::commands::{Outcome, shards};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Largest number of bits of a matrix that is printed. Each bit is a byte of text.
const MOST_BITS: usize = 100_000_000;

/// Largest number of losses that are tried for each number of lost nodes.
const TRIED_LOSSES: u64 = 10_000;

/// Number of ones above which a Cauchy code in packets encodes slower than a code in words of the
/// same k and m, on a processor with GFNI. On AVX2 packets stay faster (128+32: 2.2 and 1.8 GB/s).
const SLOW_ONES: usize = 20_000;

/// Measured speeds of encoding in packets and in words: k, m, ones in packets, GB/s in packets,
/// GB/s in words. Measured with `paritas bench --op encode --threads 1` (a Xeon of 2.8 GHz with
/// AVX-512 and GFNI, 22 November 2026, 90th percentile). With fewer ones, packets are as fast: 64+8
/// reaches 25 and 24 GB/s.
const MEASURED: [(usize, usize, usize, f64, f64); 7] = [
    (64, 16, 22_775, 12.4, 16.8),
    (64, 32, 46_677, 6.4, 8.5),
    (100, 24, 55_780, 8.2, 11.1),
    (128, 16, 60_606, 4.8, 11.8),
    (128, 32, 124_267, 2.0, 8.3),
    (200, 56, 348_686, 1.0, 4.6),
    (128, 128, 505_384, 0.44, 2.0),
];

/// A code in words that is faster than one in packets.
struct Faster {
    spec: String,
    /// The measured code of the most similar size.
    measured: (usize, usize, usize, f64, f64),
}

impl Faster {
    /// Returns the code in words of the same k and m, if it is faster.
    fn than(code: &Code, ones: usize) -> Option<Self> {
        let is_cauchy = code.spec().family().starts_with("cauchy");
        let (n, m) = (code.node_count(), code.tolerance());
        if !is_cauchy || code.symbols().is_some() || ones <= SLOW_ONES || n > 256 {
            return None;
        }
        let spec = format!("isal-cauchy:k={},m={m}", n - m);
        let measured =
            MEASURED.into_iter().min_by_key(|&(_, _, other, ..)| other.abs_diff(ones))?;
        Some(Self { spec, measured })
    }

    fn entry(&self) -> FasterCodeEntry {
        let (k, m, _, gbps, words_gbps) = self.measured;
        let (code, measured) = (self.spec.clone(), format!("{k}+{m}"));
        FasterCodeEntry { code, measured, gbps, words_gbps }
    }

    fn text(&self) -> String {
        let (k, m, _, packets, words) = self.measured;
        format!(
            "  {} is faster with GFNI: {k}+{m} encodes {packets} GB/s in packets, {words} in words \
             (one core, AVX-512 and GFNI)\n",
            self.spec
        )
    }
}

/// The losses that the code of a user's own matrix survives.
struct Survivals(Vec<Survival>);

impl Survivals {
    /// Tries losses of 1 to m nodes. Returns `None` for codes of other families, whose tolerance is
    /// known.
    fn of(code: &Code) -> Option<Self> {
        let m = code.parity_matrix()?.m();
        Some(Self((1..=m).map(|lost| survival(code, lost, TRIED_LOSSES)).collect()))
    }

    fn entries(&self) -> Vec<SurvivedLossesEntry> {
        let entry = |&Survival { lost, sets, tried, survived }: &Survival| SurvivedLossesEntry {
            lost,
            sets,
            tried,
            survived,
        };
        self.0.iter().map(entry).collect()
    }

    fn text(&self) -> String {
        let of = |losses: &Survival| {
            let Survival { lost, tried, survived, .. } = losses;
            let of = if losses.is_counted() { "" } else { " random" };
            format!(
                "  {survived} of {tried}{of} losses of {} are survived ({:.2} %)\n",
                counted(*lost, "node"),
                100.0 * losses.fraction()
            )
        };
        let verdict = match self.0.iter().any(|losses| losses.survived < losses.tried) {
            true => "  not MDS\n",
            false if self.0.iter().all(Survival::is_counted) => "  MDS\n",
            false => "",
        };
        self.0.iter().map(of).chain([verdict.to_owned()]).collect()
    }
}

/// Lists families, or describes a code.
pub fn run(args: &Codes, output: &Output) -> Outcome {
    match &args.spec {
        None => FAMILIES.iter().try_for_each(|family| list(family, output))?,
        Some(spec) => describe(spec, args, output)?,
    }
    Ok(Exit::Done)
}

/// The size and the cost of a code.
struct Figures {
    data_nodes: usize,
    data: usize,
    parity: usize,
    overhead: f64,
    ones: usize,
    fewest: usize,
    density: f64,
}

impl Figures {
    fn of(code: &Code) -> Self {
        let data_nodes = code.nodes().filter(|&node| code.holds_data(node)).count();
        let (data, parity) = (code.data_cells().len(), code.stored(Role::Parity).len());
        let (ones, fewest) = (code.ones(), code.fewest_ones());
        let stored = code.stored(Role::Data).len() + parity;
        let overhead = (stored as f64 - data as f64) / data as f64;
        let density = ones as f64 / fewest as f64;
        Self { data_nodes, data, parity, overhead, ones, fewest, density }
    }

    fn ones_text(&self, code: &Code) -> String {
        if let Some(graph) = code.graph() {
            let degree = self.ones as f64 / graph.blocks() as f64;
            let ones = counted(self.ones, "one");
            return format!("{ones}, {degree:.2} in a block on average");
        }
        let ones = counted(self.ones, "one");
        format!("{ones}, {:.2} x the fewest possible ({})", self.density, self.fewest)
    }

    fn fields(&self, code: &Code) -> FiguresFields {
        // The ones of a code that promises no tolerance have no lower bound.
        let is_bounded = code.graph().is_none();
        FiguresFields {
            tolerance: is_bounded.then(|| code.tolerance()),
            overhead: self.overhead,
            ones: self.ones,
            fewest_ones: is_bounded.then_some(self.fewest),
            density: is_bounded.then_some(self.density),
        }
    }
}

fn list(family: &Family, output: &Output) -> Result<(), Failure> {
    let Family { name, summary, limits, example, .. } = family;
    let code = Code::new(&example.parse()?)?;
    let figures = Figures::of(&code);
    let line = FamilyLine { name, summary, limits, example, figures: figures.fields(&code) };
    output.result(line, || {
        format!(
            "{name}\n  {summary}\n  {limits}\n  try: {example}\n       {}, {:.1} % overhead, {}\n",
            shards::tolerance_text(&code, (code.tolerance(), code.node_count()), "nodes"),
            100.0 * figures.overhead,
            figures.ones_text(&code)
        )
    });
    Ok(())
}

/// Refuses `-`, which would be a file of that name: standard output has the description.
fn expect_file(svg: &Path) -> Result<(), Failure> {
    match svg.as_os_str() == "-" {
        true => Err(Failure::arguments(
            "--svg takes a file; got `-` (write ./- for a file of that name)",
        )),
        false => Ok(()),
    }
}

fn describe(spec: &Spec, args: &Codes, output: &Output) -> Result<(), Failure> {
    let code = Code::new(spec)?;
    let figures = Figures::of(&code);
    let pin = code.pin();
    let faster = Faster::than(&code, figures.ones);
    let losses = Survivals::of(&code);
    let all: Vec<usize> = (0..code.node_count()).collect();
    let reception = shards::reception(&code, &all)?;
    if args.matrix {
        expect_printable(&code, &figures)?;
    }
    if let Some(path) = &args.svg {
        expect_file(path)?;
        picture::write(&code, path, args.force)?;
    }
    let row = |cell| row_text(&code, cell, "0", "");
    let line = CodeLine {
        code: code.spec().to_string(),
        stages: (1..=code.stages()).map(|stage| stage_entry(&code, stage)).collect(),
        nodes: code.node_count(),
        data_nodes: figures.data_nodes,
        data_cells: figures.data,
        parity_cells: figures.parity,
        figures: figures.fields(&code),
        pin: pin.entries().map(|(name, numbers)| (name.to_owned(), numbers.to_vec())).collect(),
        faster: faster.as_ref().map(Faster::entry),
        losses: losses.as_ref().map(Survivals::entries),
        matrix: args.matrix.then(|| parity_rows(&code).map(row).collect()),
        matrix_rows: args.matrix.then(|| places(&code, &parity_rows(&code).collect::<Vec<_>>())),
        matrix_columns: args.matrix.then(|| places(&code, code.data_cells())),
        svg: args.svg.as_ref().map(Into::into),
        reception: reception.as_ref().map(shards::reception_entry),
    };
    output.result(line, || {
        let notes = [losses.as_ref().map(Survivals::text), faster.as_ref().map(Faster::text)];
        let notes: String = notes.into_iter().flatten().collect();
        text(&code, &figures, &notes, reception.as_ref(), args.matrix)
    });
    Ok(())
}

/// Refuses to print a matrix that would take gigabytes of memory.
fn expect_printable(code: &Code, figures: &Figures) -> Result<(), Failure> {
    let bits = figures.data.saturating_mul(figures.parity);
    match bits <= MOST_BITS {
        true => Ok(()),
        false => Err(Failure::arguments(format!(
            "--matrix: {} must have at most {MOST_BITS} bits to be printed; got {bits}",
            code.spec()
        ))),
    }
}

fn text(
    code: &Code,
    figures: &Figures,
    notes: &str,
    reception: Option<&ReceptionReport>,
    matrix: bool,
) -> String {
    let (spec, data, parity) = (code.spec(), figures.data, figures.parity);
    let cells = match reception {
        Some(_) => format!("{} as {}", counted(data, "data block"), counted(parity, "block")),
        None => format!("{data} data and {} a stripe", counted(parity, "parity packet")),
    };
    let tolerance = || shards::tolerance_text(code, (code.tolerance(), code.node_count()), "nodes");
    // Of an LT code, the simulation below says what is enough.
    let about = match (reception, figures.data_nodes) {
        (Some(_), _) => String::new(),
        (None, 0) => format!(", none with data as it is; {}", tolerance()),
        (None, nodes) => format!(", {nodes} with data; {}", tolerance()),
    };
    let mut text = format!(
        "{spec}\n  {}{about}\n  {cells}: {:.1} % overhead\n  {}\n",
        counted(code.node_count(), "node"),
        100.0 * figures.overhead,
        figures.ones_text(code)
    );
    text.push_str(notes);
    text.extend((2..=code.stages()).filter_map(|stage| stage_text(code, stage)));
    if let Some(report) = reception {
        text.push_str(&format!("  {}\n", shards::reception_text(report)));
    }
    for cell in parity_rows(code).filter(|_| matrix) {
        let row = row_text(code, cell, "·", " ");
        text.push_str(&format!("\n{:>8}  {row}", code.cell_name(cell)));
    }
    text
}

/// Describes which nodes may be lost before a later stage, and what that stage computes and reads.
fn stage_text(code: &Code, stage: u8) -> Option<String> {
    let Promotion { reads, makes } = code.promotion(stage)?;
    Some(format!(
        "\n  after stage {} any {} of {} nodes may be lost; stage {stage} makes {} packets from {}",
        stage - 1,
        code.tolerance_at(stage - 1),
        code.nodes_at(stage - 1).len(),
        makes.len(),
        reads.len()
    ))
}

/// Returns the entry for a stage: what it computes and reads, and how many nodes may be lost after
/// it.
fn stage_entry(code: &Code, stage: u8) -> CodeStageEntry {
    let reads = code.promotion(stage).map_or(code.data_cells().len(), |later| later.reads.len());
    CodeStageEntry {
        nodes: code.nodes_at(stage).len(),
        tolerance: code.tolerance_at(stage),
        reads,
        makes: code.made_in(stage).len(),
    }
}

/// Returns a generator row as text, with `zero` for a 0 and `gap` between nodes.
fn row_text(code: &Code, cell: CellId, zero: &str, gap: &str) -> String {
    let row = code.row(cell);
    let mut text = String::new();
    let mut last_node = None;
    for (position, &data) in code.data_cells().iter().enumerate() {
        let node = code.cell(data).place.map(|place| place.node);
        if last_node.is_some_and(|last| last != node) {
            text.push_str(gap);
        }
        last_node = Some(node);
        text.push_str(if row.binary_search(&(position as u32)).is_ok() { "1" } else { zero });
    }
    text
}
