//! The commands that describe codes and their schedules.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use paritas::research::{Machine, Objective};
use paritas::{KernelChoice, Spec};

use crate::args::choices::{OrderName, PassName, parse_node, parse_set};
use crate::args::code::code_name;
use crate::args::search::MatrixSearch;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas codes
  paritas codes rdp:k=6 --matrix
  paritas codes 10+4 --svg matrix.svg
  paritas codes lt:k=1024,n=2048 --json
  paritas codes matrix:k=2,m=2,w=1,rows=c.c

matrix:FILE is the code of a bit matrix of your own, which need not be MDS. FILE is a text: lines \
`k = 2`, `m = 2`, `w = 1`, then a row of k·w digits 0 or 1 for each of the m·w parity packets; \
from # on, a line is a comment. With `placement = vertical`, data and parity lie on all k + m \
nodes. The canonical name, which shards store, holds the rows in hexadecimal digits: nobody needs \
FILE to decode. A matrix that does not survive every loss of one node is refused; the report says \
how many losses of 1 to m nodes are survived.

Ones are counted in the bit matrix; without a schedule, encoding takes a copy for each parity \
packet and an XOR for each further one. Density is the number of ones, divided by the fewest \
that any code of that shape can have. With GFNI, a \
Cauchy code in packets with more than 20,000 ones encodes slower than a code in words of the same \
k and m, and its description says so. GB/s in packets and in words (one core, AVX-512 and GFNI): \
64+16 12.4 and 16.8, 64+32 6.4 and 8.5, 100+24 8.2 and 11.1, 128+16 4.8 and 11.8, 128+32 2.0 and \
8.3, 200+56 1.0 and 4.6, 128+128 0.44 and 2.0. On AVX2 packets are faster: 128+32 2.2 and 1.8 \
GB/s.")]
pub struct Codes {
    /// The code to describe: FAMILY:KEY=VALUE,…, K+M, or matrix:FILE.
    #[arg(value_parser = code_name())]
    pub spec: Option<Spec>,
    /// Print the bit matrix.
    ///
    /// A row for each parity packet, a column for each data packet.
    #[arg(long, requires = "spec")]
    pub matrix: bool,
    /// Draw the bit matrix, grouped by nodes, into an SVG file.
    #[arg(long, requires = "spec", value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Replace an existing SVG file.
    #[arg(long, requires = "svg")]
    pub force: bool,
}

/// `--normalise`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Normalised.
    On,
    /// Without scaling.
    Off,
}

/// `--strategy`: the pair (i, j) of the dissertation's table 3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strategy {
    /// i: whether the matrix is normalised.
    pub normalise: Switch,
    /// j: the method that reduces XORs.
    pub pass: PassName,
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (i, j) = text.split_once(',').unwrap_or_default();
        let normalise = ["0", "1"].iter().position(|&name| name == i);
        let pass = ["0", "1", "2", "3"].iter().position(|&name| name == j);
        let (Some(normalise), Some(pass)) = (normalise, pass) else {
            return Err(format!("must be i,j with i from 0 to 1 and j from 0 to 3; got `{text}`"));
        };
        Ok(Self {
            normalise: [Switch::Off, Switch::On][normalise],
            pass: [PassName::Direct, PassName::Smart, PassName::Um, PassName::Wm][pass],
        })
    }
}

/// `--cost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CostName {
    /// XORs of two packets.
    Xors,
    /// XORs and copies.
    Total,
    /// XORs and copies at their costs, which `paritas tune` measures.
    Weighted,
    /// Operations and XORs of three packets.
    Ternary,
    /// Instructions, loads and stores of the compiled kernel of --kernel; slow to count.
    Fused,
}

