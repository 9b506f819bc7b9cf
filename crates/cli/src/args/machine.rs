//! The commands that measure on this machine.

use std::num::NonZeroUsize;

use clap::ValueEnum;
use paritas::{DEFAULT_PACKET, KernelChoice, Spec, Split};
use paritas_report::speed::{AlignWord, OperationWord};

use crate::args::against::Against;
use crate::args::choices::{OrderName, PassName, parse_node, parse_set};
use crate::args::code::code_name;
use crate::args::codes::CostName;
use crate::args::work::count_to;

/// `--op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// All parity from all data.
    Encode,
    /// Lost nodes, from the others.
    Decode,
    /// Parity after a change of one data node.
    Update,
    /// The parity of the second stage (dpg and bbdpg).
    Promote,
}

impl From<Operation> for OperationWord {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Encode => Self::Encode,
            Operation::Decode => Self::Decode,
            Operation::Update => Self::Update,
            Operation::Promote => Self::Promote,
        }
    }
}

/// `--sweep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sweep {
    /// The size of a packet.
    Packet,
}

/// `--align`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Align {
    /// At cache lines, each shifted against the one before by some lines.
    Staggered,
    /// All at pages, so that they compete for the same sets of the cache.
    Page,
}

impl From<Align> for AlignWord {
    fn from(align: Align) -> Self {
        match align {
            Align::Staggered => Self::Staggered,
            Align::Page => Self::Page,
        }
    }
}

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  paritas bench --code 10+4 --op encode
  paritas bench --code rdp:k=6 --op decode --set dram --threads 1
  paritas bench --code bbdpg:k=6,m=2,m2=4 --op promote
  paritas bench --code lt:k=1024,n=1229 --op decode --reception 1.05 --set dram
  paritas bench --code rdp:k=6 --sweep packet --kernel avx2 --order data
  paritas bench --code liberation:k=11,w=11 --sweep packet --kernel datawise64 --order data --set dram
  paritas bench --code liberation:k=11,w=11 --kernel datawise64 --order data --packet 1024 \
    --against kernel=packetwise64,order=parity

