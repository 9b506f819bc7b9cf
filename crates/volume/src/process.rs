//! Processes of this machine: whether the process that left something has ended.
//!
//! Files that a process leaves bear its *tag*: a number for the machine's present run and the
//! namespace of process numbers (containers have their own namespaces), the process's number, and
//! the time at which it began. A process whose tag has another first number may run anywhere, so it
//! does not count as ended.

use std::sync::{Mutex, PoisonError};

use crate::outside::is_simulated;

/// The tag of this process, with the process's number: a fork has another number, so it needs
/// another tag.
static TAG: Mutex<Option<(u32, String)>> = Mutex::new(None);

/// Returns the tag of this process, or `None` where the system does not tell enough for one.
pub(crate) fn tag() -> Option<String> {
    if is_simulated() {
        return None;
    }
    let process = std::process::id();
    let mut known = TAG.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some((of, tag)) if *of == process => Some(tag.clone()),
        _ => {
            let tag = format!("{}-{process}-{}", machine()?, began(process)?);
            *known = Some((process, tag.clone()));
            Some(tag)
        }
    }
}

/// Whether a tag belongs to a process of this machine that has ended.
pub(crate) fn is_over(tag: &str) -> bool {
    let [of, process, time] = match tag.split('-').collect::<Vec<_>>().try_into() {
        Ok(parts) => parts,
        Err(_) => return false,
    };
    let (Ok(process), Ok(time)) = (process.parse(), time.parse::<u64>()) else { return false };
    if machine().is_none_or(|machine| machine != of) {
        return false;
    }
    // Another process may have the number by now. The files of a process may be hidden from us.
    !exists(process) || began(process).is_some_and(|began| began != time)
}

/// Returns 16 hexadecimal digits for the present run of the machine, until it is started again, and
/// the space of process numbers.
#[cfg(target_os = "linux")]
fn machine() -> Option<String> {
    let run = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let both = format!("{} {}", run.trim(), space.display());
    Some(blake3::hash(both.as_bytes()).to_hex()[..16].to_owned())
}

#[cfg(not(target_os = "linux"))]
fn machine() -> Option<String> {
    None
}

/// Returns when a process began, in ticks since the machine was started.
fn began(process: u32) -> Option<u64> {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may have blanks.
    let (_, fields) = state.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(unix)]
fn exists(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    let asked = process.map(rustix::process::test_kill_process);
    // The process may belong to another user; the system reports that by another error.
    asked.is_some_and(|asked| asked != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn exists(_: u32) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_processes_of_this_machine_are_known_to_be_over() {
        let mine = tag().unwrap();
        assert!(!is_over(&mine));
        let [machine, process, time] = mine.split('-').collect::<Vec<_>>().try_into().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(is_over(&format!("{machine}-{}-1", child.id())));
        assert!(is_over(&format!("{machine}-{process}-1")), "its number was given again");
        assert!(!is_over(&format!("{}-{}-1", "0".repeat(16), child.id())), "another machine");
        for other in ["", "a", "a-b-c", &format!("{machine}-x-{time}"), &format!("{mine}-1")] {
            assert!(!is_over(other), "{other}");
        }
    }
}