impl CostName {
    /// Returns the objective to minimise. Fused schedules run on `machine`; an XOR costs `weight`
    /// thousandths of a copy.
    pub fn objective(self, machine: Machine, weight: u32) -> Objective {
        match self {
            Self::Xors => Objective::Xors,
            Self::Total => Objective::Total,
            Self::Weighted => Objective::Weighted(weight),
            Self::Ternary => Objective::Ternary,
            Self::Fused => Objective::Fused(machine),
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas schedule 10+4
  paritas schedule rdp:k=6 --erase 0,3 --text
  paritas schedule 10+4 --pass smart --worst-loss
  paritas schedule cauchy:k=6,m=2,w=8 --strategy 1,2 --search ga --evaluations 2000
  paritas schedule cauchy:k=6,m=3 --strategy 1,3 --search sa --cooling 0.1 --converge --patience 500
  paritas schedule rdp:k=10 --erase 0 --fewest-reads     75 packets instead of 100
  paritas schedule bbdpg:k=6,m=2,m2=4 --stage 2          what promotion reads and computes
  paritas schedule lt:k=64,n=128 --erase 0,1,2           by peeling and inactivation
  paritas schedule backblaze:k=6,m=3 --set 4096 --text   what runs, over words of GF(2^8)
  paritas schedule 10+4 --set dram --align 4096 --asm    what runs on page-aligned shards

With --set or --align, the report describes what a codec runs in one call. --set is the bytes of \
all shards together, and shards begin at multiples of --align bytes. The report shows the parts of \
the program, the order of their operations, and how they read and store. (The tiled kernel runs \
the schedule as planned until some megabytes have been computed with it, and wherever compiling is \
not allowed.) --asm alone means --set cache. Counts are over operations `cell = xor(sources)`, \
including temporaries: ones (of the bit matrix), xors (sum of fan-in - 1), copies (one for each \
operation that does not add to its cell, as most do with --order data), total (xors + copies, the \
sum of fan-ins), ops, temps, ternary (sum of ceil((fan-in - 1) / 2)), instructions, loads and \
stores (of the compiled kernel, for every vector of a packet), reads (packets read of each node). \
--cost weighted takes the weight that `paritas tune` measured on \
this machine or, without a measurement, 1.5 as in the dissertation; its counts are the same on all \
machines only with --weight. The weight is reported. --normalise, --strategy and --search are for \
Cauchy codes. A search takes k, m and w of SPEC and searches for the points; the report is about \
the code found. The same seed and evaluations (or --converge) give the same result with any number \
of threads. An iteration of sa is a step of one of its eight walks, an iteration of ga a generation.")]
pub struct Schedule {
    /// The code.
    #[arg(value_parser = code_name())]
    pub spec: Spec,
    /// Reconstruct these nodes instead of encoding.
    #[arg(long, value_delimiter = ',', value_name = "I,J,…", value_parser = parse_node)]
    pub erase: Vec<usize>,
    /// Reconstruct the loss of data nodes that costs most.
    ///
    /// Compares all losses of t data nodes, if any t nodes may be lost, and takes the one whose
    /// schedule has the largest total. The report names the nodes.
    #[arg(long, conflicts_with = "erase", hide_short_help = true)]
    pub worst_loss: bool,
    /// The stage to compute, or after which nodes are lost.
    ///
    /// With --erase or --worst-loss, nodes are lost after the stage [default: the last]. Otherwise,
    /// the stage is computed [default: 1]. Only dpg and bbdpg have more than one.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub stage: Option<u8>,
    /// The method that reduces XORs [default: slp].
    #[arg(long, value_enum)]
    pub pass: Option<PassName>,
    /// Scale the matrix anew, or not at all [default: as in the code].
    #[arg(long, value_enum, hide_short_help = true)]
    pub normalise: Option<Switch>,
    /// --normalise and --pass as in the dissertation's table 3.2.
    ///
    /// i is 0 (off) or 1 (on), j is 0 (direct), 1 (smart), 2 (um) or 3 (wm).
    #[arg(long, value_name = "i,j", conflicts_with_all = ["pass", "normalise"], hide_short_help = true)]
    pub strategy: Option<Strategy>,
    /// The order of the operations [default: parity].
    #[arg(long, value_enum, hide_short_help = true)]
    pub order: Option<OrderName>,
    /// The cost that slp and searches minimise [default: total].
    ///
    /// Without either, it decides between ways to reconstruct.
    #[arg(long, value_enum)]
    pub cost: Option<CostName>,
    /// The cost of an XOR in copies, with --cost weighted.
    ///
    /// Without it, as measured by `paritas tune`, or 1.5.
    #[arg(long, value_name = "COPIES", value_parser = parse_weight, hide_short_help = true)]
    pub weight: Option<u32>,
    /// How often slp plans a part of the schedule again, up to 1000000.
    ///
    /// Without it, as often as it pays. The budget of steps does not bound rounds that are asked
    /// for.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000), hide_short_help = true)]
    pub rounds: Option<u32>,
    #[command(flatten)]
    pub search: MatrixSearch,
    /// Read few packets, at the price of more XORs.
    ///
    /// It reads the fewest packets that the planner finds to be enough.
    #[arg(long, hide_short_help = true)]
    pub fewest_reads: bool,
    /// Plan for this many bytes of data.
    ///
    /// As `encode` and `decode` do for an object: planning stops when it takes longer than it saves
    /// [default: for unlimited data].
    #[arg(long, hide_short_help = true)]
    pub bytes: Option<u64>,
    /// Print the operations.
    #[arg(long)]
    pub text: bool,
    /// Print the machine code that a compiled kernel makes of the schedule.
    #[arg(long)]
    pub asm: bool,
    /// Report what runs in a call whose shards have this many bytes together.
    #[arg(long, value_name = "cache|dram|BYTES", value_parser = parse_set, hide_short_help = true)]
    pub set: Option<usize>,
    /// Report what runs if shards begin at multiples of BYTES [default: 64].
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub align: Option<NonZeroUsize>,
    /// The compiled kernel whose instructions are counted.
    ///
    /// --asm lists them, and `fused` counts them. This processor need not support the kernel
    /// [default: jit-avx2, or with --asm the best one here].
    #[arg(long, value_name = "KERNEL", hide_short_help = true)]
    pub kernel: Option<KernelChoice>,
}

impl Schedule {
    /// Returns the method that reduces XORs.
    pub fn pass(&self) -> PassName {
        let chosen = self.strategy.map(|strategy| strategy.pass).or(self.pass);
        chosen.unwrap_or(PassName::Slp)
    }

    /// Returns the order of the operations.
    pub fn order(&self) -> OrderName {
        self.order.unwrap_or(OrderName::Parity)
    }

    /// Returns the cost that slp and searches minimise.
    pub fn cost(&self) -> CostName {
        self.cost.unwrap_or(CostName::Total)
    }

    /// Returns how the matrix is scaled. `None` means as in the code.
    pub fn normalise(&self) -> Option<Switch> {
        self.strategy.map(|strategy| strategy.normalise).or(self.normalise)
    }

    /// Returns the cost of an XOR in thousandths of a copy.
    pub fn weight(&self) -> u32 {
        self.weight.unwrap_or_else(paritas_tune::xor_weight)
    }
}

/// Reads a weight, and returns it in thousandths.
fn parse_weight(text: &str) -> Result<u32, String> {
    match text.parse::<f64>() {
        Ok(weight) if (0.001..=1000.0).contains(&weight) => Ok((1000.0 * weight).round() as u32),
        _ => Err(format!("must be a number from 0.001 to 1000; got `{text}`")),
    }
}
