//! `paritas tune`: measures which settings are fastest on this machine, and remembers them.

use paritas::research::Pass;
use paritas::{CodecOptions, Spec};
use paritas_tune::{Choice, Decision, PACKET_SETS, Tuning, USUAL_CODES};
use serde_json::{Value, json};

use crate::args::Tune;
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, shown};

/// Measures, reports every decision, and remembers the result.
pub fn run(args: &Tune, output: &Output) -> Outcome {
    if args.forget {
        return forget(output);
    }
    let usual = || USUAL_CODES.iter().map(|code| code.parse()).collect::<Result<Vec<Spec>, _>>();
    let codes = if args.codes.is_empty() { usual()? } else { args.codes.clone() };
    if args.packet {
        let mut options = CodecOptions::default().kernel(args.kernel);
        options.plan.pass = args.pass.map_or(options.plan.pass, Pass::from);
        let sets = args.set.map_or_else(|| PACKET_SETS.to_vec(), |set| vec![set]);
        paritas_tune::find_packets(&codes, &options, &sets, |finding| report(finding, output))?;
        return Ok(Exit::Done);
    }
    let tuning = paritas_tune::find(&codes, |finding| report(finding, output))?;
    if args.dry_run {
        return Ok(Exit::Done);
    }
    let path = tuning.remember().map_err(|error| Failure::io("remembering the tuning", &error))?;
    let mut value = json!({"type": "tuning", "tuning": tuning});
    output::insert_name(&mut value, "path", path.as_os_str());
    output.result(value, || format!("remembered in {}", shown(&path)));
    Ok(Exit::Done)
}

fn forget(output: &Output) -> Outcome {
    let found = Tuning::forget().map_err(|error| Failure::io("forgetting the tuning", &error))?;
    let text =
        if found { "forgotten; the built-in defaults are used" } else { "nothing was remembered" };
    output.result(json!({"type": "tuning", "forgotten": found}), || text.to_owned());
    Ok(Exit::Done)
}

fn report(finding: &Decision, output: &Output) {
    let Decision { question, about, choices, chosen, .. } = finding;
    let value = json!({
        "type": "decision", "question": question, "about": about, "chosen": chosen,
        "choices": choices.iter().map(value).collect::<Vec<_>>(),
    });
    output.result(value, || {
        let mut ranked: Vec<&Choice> = choices.iter().collect();
        ranked.sort_by(|a, b| b.ratio.median.total_cmp(&a.ratio.median));
        let ranked: Vec<String> = ranked.into_iter().map(text).collect();
        format!("{question} ({about}): {chosen}\n  GB/s: {}", ranked.join(", "))
    });
}

fn value(choice: &Choice) -> Value {
    let Choice { name, gbps, gbps_p90, ratio, .. } = choice;
    json!({
        "name": name, "gbps": gbps, "gbps_p90": gbps_p90, "ratio": ratio.median,
        "ratio_low": ratio.low, "ratio_high": ratio.high, "pairs": ratio.pairs,
    })
}

fn text(choice: &Choice) -> String {
    let Choice { name, gbps, ratio, .. } = choice;
    format!("{name} {gbps:.1} (x {:.2}, {:.2} to {:.2})", ratio.median, ratio.low, ratio.high)
}
