//! `paritas tune`: which settings are fastest on this machine, measured once and remembered.

use paritas::Spec;
use paritas::tune::{self, Finding, Tuning, USUAL_CODES};
use serde_json::json;

use crate::args::Tune;
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Measures, reports every decision, and remembers.
pub fn run(args: &Tune, output: &Output) -> Outcome {
    if args.forget {
        return forget(output);
    }
    let usual = || USUAL_CODES.iter().map(|code| code.parse()).collect::<Result<Vec<Spec>, _>>();
    let codes = if args.codes.is_empty() { usual()? } else { args.codes.clone() };
    let tuning = tune::measure(&codes, |finding| report(finding, output))?;
    if args.dry_run {
        return Ok(Exit::Done);
    }
    let path = tuning.remember().map_err(|error| Failure::io("remembering the tuning", &error))?;
    let value = json!({"type": "tuning", "path": path.display().to_string(), "tuning": tuning});
    output.result(value, || format!("remembered in {}", path.display()));
    Ok(Exit::Done)
}

fn forget(output: &Output) -> Outcome {
    let found = Tuning::forget().map_err(|error| Failure::io("forgetting the tuning", &error))?;
    let text = if found { "forgotten; the defaults serve" } else { "nothing was remembered" };
    output.result(json!({"type": "tuning", "forgotten": found}), || text.to_owned());
    Ok(Exit::Done)
}

fn report(finding: &Finding, output: &Output) {
    let Finding { question, about, choices, chosen } = finding;
    let value = json!({
        "type": "decision", "question": question, "about": about, "chosen": chosen,
        "choices": choices.iter().map(|(name, speed)| json!({"name": name, "gbps": speed}))
            .collect::<Vec<_>>(),
    });
    output.result(value, || {
        let mut ranked = choices.clone();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        let ranked: Vec<String> =
            ranked.iter().map(|(name, speed)| format!("{name} {speed:.1}")).collect();
        format!("{question} ({about}): {chosen}\n  GB/s: {}", ranked.join(", "))
    });
}
