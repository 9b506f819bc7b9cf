//! Measures LT codes: their throughput beside that of the `raptorq` crate, and the figures of the
//! 2004 evaluation. `lab/papers/uyeda.py` runs this program and makes tables of its
//! output, which is CSV.
//!
//! ```text
//! fountain bench SPEC ROUNDS KIB        encode and decode blocks of KIB KiB, in pairs with raptorq
//! fountain raptorq encode|decode KIB    run raptorq for every line of input (`bench` starts this)
//! fountain variants C,… DELTA,… ROUNDS KIB
//!                                       decode the evaluation's variants, in pairs with table 7
//! fountain extremes ROUNDS KIB           decode with the parameters of section X, and inactivation
//! fountain blocks KIB K,K,… ROUNDS       decode an object of KIB KiB from k blocks: 64-bit XORs in
//!                                       pairs with the best ones
//! fountain tables RUNS                  averages of the evaluation's tables, by simulating graphs
//! fountain curve RUNS                   blocks needed against XORs, for many distributions
//! fountain defaults RUNS K,K,…          blocks that distributions need, for many k and n
//! fountain sizes RUNS K,K,…             blocks needed for several k
//! fountain freedom RUNS                 robustness of the variants
//! fountain system GRAPHS                network against computation (section VIII), several models
//! ```

mod bench;
#[path = "../../../crates/core/tests/testsuite/printed.rs"]
mod printed;
mod simulate;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().expect("a number");
    match words[..] {
        ["bench", spec, rounds, kib] => bench::peers(spec, number(rounds), number(kib) << 10),
        ["raptorq", kind, kib] => bench::serve(kind, number(kib) << 10),
        ["variants", c, delta, rounds, kib] => {
            bench::variants(c, delta, number(rounds), number(kib) << 10);
        }
        ["extremes", rounds, kib] => bench::extremes(number(rounds), number(kib) << 10),
        ["blocks", kib, data, rounds] => {
            let data: Vec<usize> = data.split(',').map(number).collect();
            bench::blocks(number(kib) << 10, &data, number(rounds));
        }
        ["tables", runs] => simulate::tables(number(runs)),
        ["curve", runs] => simulate::curve(number(runs)),
        ["defaults", runs, data] => {
            let data: Vec<usize> = data.split(',').map(number).collect();
            simulate::defaults(number(runs), &data);
        }
        ["sizes", runs, data] => {
            let data: Vec<usize> = data.split(',').map(number).collect();
            simulate::sizes(number(runs), &data);
        }
        ["freedom", runs] => simulate::freedom(number(runs)),
        ["system", graphs] => simulate::system(number(graphs)),
        _ => panic!("unknown arguments; the head of lab/fountain/src/main.rs lists the commands"),
    }
}