GB/s is k x shard bytes / seconds / 10^9 for every operation (an update counts the whole stripes \
whose parity it keeps right). The roofline is the speed of reading and writing the same streams \
with one XOR for each byte read, in the same process and with the same kernel. (Kernels of the lab, \
packetwise64 to packetwise512 and datawise64 to datawise512, run schedules as papers did, a whole \
packet at a time, and 64 to 512 bits at once; datawise reads each word of a packet once for all \
operations in a row that need it. Their roofline has packets of 4 KiB. With --best-roofline, the roofline \
of any kernel runs with the best kernel and packets of 64 bytes, so that fractions of it compare kernels.) Results are checked \
before they are timed. Code and roofline are measured in pairs, back to back (within a millisecond, \
unless one run takes longer), in alternating order. Speeds are the median and the 90th percentile \
of all samples. The fraction of the roofline is the median over all pairs, with an interval that \
holds it with 95 % confidence (a bootstrap from a fixed seed). If the interval is wider than a \
tenth of the fraction, up to four times as many pairs are taken. If that does not help, or if there \
are fewer than 20 pairs, the figure is called too noisy. For an LT code, GB/s is k x block bytes. \
Its decode computes all data from blocks received in random order; the graph is solved once, in \
the first run, as for the segments of a file; the roofline reads k blocks. LT codes have no --op \
update, and --packet, --tuned-packet, --pass, --cost, --order and --split do not apply to them. Of \
these, codes in words take --split alone, and --packet with --split columns.")]
pub struct Bench {
    /// The code.
    #[arg(long, value_name = "SPEC", value_parser = code_name())]
    pub code: Spec,
    /// The operation to measure.
    #[arg(long, value_enum, default_value = "encode")]
    pub op: Operation,
    /// For decode, the stage after which nodes are lost [default: the last].
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub stage: Option<u8>,
    /// Bytes of all shards together: cache, dram or a number.
    ///
    /// cache is 512 KiB, dram 256 MiB. For an LT code, these are the bytes of all blocks and of the
    /// data.
    #[arg(long, default_value = "cache", value_name = "cache|dram|BYTES", value_parser = parse_set)]
    pub set: usize,
    /// For decode of an LT code, the blocks received, in multiples of k.
    ///
    /// Without it, the number that decoding takes, but at least 1.05.
    #[arg(long, value_name = "MULTIPLE", value_parser = parse_reception, hide_short_help = true)]
    pub reception: Option<f64>,
    /// For decode of an LT code, the seed of the blocks received.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Bytes of a packet [default: 64].
    ///
    /// Codes in words have packets only for --split columns.
    #[arg(long, value_name = "BYTES")]
    pub packet: Option<usize>,
    /// Use the packet that `paritas tune` found for the code [default: 64].
    #[arg(long, conflicts_with_all = ["packet", "sweep"], hide_short_help = true)]
    pub tuned_packet: bool,
    /// For decode, the nodes that are lost.
    ///
    /// Without it, the first data nodes, up to the number that may be lost.
    #[arg(long, value_delimiter = ',', value_name = "I,J,…", value_parser = parse_node)]
    pub erase: Vec<usize>,
    /// Measure one packet size after the other.
    ///
    /// The sizes are powers of two from 8 bytes to 32 KiB, as long as one strip of all nodes fits
    /// into the set. Prints a line for each.
    #[arg(long, value_enum, conflicts_with = "packet", hide_short_help = true)]
    pub sweep: Option<Sweep>,
    /// The alignment of shards in memory.
    #[arg(long, value_enum, default_value = "staggered", hide_short_help = true)]
    pub align: Align,
    /// The method that reduces XORs [default: slp, or as tuned].
    #[arg(long, value_enum, hide_short_help = true)]
    pub pass: Option<PassName>,
    /// The cost that slp minimises [default: total].
    ///
    /// fused is for the kernel that runs, which must be a compiled one.
    #[arg(long, value_enum, hide_short_help = true)]
    pub cost: Option<CostName>,
    /// The order in which operations are planned [default: parity].
    ///
    /// A compiled kernel still takes the cheapest of several orders, and cannot run the order data;
    /// all other kernels run the order as it is.
    #[arg(long, value_enum, hide_short_help = true)]
    pub order: Option<OrderName>,
    /// The kernel: auto, jit, or one for packets that `paritas doctor` lists.
    ///
    /// Codes in words run on the kernel for words that has the same registers.
    #[arg(long, default_value = "auto")]
    pub kernel: KernelChoice,
    /// The most threads to use; 0 means one for each processor.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub threads: usize,
    /// Use one thread for each BYTES bytes of all shards.
    ///
    /// Up to --threads, which must not be 1 [default: as tuned].
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub bytes_a_thread: Option<NonZeroUsize>,
    /// How threads share the work: auto, stripe, node, columns or rows.
    ///
    /// --threads must not be 1.
    ///
    /// Each thread takes some stripes (stripe), some of the nodes to compute (node), some bytes of
    /// every packet in whole cache lines (columns), or some rows of every node (rows; codes in
    /// words have none). auto is as tuned. Work that cannot be shared in the wanted way, such as a
    /// single node, is shared by stripes; split in JSON tells what was used.
    #[arg(long, default_value = "auto", value_name = "SPLIT", value_parser = parse_split, hide_short_help = true)]
    pub split: SplitChoice,
    /// Run the roofline with the best kernel and packets of 64 bytes.
    ///
    /// Without it, the roofline runs with the measured kernel.
    #[arg(long, conflicts_with = "against", hide_short_help = true)]
    pub best_roofline: bool,
    /// Measure in pairs with other settings, not with the roofline.
    ///
    /// The settings are kernel, order, pass, packet, threads, bytes-a-thread and split; both runs
    /// share those that are not given. Both work on the same memory, unless their shards differ in
    /// length because their packets do.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub against: Option<Against>,
    /// Measure in pairs with another code.
    ///
    /// With the settings of --against if these are given.
    #[arg(long, value_name = "SPEC", conflicts_with = "best_roofline", value_parser = code_name())]
    pub against_code: Option<Spec>,
    /// The number of pairs to measure.
    ///
    /// More are taken if they differ too much.
    #[arg(long, default_value_t = 41, value_name = "N", value_parser = count_to(100_000), hide_short_help = true)]
    pub reps: u32,
}

impl Bench {
    /// Returns the bytes of a packet.
    pub fn packet(&self) -> usize {
        self.packet.unwrap_or(DEFAULT_PACKET)
    }

    /// Returns the cost that slp minimises.
    pub fn cost(&self) -> CostName {
        self.cost.unwrap_or(CostName::Total)
    }

    /// Returns the order in which operations are planned.
    pub fn order(&self) -> OrderName {
        self.order.unwrap_or(OrderName::Parity)
    }

