//! The oracle: the other program.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A request to the oracle.
pub struct Request<'a> {
    pub family: &'a str,
    pub k: usize,
    pub m: usize,
    pub w: usize,
    pub length: usize,
}

/// A running oracle.
pub struct Oracle {
    process: Child,
    requests: ChildStdin,
    replies: ChildStdout,
}

impl Oracle {
    pub fn start(program: &[String]) -> Result<Self, String> {
        let (name, arguments) = program.split_first().ok_or("no oracle is named")?;
        let mut process = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let (Some(requests), Some(replies)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(format!("{name} has no pipes"));
        };
        Ok(Self { process, requests, replies })
    }

    /// Asks for the parity shards of `data`.
    pub fn encode(
        &mut self,
        request: &Request<'_>,
        data: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, String> {
        self.ask(&format!("encode {}\n", request.line()), data, request.m, request.length)
    }

    /// Asks for all shards, computed from the shards that are not lost.
    pub fn decode(
        &mut self,
        request: &Request<'_>,
        shards: &[Vec<u8>],
        lost: &[usize],
    ) -> Result<Vec<Vec<u8>>, String> {
        let mut left = shards.to_vec();
        lost.iter().for_each(|&node| left[node].fill(0));
        let list: Vec<String> = lost.iter().map(usize::to_string).collect();
        let line = format!("decode {} {}\n", request.line(), list.join(","));
        self.ask(&line, &left, request.k + request.m, request.length)
    }

    fn ask(
        &mut self,
        line: &str,
        shards: &[Vec<u8>],
        replies: usize,
        length: usize,
    ) -> Result<Vec<Vec<u8>>, String> {
        let mut talk = || -> std::io::Result<Vec<Vec<u8>>> {
            self.requests.write_all(&[line.as_bytes(), &shards.concat()].concat())?;
            self.requests.flush()?;
            let mut made = vec![vec![0; length]; replies];
            made.iter_mut().try_for_each(|shard| self.replies.read_exact(shard))?;
            Ok(made)
        };
        talk().map_err(|error| format!("the oracle does not answer {}: {error}", line.trim_end()))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // The program ends by itself when its input ends; one that is stuck is killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Request<'_> {
    fn line(&self) -> String {
        let Self { family, k, m, w, length } = self;
        format!("{family} {k} {m} {w} {length}")
    }
}
