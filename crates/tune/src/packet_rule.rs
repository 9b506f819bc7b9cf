//! The packet size of the dissertation's rule (3.1), and the caches that it refers to.
//!
//! A schedule that runs one operation after the other over whole packets reads and writes every
//! packet several times. The rule takes the largest packet size with which all packets of a stripe
//! (data, results and temporaries) fit together into a cache of L bytes:
//!
//! > packet x (w n + t) <= L
//!
//! The dissertation does not say which cache; `docs/errata.md` weighs its hints. On the machines
//! that were measured here, the rule with the first-level cache gives what it promises: a packet
//! size that is nearly the fastest.

use std::fs;
use std::path::Path;

/// The rule's packets are multiples of this many bytes: a vector of the widest kernels.
const UNIT: usize = 64;

/// A cache that a processor uses for data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuCache {
    /// Its level, from 1.
    pub level: u8,
    /// Number of bytes of the whole cache, even if several processors share it.
    pub bytes: usize,
}

/// Returns the caches for data of the first processor, by level. The list is empty if the system
/// does not describe them.
#[must_use]
pub fn caches() -> Vec<CpuCache> {
    caches_in(Path::new("/sys/devices/system/cpu/cpu0/cache"))
}

fn caches_in(folder: &Path) -> Vec<CpuCache> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut caches: Vec<CpuCache> = entries.filter_map(|entry| cache(&entry.path())).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// Reads the description of a cache; `None` for caches of instructions alone.
fn cache(folder: &Path) -> Option<CpuCache> {
    let read = |name| fs::read_to_string(folder.join(name)).ok();
    if read("type")?.trim() == "Instruction" {
        return None;
    }
    Some(CpuCache {
        level: read("level")?.trim().parse().ok()?,
        bytes: bytes(read("size")?.trim())?,
    })
}

/// Reads a size as Linux writes it: `32K`, `2M`.
fn bytes(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(['K', 'M']);
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        _ => return None,
    };
    digits.parse::<usize>().ok().filter(|&number| number > 0)?.checked_shl(shift)
}

/// Returns the packet size of rule (3.1) for a stripe that needs `packets` packets, temporaries
/// included, and a cache of `cache` bytes. It is at least one vector, even if a stripe of such
/// packets does not fit.
#[must_use]
pub fn packet_by_rule(packets: usize, cache: usize) -> usize {
    (cache / packets.max(1) / UNIT * UNIT).max(UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_packet_with_which_a_stripe_fits() {
        for (packets, cache) in [(27, 32 << 10), (100, 48 << 10), (278, 8 << 20), (1, 64)] {
            let packet = packet_by_rule(packets, cache);
            assert!(packet * packets <= cache && (packet + UNIT) * packets > cache);
            assert_eq!(packet % UNIT, 0);
        }
        assert_eq!(packet_by_rule(1000, 32 << 10), UNIT);
        assert_eq!(packet_by_rule(0, 128), 128);
    }

    #[test]
    fn caches_are_read_as_linux_describes_them() {
        let folder = tempfile::tempdir().unwrap();
        let described =
            [("3", "Unified", "32M"), ("1", "Data", "48K"), ("1", "Instruction", "32K")];
        for (number, (level, kind, size)) in described.iter().enumerate() {
            let index = folder.path().join(format!("index{number}"));
            fs::create_dir(&index).unwrap();
            for (name, text) in [("level", level), ("type", kind), ("size", size)] {
                fs::write(index.join(name), format!("{text}\n")).unwrap();
            }
        }
        fs::create_dir(folder.path().join("power")).unwrap();
        let cache = |level, bytes| CpuCache { level, bytes };
        assert_eq!(caches_in(folder.path()), [cache(1, 48 << 10), cache(3, 32 << 20)]);
        assert_eq!(caches_in(&folder.path().join("missing")), []);
    }

    #[test]
    fn what_is_no_size_is_refused() {
        assert_eq!((bytes("512"), bytes("2M")), (Some(512), Some(2 << 20)));
        for text in ["", "K", "x", "0K", "1G", "-1K", "1KK"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