    /// Returns the arguments of the run to compare with: these, with the settings of `other`.
    pub fn with(&self, other: &Against) -> Self {
        Self {
            code: self.against_code.as_ref().unwrap_or(&self.code).clone(),
            against_code: None,
            kernel: other.kernel.unwrap_or(self.kernel),
            order: other.order.or(self.order),
            pass: other.pass.or(self.pass),
            packet: other.packet.or(self.packet),
            threads: other.threads.unwrap_or(self.threads),
            bytes_a_thread: other.bytes_a_thread.or(self.bytes_a_thread),
            split: other.split.or(self.split),
            against: None,
            ..self.clone()
        }
    }
}

/// Measure kernels, schedules, stores, threads, splits and packets, and remember the best in the
/// user's cache directory, where all commands find them. A choice replaces the built-in default
/// only if it is clearly at least 3 % faster. Stored bytes never depend on it: the packet is
/// remembered for `encode --packet tuned` and `bench --tuned-packet` alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas tune
  paritas tune 17+3 rdp:k=10
  paritas tune lt:k=1024,n=1536          the kernel for its blocks; there is no other choice
  paritas tune --packet 10+4             the `encode --packet` that would be fastest here
  paritas tune --packet --kernel packetwise64 --pass smart --set 2097152 rdp:k=6
  paritas tune --forget

Every choice is measured in pairs with the built-in default, back to back, in alternating order. \
It is taken if the whole interval of the ratio (95 % confidence) is above 1.03, or 1.1 for \
non-temporal stores. If that is not clear after 84 pairs, the default stays. Sets of 32 MiB down \
to 256 KiB are tried with a second thread. Sets from a threshold on use one. The threshold is the \
size with the largest total gain over itself and all larger sets.
A search for packets has two stages. The first tries powers of two up to 32 KiB, as long as a \
strip of all nodes fits into the set; below 64 bytes, until one has less than half the speed of the \
fastest. The second goes from half of the fastest of these to its \
double, in steps of an eighth of it. All are multiples of 8 bytes, or of the registers of \
--kernel.")]
pub struct Tune {
    /// The codes to measure [default: 4+2, 6+3, 8+3, 10+4, 12+4, 20+4].
    #[arg(value_name = "SPEC", value_parser = code_name())]
    pub codes: Vec<Spec>,
    /// Measure and report, but remember nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Find the fastest packet of each code.
    ///
    /// With one thread, in the cache and from memory. Nothing is remembered, because packets are
    /// stored: use `encode --packet`.
    #[arg(long, conflicts_with = "dry_run")]
    pub packet: bool,
    /// With --packet, the kernel: jit, or one for packets that `paritas doctor` lists.
    ///
    /// auto takes the kernel that is used for files.
    #[arg(long, requires = "packet", conflicts_with = "dry_run", default_value = "auto")]
    pub kernel: KernelChoice,
    /// With --packet, the method that reduces XORs [default: slp].
    #[arg(long, requires = "packet", conflicts_with = "dry_run", value_enum)]
    pub pass: Option<PassName>,
    /// With --packet, the bytes of all shards together.
    ///
    /// cache (512 KiB), dram (256 MiB), or a number [default: first 512 KiB, then 64 MiB].
    #[arg(long, requires = "packet", conflicts_with = "dry_run", value_name = "cache|dram|BYTES", value_parser = parse_set)]
    pub set: Option<usize>,
    /// With --packet, the number of pairs for each size [default: 21].
    ///
    /// More are taken if they do not show whether the size is faster than the default one. Fewer
    /// than 20 pairs never show that: the default size is then named as chosen, and the ratios say
    /// what was measured. With N below 5 exactly N pairs are taken.
    #[arg(long, requires = "packet", conflicts_with = "dry_run", value_name = "N", value_parser = count_to(100_000), hide_short_help = true)]
    pub reps: Option<u32>,
    /// Forget what was remembered, so that the built-in defaults are used.
    #[arg(long, conflicts_with_all = ["codes", "dry_run", "packet"])]
    pub forget: bool,
}

/// `--split`: `None` means as tuned.
pub type SplitChoice = Option<Split>;

fn parse_split(text: &str) -> Result<SplitChoice, paritas::Error> {
    if text == "auto" { Ok(None) } else { text.parse().map(Some) }
}

fn parse_reception(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(multiple) if (1.0..=1e6).contains(&multiple) => Ok(multiple),
        _ => Err(format!("must be a multiple of k from 1 to 1000000; got `{text}`")),
    }
}
