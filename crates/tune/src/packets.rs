//! The search for the packet size with which a code is encoded fastest.
//!
//! A packet may have any number of bytes that is a multiple of a kernel's register. There are
//! thousands of sizes up to [`MOST`], and neighbours differ by less than measurements do. So the
//! search has two stages: powers of two, then steps of an eighth of the fastest power, from half of
//! it to twice it. Powers below the default size are tried downwards, until one is far too slow.

use std::collections::BTreeMap;

use paritas::{Code, CodecOptions, DEFAULT_PACKET, KernelChoice, Spec};

use crate::contest::{Contest, ROUNDS, Ranking};
use crate::decide::{CACHE_SET, GAIN, MEMORY_SET};
use crate::error::{Error, Result};
use crate::measure::Rounds;
use crate::tuning::{Choice, Decision};

/// Default sizes of all shards together, in bytes: one fits into the cache, the other only into
/// memory.
pub const PACKET_SETS: [usize; 2] = [CACHE_SET, MEMORY_SET];

/// Pairs that a search takes for each size, if nothing else is said.
pub const PACKET_ROUNDS: Rounds = ROUNDS;

/// Bytes of the largest packet that is tried.
const MOST: usize = 32 << 10;

/// Bytes of the smallest packets that are tried if any kernel may run.
const LEAST: usize = 8;

/// A size that has less than this fraction of the speed of the fastest one is far too slow.
const HOPELESS: f64 = 0.5;

/// Number of steps of the second stage from the fastest power of two to its double.
const STEPS: usize = 8;

/// Finds the packet sizes with which each of `codes` is encoded fastest on this machine. For each
/// number in `sets`, all shards together have that many bytes. `options` names the kernel, and how
/// XORs are reduced; `rounds` says how many pairs each size takes ([`PACKET_ROUNDS`] by default).
/// The results are not remembered, because the packet size is part of the stored format: to use
/// another size than [`DEFAULT_PACKET`], state it when an object is encoded.
///
/// # Errors
/// If a code is not legal; if it is in the word layout or an LT code, which have no packet size to
/// choose; if no packet fits into a set; if the processor lacks the kernel; or if the system lacks
/// memory.
pub fn find_packets(
    codes: &[Spec],
    options: &CodecOptions,
    sets: &[usize],
    rounds: Rounds,
    mut report: impl FnMut(&Decision),
) -> Result<()> {
    for spec in codes {
        for &set in sets {
            report(&fastest_packet(spec, options, set, rounds)?.finding());
        }
    }
    Ok(())
}

/// Compares packet sizes with the default one, as far as strips of such packets fit into `set`
/// bytes.
fn fastest_packet(
    spec: &Spec,
    options: &CodecOptions,
    set: usize,
    rounds: Rounds,
) -> Result<Ranking> {
    let code = Code::new(spec)?;
    if code.symbols().is_some() || code.graph().is_some() {
        return Err(Error::NoPackets(code.spec().to_string()));
    }
    let cells: usize = code.nodes().map(|node| code.node_cells(node).len()).sum();
    let unit = match options.kernel {
        KernelChoice::Only(kernel) => kernel.vector_bytes(),
        _ => LEAST,
    };
    if set / cells < unit {
        return Err(Error::NoRoom { spec: code.spec().to_string(), set });
    }
    let mut about = String::new();
    let measured = two_stages(unit, MOST.min(set / cells), |sizes| {
        let mut contest = Contest::new("packet", spec, set)?;
        contest.enter(DEFAULT_PACKET, options.clone().threads(1).packet(DEFAULT_PACKET))?;
        for &packet in sizes {
            contest.enter(packet, options.clone().threads(1).packet(packet))?;
        }
        let ranking = contest.run_for(rounds, 0, GAIN)?;
        about = ranking.finding().about;
        Ok(ranking.choices)
    })?;
    if let KernelChoice::Only(kernel) = options.kernel {
        about = format!("{about}, {kernel}");
    }
    let base = measured.keys().position(|&packet| packet == DEFAULT_PACKET).unwrap_or(0);
    Ok(Ranking::new("packet", about, measured.into_values().collect(), base, GAIN))
}

/// Measures the packet sizes of both stages, all multiples of `unit` up to `most` bytes. `measure`
/// returns a choice for the default size, and one for each of the given sizes. Returns the choices
/// by size.
fn two_stages(
    unit: usize,
    most: usize,
    mut measure: impl FnMut(&[usize]) -> Result<Vec<Choice>>,
) -> Result<BTreeMap<usize, Choice>> {
    let mut measured = BTreeMap::new();
    let mut add = |sizes: Vec<usize>, measured: &mut BTreeMap<usize, Choice>| -> Result<()> {
        let choices = measure(&sizes)?;
        // The default size keeps its first result.
        for (packet, choice) in [DEFAULT_PACKET].into_iter().chain(sizes).zip(choices) {
            measured.entry(packet).or_insert(choice);
        }
        Ok(())
    };
    add(powers_above_default(unit, most), &mut measured)?;
    while let Some(smaller) = next_smaller(unit, most, &measured) {
        add(vec![smaller], &mut measured)?;
    }
    let around = around_the_fastest(unit, most, &measured);
    if !around.is_empty() {
        add(around, &mut measured)?;
    }
    Ok(measured)
}

/// Returns the powers of two of the first stage that are larger than the default size.
fn powers_above_default(unit: usize, most: usize) -> Vec<usize> {
    let powers = (0..usize::BITS).map(|n| unit << n).take_while(|&packet| packet <= most);
    powers.filter(|&packet| packet > DEFAULT_PACKET).collect()
}

