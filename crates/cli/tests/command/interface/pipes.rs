//! Pipes and devices as sources, as targets, and among files.

use super::*;

use crate::common;

/// Commands do not wait for pipes in folders of shards and of protected files, whatever their
/// names.
#[test]
fn pipes_among_files_are_passed_over() {
    let yard = Yard::encoded(10_000);
    yard.lose(1);
    for name in [
        "pipe",
        "object.0of6.paritas",
        "object.9of6.paritas",
        ".object.1of6.paritas.0123abcd.tmp",
        "object.1of6.paritas.0123abcd.old",
        "object.1of6.paritas.damaged-0123abcd-0123456789abcdef",
    ] {
        let pipe = yard.shards().join(name);
        mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    let shards = yard.shards();
    run(args!["verify", &shards]).expect(exit::REPAIRABLE);
    run(args!["verify", "--recursive", yard.folder.path()]).expect(exit::REPAIRABLE);
    run(args!["info", &shards]).expect(exit::DONE);
    run(args!["decode", &shards, "--out", "-"]).expect(exit::DONE);
    run(args!["promote", &shards]).expect(exit::ARGUMENTS);
    run(args!["repair", "--clean", "--remove-moved-aside", &shards]).expect(exit::DONE);
    assert!(shards.join("object.0of6-2.paritas").is_file());
    run(args!["verify", &shards]).expect(exit::DONE);
    let again = args!["encode", yard.path("object"), "--out", &shards, "--force"];
    assert!(run(again).expect(exit::ARGUMENTS).stderr.contains("object.0of6.paritas"));
    let foreign = ["--format", "jerasure", "--out"].map(OsString::from);
    run([&args!["import", &shards], &foreign[..], &args![yard.path("new")]].concat())
        .expect(exit::NOT_RECOGNISED);
    run(args!["protect", &shards]).expect(exit::DONE);
    let pipe = shards.join(".paritas").join(&names(&shards.join(".paritas"))[0]);
    fs::remove_file(&pipe).unwrap();
    mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    run(args!["verify", &shards]).expect(exit::REPAIRABLE);
    run(args!["protect", "--update", &shards]).expect(exit::DONE);
}

#[test]
fn devices_and_fifos_are_written_to() {
    let yard = Yard::encoded(1_000_000);
    run(args!["decode", yard.shards(), "--out", "/dev/null"]).expect(exit::DONE);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

    let fifo = yard.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    run(args!["decode", yard.shards(), "--out", &fifo]).expect(exit::DONE);
    assert!(reader.join().unwrap() == yard.content);
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
}

#[test]
fn pipes_are_sources_and_targets() {
    let content = Chance(10).bytes(10_000_000);
    let yard = Yard::new(0);
    let encode = args!["encode", "-", "--out", yard.shards(), "--no-sync"];
    run_with_input(encode, &content).expect(exit::DONE);
    assert!(names(&yard.shards()).contains(&"stdin.0of6.paritas".into()));
    yard.lose(2);
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let decoded = run(args!["decode", yard.shards(), "--out", name]).expect(exit::DONE);
        assert!(decoded.stdout == content && decoded.stderr.contains("stdin"), "{decoded}");
    }
    let nameless = args!["encode", "/dev/fd/0", "--out", yard.shards(), "--force"];
    let nameless = run(nameless).expect(exit::ARGUMENTS);
    assert!(nameless.stderr.contains("/dev/fd/0 has no file name; give one with --name"));
    let decoded = run(args!["decode", yard.shards(), "--out", "-"]).expect(exit::DONE);
    assert!(decoded.stdout == content);
    assert!(decoded.stderr.contains("stdin"), "the report goes to standard error: {decoded}");

    // decode | encode - | decode
    let mut source = paritas(args!["decode", yard.shards(), "--out", "-", "--quiet"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (again, name) = (yard.path("again"), OsString::from_vec(b"na\xffme".to_vec()));
    let mut command =
        paritas(args!["encode", "-", "--out", &again, "--name", name, "--code", "10+4"]);
    command.stdin(source.stdout.take().unwrap());
    finish(command).expect(exit::DONE);
    assert_eq!(wait(&mut source), (exit::DONE, String::new()));
    assert!(common::decode(&again) == content);

    for length in [0, 1, 4096] {
        let out = yard.path(format!("short{length}"));
        let encode = args!["encode", "-", "--out", &out, "--no-sync"];
        run_with_input(encode, &content[..length]).expect(exit::DONE);
        assert!(common::decode(&out) == content[..length]);
    }
}

#[test]
fn a_broken_pipe_is_an_output_failure() {
    let yard = Yard::encoded(10_000_000);
    let mut child = paritas(args!["decode", yard.shards(), "--out", "-", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = vec![0; 65_536];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let (code, stderr) = wait(&mut child);
    assert_eq!(code, exit::IO, "{stderr}");
    assert!(stderr.contains("pipe"), "{stderr}");
    assert!(start == yard.content[..65_536]);
}
