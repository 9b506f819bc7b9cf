//! Every flag, defined once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use paritas::{KernelChoice, Objective, Order, Pass, Spec};

const EXIT_CODES: &str = "\
Exit codes:
  0  done, or everything is intact
  1  damaged, but repairable
  2  damaged beyond repair
  3  bad arguments or parameters
  4  nothing recognisable as a shard set
  5  repair or decode finished, but the final check failed
  6  input or output failed
  7  internal error
  8  out of memory";

const DOCTOR: &str = "\
Example:
  paritas doctor

JSON: type \"doctor\", version, architecture, threads, packet, kernel (the one for files),
executable_memory, executable_memory_error, kernels [{name, vector_bytes, right, fallback}].";

/// Protect files with erasure codes: verify, repair and recover them.
#[derive(Debug, Parser)]
#[command(name = "paritas", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Args {
    /// Print results as JSON, one object a line, and errors as JSON on standard error.
    #[arg(long, global = true)]
    pub json: bool,

    /// Print nothing but errors, and no progress.
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Cut a file into shards, any few of which may be lost.
    Encode(Encode),
    /// Get a file back from its shards.
    Decode(Decode),
    /// Check every block of every shard.
    Verify(Verify),
    /// Rewrite what is missing or damaged.
    Repair(Repair),
    /// Show what shards say about themselves.
    Info(Info),
    /// List the code families, or describe one code.
    Codes(Codes),
    /// Show the XOR schedule of a code and what it costs.
    Schedule(Schedule),
    /// Measure how fast a code runs on this machine.
    Bench(Bench),
    /// Check what this machine offers and whether every kernel computes right.
    #[command(after_help = DOCTOR)]
    Doctor,
    /// Print shell completions.
    #[command(hide = true)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write man pages.
    #[command(hide = true)]
    Man {
        /// The folder to write them to.
        directory: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
#[command(
    group(ArgGroup::new("target").required(true)),
    after_help = "\
Examples:
  paritas encode photos.tar --out shards               4 data and 2 parity shards
  paritas encode db.dump --code 10+4 --to /disk1 --to /disk2 --to /disk3
  tar c /home | paritas encode - --name home.tar --code rdp:k=6 --out shards

Shards are named NAME.<i>of<n>.paritas. JSON: type \"encode\", object, name, code, length,
digest, stored_bytes, seconds, shards [{index, path}], warnings."
)]
pub struct Encode {
    /// The file to protect; - reads standard input.
    pub file: PathBuf,
    /// The code: FAMILY:KEY=VALUE,… or K+M (see `paritas codes`).
    #[arg(long, default_value = "4+2", value_name = "SPEC")]
    pub code: Spec,
    /// The folder for all shards; made if it does not exist.
    #[arg(long, group = "target", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Folders that take shards in turn; give one for each disk.
    #[arg(long, group = "target", value_name = "DIR")]
    pub to: Vec<PathBuf>,
    /// The name to store, instead of the file's own (or `stdin`).
    #[arg(long)]
    pub name: Option<OsString>,
    /// Replace existing shards of this name; they are kept until the new ones are complete.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub work: Work,
}

/// How files are written.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Work {
    /// Wait until everything is on the disk before it gets its final name (the default).
    #[arg(long, overrides_with = "no_sync")]
    pub sync: bool,
    /// Do not wait: faster, but a power failure may lose what was just written.
    #[arg(long, overrides_with = "sync")]
    pub no_sync: bool,
    /// The most threads to use [default: one for each processor].
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub threads: usize,
}

