//! Choices that several commands share: the method that reduces XORs, the order of operations,
//! nodes, and sizes of sets.

use clap::ValueEnum;
use paritas::research::{Machine, Order, Pass};
use paritas_report::speed::OrderWord;
use serde::de::DeserializeOwned;

use crate::exit::Failure;

/// Returns the name of a choice on the command line.
pub fn named(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns the word `name` as the type that JSON lines use for it.
///
/// # Errors
/// If `W` has no such word: a choice was added to the library but not to the lines.
pub fn word<W: DeserializeOwned>(name: &str) -> Result<W, Failure> {
    let missing = |_| Failure::internal(format!("lines have no word for {name}"));
    serde_json::from_value(name.into()).map_err(missing)
}

/// `--pass`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PassName {
    /// Every row as it stands: on its own, or from another parity where the code is defined so.
    Direct,
    /// Each row from an earlier row plus differences.
    Smart,
    /// Common pairs of data packets by unweighted matching.
    Um,
    /// Common pairs of data packets by weighted matching.
    Wm,
    /// Greedy common pairs, including intermediate results, then refined.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderName {
    /// One wanted packet after the other.
    Parity,
    /// One source packet after the other.
    Data,
    /// The order that the compiled kernel of --kernel runs.
    Fused,
}

impl From<OrderName> for OrderWord {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Parity => Self::Parity,
            OrderName::Data => Self::Data,
            OrderName::Fused => Self::Fused,
        }
    }
}

impl OrderName {
    /// Returns the order. Fused schedules are planned for `machine`.
    pub fn order(self, machine: Machine) -> Order {
        match self {
            Self::Parity => Order::Parity,
            Self::Data => Order::Data,
            Self::Fused => Order::Fused(machine),
        }
    }
}

/// Reads the number of a node.
pub fn parse_node(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("must be numbers of nodes, such as 0,3; got `{text}`"))
}

/// Largest number of bytes of all shards together that are measured.
pub const MOST_MEASURED: usize = 1 << 34;

/// Reads the size of a set: the bytes of all shards together.
pub fn parse_set(text: &str) -> Result<usize, String> {
    match text {
        "cache" => Ok(512 << 10),
        "dram" => Ok(256 << 20),
        bytes => match bytes.parse() {
            Ok(bytes) if (1..=MOST_MEASURED).contains(&bytes) => Ok(bytes),
            _ => Err(format!("must be cache, dram, or 1 to 2^34 bytes; got `{bytes}`")),
        },
    }
}
