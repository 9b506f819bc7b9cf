//! No room for files, and no more threads.

use super::*;

use crate::common;

/// Runs the program with a limit of 8 KiB on the size of files. The signal at the limit must not
/// end it.
fn run_without_room(arguments: &[OsString]) -> Run {
    finish(common::paritas_after("ulimit -f 16", arguments))
}

/// A failed write is reported and leaves nothing, and existing files stay.
#[test]
fn no_room() {
    let yard = Yard::protected(&[]);
    let parity = snapshot(&yard.photo(".paritas"));
    let protect = run_without_room(&args!["protect", yard.root(), "--force"]).expect(exit::IO);
    assert!(protect.stderr.contains("paritas: writing"), "{protect}");
    assert!(snapshot(&yard.photo(".paritas")) == parity);
    run(args!["verify", yard.root()]).expect(exit::DONE);

    let whole = snapshot(&yard.root());
    flip(&yard.photo("a.jpg"), 10);
    let damaged = snapshot(&yard.root());
    let repair = run_without_room(&args!["repair", yard.root()]).expect(exit::IO);
    assert!(repair.stderr.contains("a.jpg"), "{repair}");
    assert!(snapshot(&yard.root()) == damaged);
    run(args!["repair", yard.root()]).expect(exit::DONE);
    assert!(snapshot(&yard.root()) == whole);
}

/// A dry run ends as the command does if there is no room for the parity.
#[test]
fn no_room_is_foretold() {
    let yard = Yard::new();
    // Holes take no room, but their parity does.
    File::create(yard.photo("image")).unwrap().set_len(8 << 40).unwrap();
    for more in [&["--dry-run"][..], &[]] {
        let arguments = args!["protect", yard.root(), "--redundancy", "100%"; more];
        let protect = run(arguments).expect(exit::IO);
        assert!(protect.stderr.contains("its disk has room for"), "{protect}");
        assert!(!yard.photo(".paritas").exists(), "{protect}");
    }
}

/// Returns the program, run by a user who may have only one thread.
fn with_one_thread(arguments: &[OsString]) -> Command {
    let mut command = Command::new("prlimit");
    // The limit counts all processes of a user, so each run of the tests has a user of its own.
    let user = format!("--reuid={}", 40_000 + std::process::id() % 20_000);
    command.args(["--nproc=1", "setpriv", &user, "--regid=65533", "--clear-groups"]);
    command.arg(env!("CARGO_BIN_EXE_paritas")).args(arguments);
    command
}

/// If the system allows no more threads, one thread does all the work.
#[test]
fn no_more_threads() {
    let starts = with_one_thread(&args!["--version"]).output();
    if !starts.is_ok_and(|output| output.status.success()) {
        return common::not_run("protect: no other user can run the program");
    }
    let yard = Yard::new();
    // Several batches, so that one would be read while another is coded.
    fs::write(yard.photo("large"), Chance(6).bytes(70_000_000)).unwrap();
    for folder in [yard.folder.path(), &yard.root()] {
        fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
    }
    finish(with_one_thread(&args!["protect", yard.root(), "--no-sync"])).expect(exit::DONE);
    renew_times(&yard.root());
    flip(&yard.photo("large"), 60_000_000);
    finish(with_one_thread(&args!["verify", yard.root()])).expect(exit::REPAIRABLE);
    finish(with_one_thread(&args!["repair", yard.root(), "--no-sync"])).expect(exit::DONE);
    run(args!["verify", yard.root()]).expect(exit::DONE);
}