impl Work {
    /// Whether to wait for the disk.
    pub fn is_synced(self) -> bool {
        self.sync || !self.no_sync
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas decode shards --out photos.tar
  paritas decode /disk1 /disk2 /disk4 --object db.dump --out - | psql

Shards are found by content: names do not matter, damaged and foreign files do no harm.
JSON: type \"decode\", object, name, code, length, digest, seconds, path, shards [{index, state,
path, notes}].")]
pub struct Decode {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// The file to write; - writes standard output.
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// Which object, by id or name, where there are several.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
    /// Replace an existing file.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  paritas verify shards || paritas repair shards

Exits with the worst of all objects found. JSON: one line an object, type \"verify\", object, name,
code, length, status (intact, repairable, lost), tolerable_losses, digest_ok, seconds, shards [{index,
state, path, bad_lanes, first_bad_offset, notes}], lost_ranges [{start, end}].")]
pub struct Verify {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Only this object, by id or name.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
    /// The most threads to use [default: one for each processor].
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub threads: usize,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas repair shards
  paritas repair /disk1 /disk2 /disk3 --to /disk4      what is missing goes to the new disk

A repaired shard is byte for byte the one that was lost. JSON: one line an object, type \"repair\",
object, name, code, length, seconds, repaired [{index, was, path}].")]
pub struct Repair {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Where repaired shards go [default: damaged ones are replaced in place, missing ones go to
    /// the folder with the fewest].
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Only this object, by id or name.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  paritas info shards

Reads headers only; `verify` checks the contents. JSON: one line an object, type \"info\", object, name,
code, layout, packet, length, digest, shard_count, tolerance, shards [{index, files [{path, header,
footer}]}], missing.")]
pub struct Info {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Only this object, by id or name.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas codes
  paritas codes rdp:k=6 --matrix

JSON without SPEC: one line a family, type \"family\", name, summary, limits, example. With SPEC: type
\"code\", code, nodes, data_nodes, tolerance, data_cells, parity_cells, overhead, ones, pin {…}, and with
--matrix: matrix [\"0101…\", …], one string a parity row.")]
pub struct Codes {
    /// The code to describe.
    pub spec: Option<Spec>,
    /// Print the bit matrix: a row for each parity packet, a column for each data packet.
    #[arg(long, requires = "spec")]
    pub matrix: bool,
}

/// `--pass`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PassName {
    /// Rows as they stand.
    Direct,
    /// A row from an earlier row plus differences.
    Smart,
    /// Common pairs of data packets by unweighted matching.
    Um,
    /// Common pairs of data packets by weighted matching.
    Wm,
    /// Greedy common pairs, intermediates included, then refined.
    Slp,
}

impl From<PassName> for Pass {
    fn from(name: PassName) -> Self {
        match name {
            PassName::Direct => Self::Direct,
            PassName::Smart => Self::Smart,
            PassName::Um => Self::Unweighted,
            PassName::Wm => Self::Weighted,
            PassName::Slp => Self::Slp,
        }
    }
}

/// `--order`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum OrderName {
    /// One wanted packet after the other.
    Parity,
    /// One source packet after the other.
    Data,
}

impl From<OrderName> for Order {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Parity => Self::Parity,
            OrderName::Data => Self::Data,
        }
    }
}

/// `--normalise`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Normalised.
    On,
    /// Without any scaling.
    Off,
}

/// `--strategy`: the pair (i, j) of the dissertation's table 3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strategy {
    /// i: whether the matrix is normalised.
    pub normalise: Switch,
    /// j: how XORs are reduced.
    pub pass: PassName,
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (i, j) = text.split_once(',').unwrap_or_default();
        let normalise = ["0", "1"].iter().position(|&name| name == i);
        let pass = ["0", "1", "2", "3"].iter().position(|&name| name == j);
        let (Some(normalise), Some(pass)) = (normalise, pass) else {
            return Err(format!("`{text}` is not i,j with i from 0 to 1 and j from 0 to 3"));
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
    /// XORs and copies, an XOR counting as --weight copies.
    Weighted,
    /// Operations and XORs of three packets.
    Ternary,
}

/// `--search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SearchName {
    /// The matrix of the code.
    None,
    /// Simulated annealing over the points.
    Sa,
    /// A genetic algorithm over the points, children taking common points first.
    Ga,
    /// The same, children taking any points of their parents.
    GaRandom,
    /// Annealing on ones, then descent on schedules, over points and scalings.
    Local,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas schedule 10+4
  paritas schedule rdp:k=6 --erase 0,3 --text
  paritas schedule cauchy:k=6,m=2,w=8 --strategy 1,2 --search ga --evaluations 2000

Counts, over operations `cell = xor(sources)`, temporaries included: ones (of the bit matrix), xors
(sum of fan-in - 1), copies (one an operation), total (xors + copies, the sum of fan-ins), ops, temps,
ternary (sum of ceil((fan-in - 1) / 2)), loads and stores (vectors that the compiled AVX2 kernel moves
for every vector of a packet), reads (packets read of each node).
--normalise, --strategy and --search are for Cauchy codes. A search takes k, m and w of SPEC and looks for the
points; its result is the code that is reported. The same seed and evaluations give the same result,
whatever the number of threads.
JSON: type \"schedule\", code, erased, pass, order, cost, the counts, plan_seconds (null after a search),
search (method, seed, evaluations; null without), and with --text: text, with --asm: asm.")]
pub struct Schedule {
    /// The code.
    pub spec: Spec,
    /// Reconstruct these nodes instead of encoding.
    #[arg(long, value_delimiter = ',', value_name = "I,J,…")]
    pub erase: Vec<usize>,
    /// How XORs are reduced.
    #[arg(long, value_enum, default_value = "slp")]
    pub pass: PassName,
    /// Scale the rows and columns of the matrix anew, or not at all [default: as the code has them].
    #[arg(long, value_enum)]
    pub normalise: Option<Switch>,
    /// --normalise and --pass as in table 3.2 of the dissertation: i is 0 (off) or 1 (on), j is 0
    /// (direct), 1 (smart), 2 (um) or 3 (wm).
    #[arg(long, value_name = "i,j", conflicts_with_all = ["pass", "normalise"])]
    pub strategy: Option<Strategy>,
    /// In which order operations come.
    #[arg(long, value_enum, default_value = "parity")]
    pub order: OrderName,
    /// What slp and searches make small.
    #[arg(long, value_enum, default_value = "total")]
    pub cost: CostName,
    /// How many copies an XOR costs, with --cost weighted.
    #[arg(long, default_value_t = 1.5, value_name = "COPIES", value_parser = parse_weight)]
    pub weight: f64,
    /// How often slp takes a part of the schedule back and does it again [default: as often as pays].
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Search a better matrix.
    #[arg(long, value_enum, default_value = "none")]
    pub search: SearchName,
    /// Where the search begins.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// How many schedules the search makes [default: 2000].
    #[arg(long, value_name = "N", conflicts_with = "budget")]
    pub evaluations: Option<usize>,
    /// How long the search takes; the result depends on the machine.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub budget: Option<Duration>,
    /// Print the operations.
    #[arg(long)]
    pub text: bool,
    /// Print the machine code that a compiled kernel makes of it.
    #[arg(long)]
    pub asm: bool,
    /// The kernel for --asm.
    #[arg(long, default_value = "jit", value_name = "KERNEL")]
    pub kernel: KernelChoice,
}