/// Returns the power of two that is measured after the smallest one so far. Halving the size
/// doubles the number of operations on packets. So once a size is [`HOPELESS`], smaller sizes are
/// hopeless, too, and would take most of the time of the search.
fn next_smaller(unit: usize, most: usize, measured: &BTreeMap<usize, Choice>) -> Option<usize> {
    let (&smallest, choice) = measured.first_key_value()?;
    let is_hopeless = choice.ratio.median < HOPELESS * fastest(measured)?.1.ratio.median;
    let mut smaller = smallest.min(most.saturating_add(1));
    smaller = if smaller.is_power_of_two() { smaller / 2 } else { smaller.next_power_of_two() / 2 };
    (!is_hopeless && smaller >= unit).then_some(smaller)
}

/// Returns the size that is fastest so far, with its result.
fn fastest(measured: &BTreeMap<usize, Choice>) -> Option<(&usize, &Choice)> {
    measured.iter().max_by(|(_, a), (_, b)| a.ratio.median.total_cmp(&b.ratio.median))
}

/// Returns the sizes of the second stage.
fn around_the_fastest(unit: usize, most: usize, measured: &BTreeMap<usize, Choice>) -> Vec<usize> {
    let fastest = fastest(measured).map_or(DEFAULT_PACKET, |(&packet, _)| packet);
    let step = (fastest / STEPS).next_multiple_of(unit).max(unit);
    let sizes = (fastest / 2..=2 * fastest).step_by(step).map(|size| size / unit * unit);
    let is_new = |size: &usize| (unit..=most).contains(size) && !measured.contains_key(size);
    let mut sizes: Vec<usize> = sizes.filter(is_new).collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Ratio;
    use paritas::Kernel;
    use paritas::research::{Pass, Width};

    /// Searches on a machine whose speed falls by a factor for each octave between a packet size
    /// and `peak`.
    fn found(unit: usize, most: usize, peak: usize) -> (usize, Vec<usize>) {
        let mut tried = Vec::new();
        let speed = |packet: usize| 0.5_f64.powf((packet as f64 / peak as f64).log2().abs());
        let measured = two_stages(unit, most, |sizes| {
            tried.extend_from_slice(sizes);
            let all = [DEFAULT_PACKET].into_iter().chain(sizes.iter().copied());
            let choice = |packet: usize| {
                let median = speed(packet) / speed(DEFAULT_PACKET);
                let ratio = Ratio { median, low: median, high: median, pairs: 21 };
                Choice { name: packet.to_string(), gbps: 1.0, gbps_p90: 1.0, ratio }
            };
            Ok(all.map(choice).collect())
        });
        let measured = measured.unwrap();
        let fastest = |(_, a): &(_, &Choice), (_, b): &(_, &Choice)| {
            a.ratio.median.total_cmp(&b.ratio.median)
        };
        (*measured.iter().max_by(fastest).unwrap().0, tried)
    }

    #[test]
    fn the_peak_is_found_within_a_step() {
        for peak in [8, 24, 40, 72, 200, 1000, 1544, 2048, 3000, 6144, 11_000, 23_000, 32_768] {
            for unit in [8, 16, 32, 64] {
                let (found, tried) = found(unit, MOST, peak);
                let apart = found.abs_diff(peak);
                assert!(apart <= unit.max(peak / STEPS), "{peak} by {unit}: {found}");
                assert!(tried.iter().all(|size| size.is_multiple_of(unit) && *size <= MOST));
            }
        }
    }

    /// A search of powers of two alone would miss the peak by a third.
    #[test]
    fn sizes_are_no_powers_of_two_alone() {
        let (found, tried) = found(8, MOST, 6144);
        assert_eq!(found, 6144);
        assert!(tried.len() < 32, "{tried:?}");
        assert!(tried.iter().all(|&size| size >= DEFAULT_PACKET), "64 bytes are slow enough");
        assert!(tried.iter().filter(|size| !size.is_power_of_two()).count() >= STEPS);
    }

    #[test]
    fn nothing_is_tried_of_which_no_strip_fits() {
        assert!(found(8, 0, 1000).1.is_empty());
        assert!(found(8, 100, 1000).1.iter().all(|&size| size <= 100));
        let spec = "2+1".parse().unwrap();
        // A strip of all nodes has 6 packets.
        let ranking =
            fastest_packet(&spec, &CodecOptions::default(), 6 * 130, PACKET_ROUNDS).unwrap();
        let sizes = ranking.choices.iter().map(|choice| choice.name.parse::<usize>().unwrap());
        assert!(sizes.clone().max().unwrap() <= 130 && sizes.is_sorted());
    }

    #[test]
    fn a_kernel_can_be_named() {
        let kernel = Kernel::Packetwise(Width::Bits64);
        let mut options = CodecOptions::default().kernel(KernelChoice::Only(kernel));
        options.plan.pass = Pass::Smart;
        let spec = "rdp:k=4".parse().unwrap();
        let mut findings = Vec::new();
        let rounds = Rounds::from_least(2);
        let note = |found: &Decision| findings.push(found.clone());
        find_packets(&[spec], &options, &[1 << 16], rounds, note).unwrap();
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!(finding.about, "rdp:k=4,p=5, 64 KiB, packetwise64");
        let size = |choice: &Choice| choice.name.parse::<usize>().unwrap();
        assert!(finding.choices.iter().all(|choice| size(choice).is_multiple_of(8)));
        let default = finding.choices.iter().find(|choice| choice.name == "64").unwrap();
        assert_eq!(default.ratio, Ratio::ONE);
        assert!(finding.choices.iter().any(|choice| !size(choice).is_power_of_two()));
    }
}
