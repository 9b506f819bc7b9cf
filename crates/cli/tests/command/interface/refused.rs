//! Options that mean nothing, and streams that cannot be used: both are refused.

use super::*;

/// Rust hides the error of writing to a stream that is closed or open for reading.
#[test]
fn an_output_that_cannot_be_written_is_refused() {
    let yard = Yard::encoded(1000);
    let decode = args!["decode", yard.shards(), "--out", "-"];
    let file = yard.path("object");
    for (how, why) in [(">&-", "it is closed"), ("1<\"$0\"", "it is open for reading alone")] {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec \"$@\" {how}")]).arg(&file);
        command.arg(env!("CARGO_BIN_EXE_paritas")).args(&decode);
        let refused = finish(command).expect(exit::IO);
        assert!(
            refused.stderr.contains(&format!("writing to standard output: {why}")),
            "{refused}"
        );
    }
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" 0>\"$0\""]).arg(yard.path("written"));
    command.arg(env!("CARGO_BIN_EXE_paritas")).args(args![
        "encode",
        "-",
        "--out",
        yard.path("new")
    ]);
    let refused = finish(command).expect(exit::IO);
    assert!(refused.stderr.contains("reading standard input: it is open for writing"), "{refused}");
}

/// A value that begins with a dash is no value after `--`.
#[test]
fn values_that_begin_with_a_dash_are_explained() {
    for arguments in [
        args!["encode", "f", "--out", "o", "--threads", "-1"].to_vec(),
        args!["info", "-dash"].to_vec(),
    ] {
        let refused = run(&arguments).expect(exit::ARGUMENTS);
        assert!(!refused.stderr.contains("use '-- "), "{refused}");
        assert!(refused.stderr.contains("a value is written --OPTION=-"), "{refused}");
    }
}

#[test]
fn options_without_meaning_are_refused() {
    let lt = "lt:k=64,n=128";
    for (arguments, why) in [
        (args!["schedule", lt, "--pass", "um"].to_vec(), "--pass has no effect on lt"),
        (args!["schedule", lt, "--kernel", "jit-avx2"].to_vec(), "--kernel has no effect on lt"),
        (args!["schedule", lt, "--asm"].to_vec(), "--asm has no effect on lt"),
        (args!["schedule", "4+2", "--fewest-reads"].to_vec(), "needs --erase or --worst-loss"),
        (
            args!["schedule", "bbdpg:k=6,m=2,m2=4", "--stage", "1", "--erase", "8"].to_vec(),
            "0 to 7 of",
        ),
        (
            args!["bench", "--code", "backblaze:k=4,m=2", "--sweep", "packet"].to_vec(),
            "needs a code in packets",
        ),
        (args!["codes", "4+2", "--svg", "-"].to_vec(), "--svg takes a file"),
        (
            args!["bench", "--code", "4+2", "--against", "packet=64,packet=128"].to_vec(),
            "packet is given twice",
        ),
    ] {
        let refused = run(&arguments).expect(exit::ARGUMENTS);
        assert!(refused.stderr.contains(why), "{refused}");
    }
    let yard = Yard::new(1000);
    for code in [lt, "backblaze:k=4,m=2"] {
        let more = args!["--out", yard.path("out"), "--code", code, "--packet", "tuned"];
        let refused = run([&args!["encode", yard.path("object")][..], &more].concat());
        assert!(refused.expect(exit::ARGUMENTS).stderr.contains("needs a code in packets"));
    }
    // The system does not find a file by a path with a slash at its end.
    let out = format!("{}/", yard.path("object").display());
    let refused = run(args!["encode", yard.path("object"), "--out", out]).expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("is not a folder"), "{refused}");
}
