//! Rule (3.1) of the dissertation: the largest packet with which a stripe of a plan fits into a
//! cache.

use std::collections::BTreeSet;

use paritas::Code;
use paritas::code::Role;
use paritas::research::{Plan, PlanOptions, Slot};
use paritas_report::codes::{CacheEntry, PacketRuleEntry};
use paritas_tune::{CpuCache, caches, packet_by_rule};

use crate::exit::Failure;
use crate::output;

/// Returns the number of packets that a stripe needs while a plan runs: those that it reads, its
/// results, and its temporaries.
fn packets(plan: &Plan) -> usize {
    let schedule = plan.schedule();
    let sources = schedule.ops().iter().flat_map(|op| &op.sources);
    let read: BTreeSet<&Slot> = sources.filter(|slot| matches!(slot, Slot::Input(_))).collect();
    read.len() + schedule.outputs() + schedule.temps()
}

/// The rule's packet for each cache of this processor; none for a code that has no packets.
pub struct Packets {
    stripe: usize,
    caches: Vec<CpuCache>,
    is_for_packets: bool,
}

impl Packets {
    pub fn new(code: &Code, plan: &Plan) -> Self {
        let is_for_packets = has_packets(code);
        let caches = if is_for_packets { caches() } else { Vec::new() };
        Self { stripe: packets(plan), caches, is_for_packets }
    }

    fn each(&self) -> impl Iterator<Item = (CpuCache, usize)> + '_ {
        self.caches.iter().map(|&cache| (cache, packet_by_rule(self.stripe, cache.bytes)))
    }

    pub fn entry(&self) -> PacketRuleEntry {
        let caches = self.each().map(|(CpuCache { level, bytes, .. }, packet)| CacheEntry {
            level,
            cache_bytes: bytes,
            packet,
        });
        PacketRuleEntry { stripe_packets: self.stripe, caches: caches.collect() }
    }

    pub fn text(&self) -> String {
        if !self.is_for_packets {
            return String::new();
        }
        let each = self.each().map(|(CpuCache { level, bytes, .. }, packet)| {
            let fits = packet * self.stripe <= bytes;
            let but = if fits { "" } else { " (which a stripe does not fit into)" };
            format!("{packet} bytes for L{level} of {}{but}", output::bytes(bytes as u64))
        });
        let each: Vec<String> = each.collect();
        let caches = if each.is_empty() {
            "this system describes no cache".to_owned()
        } else {
            each.join(", ")
        };
        format!("  a stripe needs {} packets; by rule (3.1) a packet has {caches}\n", self.stripe)
    }
}

/// Returns the rule's packet for this processor's first-level cache and for encoding with `code`,
/// planned with `options`.
pub fn for_encoding(code: &Code, options: PlanOptions) -> Result<usize, Failure> {
    expect_packets(code, "--packet rule")?;
    let plan = code.schedule_with(&code.stored(Role::Data), &code.made_in(1), options)?;
    let first = caches().into_iter().find(|cache| cache.level == 1);
    let first = first.ok_or_else(|| {
        Failure::arguments(
            "--packet rule needs the size of the first-level cache, which this system does not \
             describe; give the bytes of a packet instead",
        )
    })?;
    Ok(packet_by_rule(packets(&plan), first.bytes))
}

/// Whether the bytes of a code depend on packets: not those of codes in words, and of LT codes.
pub fn has_packets(code: &Code) -> bool {
    code.graph().is_none() && code.symbols().is_none()
}

/// Refuses a flag about packets for a code that has none.
pub fn expect_packets(code: &Code, flag: &str) -> Result<(), Failure> {
    if !has_packets(code) {
        return Err(Failure::arguments(format!(
            "{flag} needs a code in packets; got {}, whose bytes do not depend on packets",
            code.spec()
        )));
    }
    Ok(())
}
