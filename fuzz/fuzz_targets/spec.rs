//! Fuzzes names of codes, and pins as a damaged header might hold them: nothing panics; what is
//! read prints back equal; what is defined is rebuilt from its spec and pin.
//!
//! The first line is a spec, and the others are pinned lists: `points 0 1 2`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use paritas::code::Pin;
use paritas::{Code, Spec};

/// Smallest parameter that is skipped: from here up to 65,536 parameters are legal, but take
/// seconds to build.
const MODERATE: u64 = 20;
const NEVER_LEGAL: u64 = 1 << 17;

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let Ok(spec) = lines.next().unwrap_or("").parse::<Spec>() else { return };
    assert_eq!(spec.to_string().parse::<Spec>().expect("what prints is read"), spec);
    if !is_quick(&spec) {
        return;
    }
    if let Ok(code) = Code::new(&spec) {
        let again = Code::rebuild(code.spec(), code.pin()).expect("a code has a pin that fits");
        assert_eq!((again.spec(), again.pin()), (code.spec(), code.pin()));
        assert_eq!(description(&again), description(&code));
    }
    let _ = Code::rebuild(&spec, &lines.fold(Pin::new(), with_list));
});

/// Whether the parameters are small, or so large that they must be refused at once.
fn is_quick(spec: &Spec) -> bool {
    ["k", "m", "m2", "n", "nodes", "w", "p"].into_iter().filter_map(|key| spec.text(key)).all(
        |value| value.parse().is_ok_and(|number: u64| !(MODERATE..NEVER_LEGAL).contains(&number)),
    )
}

fn with_list(pin: Pin, line: &str) -> Pin {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or("");
    pin.with(name, words.filter_map(|word| word.parse().ok()))
}

fn description(code: &Code) -> Vec<u8> {
    let mut bytes = Vec::new();
    code.describe(|part| bytes.extend_from_slice(part));
    bytes
}