impl Schedule {
    /// How XORs are reduced.
    pub fn pass(&self) -> PassName {
        self.strategy.map_or(self.pass, |strategy| strategy.pass)
    }

    /// How the matrix is scaled, unless as the code has it.
    pub fn normalise(&self) -> Option<Switch> {
        self.strategy.map(|strategy| strategy.normalise).or(self.normalise)
    }

    /// What is made small.
    pub fn objective(&self) -> Objective {
        match self.cost {
            CostName::Xors => Objective::Xors,
            CostName::Total => Objective::Total,
            CostName::Weighted => Objective::Weighted((1000.0 * self.weight).round() as u32),
            CostName::Ternary => Objective::Ternary,
        }
    }
}

fn parse_weight(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(weight) if (0.001..=1000.0).contains(&weight) => Ok(weight),
        _ => Err(format!("`{text}` is not a number from 0.001 to 1000")),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("`{text}` is not a number of seconds")),
    }
}

/// `--op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// All parity from all data.
    Encode,
    /// As many data nodes as may be lost.
    Decode,
    /// Parity after a change of one data node.
    Update,
}

/// `--align`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Align {
    /// At cache lines, each shifted against the others by some lines.
    Staggered,
    /// All at pages, so that they compete for the same sets of the cache.
    Page,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas bench --code 10+4 --op encode
  paritas bench --code rdp:k=6 --op decode --set dram --threads 1

GB/s is k x shard bytes / seconds / 10^9 for every operation (an update counts the whole stripes it
keeps right). The roofline is, in the same process and with the same kernel, the speed of reading as
many streams and writing as many with one XOR for each byte read. Answers are checked before they
are timed. JSON: type \"bench\", code, op, set_bytes, shard_bytes, align, packet, kernel, threads, reps, kept,
gbps_median, gbps_min, gbps_max, roofline_gbps, roofline_fraction,
first_seconds (of the first run, which plans and compiles).")]
pub struct Bench {
    /// The code.
    #[arg(long, value_name = "SPEC")]
    pub code: Spec,
    /// What to measure.
    #[arg(long, value_enum, default_value = "encode")]
    pub op: Operation,
    /// All shards together: cache (512 KiB), dram (256 MiB), or a number of bytes.
    #[arg(long, default_value = "cache", value_name = "cache|dram|BYTES", value_parser = parse_set)]
    pub set: usize,
    /// The bytes of a packet.
    #[arg(long, default_value_t = paritas::DEFAULT_PACKET, value_name = "BYTES")]
    pub packet: usize,
    /// How shards lie in memory.
    #[arg(long, value_enum, default_value = "staggered")]
    pub align: Align,
    /// How XORs are reduced.
    #[arg(long, value_enum, default_value = "slp")]
    pub pass: PassName,
    /// Which kernel runs: auto, or one of those that `paritas doctor` lists.
    #[arg(long, default_value = "auto")]
    pub kernel: KernelChoice,
    /// The most threads to use; 0 is one for each processor.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub threads: usize,
    /// How many times to measure.
    #[arg(long, default_value_t = 41, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub reps: u32,
}

fn parse_set(text: &str) -> Result<usize, String> {
    match text {
        "cache" => Ok(512 << 10),
        "dram" => Ok(256 << 20),
        bytes => match bytes.parse() {
            Ok(bytes) if (1..=1 << 34).contains(&bytes) => Ok(bytes),
            _ => Err(format!("`{bytes}` is neither cache, dram, nor 1 to 2^34 bytes")),
        },
    }
}
