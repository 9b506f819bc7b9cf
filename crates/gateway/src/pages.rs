//! The pages for operators: `/-/` for people, `/-/metrics` for Prometheus, `/-/health` for load
//! balancers. Only `/-/health` is answered to all machines. The others show names of nodes, and are
//! answered only to this machine, unless the gateway is configured otherwise.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::{HeaderValue, Method, Response, StatusCode, header};
use paritas_store::shown::counted;
use paritas_volume::{NodeStatus, ScrubStatus, Volume, VolumeStatus};
use s3s::Body;
use tokio::time::{Instant, timeout};

use crate::findings::UpkeepFindings;
use crate::held::held;
use crate::metrics::{Metrics, OfNode, OfWork, WaitingWork};
use crate::traffic::{MINUTES, Passed};

/// How long a status is shown before nodes are asked again.
const FRESH: Duration = Duration::from_secs(5);
/// How long the last status is shown while nodes are asked: longer than a silent node delays them.
const STALE: Duration = Duration::from_secs(60);
/// How long an answer waits for nodes before it shows the last status.
const PATIENCE: Duration = Duration::from_millis(500);

/// The pages of a gateway.
pub struct StatusPages {
    look: Arc<VolumeLook>,
    findings: Arc<UpkeepFindings>,
    is_public: bool,
}

/// What was seen of a volume last.
struct VolumeLook {
    volume: Arc<Volume>,
    metrics: Arc<Metrics>,
    seen: Mutex<Option<(Instant, Result<VolumeStatus, String>)>>,
    /// Held while nodes are asked.
    turn: tokio::sync::Mutex<()>,
}

impl StatusPages {
    pub fn new(
        volume: Arc<Volume>,
        metrics: Arc<Metrics>,
        findings: Arc<UpkeepFindings>,
        is_public: bool,
    ) -> Self {
        let (seen, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        let look = Arc::new(VolumeLook { volume, metrics, seen, turn });
        Self { look, findings, is_public }
    }

    /// Answers a request for a page. `is_local` says whether it comes from this machine.
    pub async fn answer(&self, method: &Method, path: &str, is_local: bool) -> Response<Body> {
        if ![Method::GET, Method::HEAD].contains(method) {
            return refused_method();
        }
        match path {
            "/-/health" => self.health().await,
            _ if !self.is_public && !is_local => {
                let text = "answered to this machine only; see `paritas serve --help`\n";
                page(StatusCode::FORBIDDEN, "text/plain; charset=utf-8", text.to_owned())
            }
            "/-/metrics" => {
                let _ = self.look.status().await;
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                page(StatusCode::OK, kind, self.look.metrics.text())
            }
            "/-/" => self.overview().await,
            "/-/page.js" => page(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT.into()),
            _ => page(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "no such page\n".into()),
        }
    }

    async fn health(&self) -> Response<Body> {
        let (status, text) = match self.look.status().await {
            Ok(status) if status.unreadable() <= status.tolerance => {
                (StatusCode::OK, "ok\n".into())
            }
            Ok(status) => {
                let text = format!("{} nodes cannot be read\n", status.unreadable());
                (StatusCode::SERVICE_UNAVAILABLE, text)
            }
            // The error names nodes, and everybody may ask for this page.
            Err(_) => {
                let text = "the volume cannot be read; the gateway's log says why\n";
                (StatusCode::SERVICE_UNAVAILABLE, text.to_owned())
            }
        };
        page(status, "text/plain; charset=utf-8", text)
    }

    async fn overview(&self) -> Response<Body> {
        let body = match self.look.status().await {
            Ok(status) => {
                let hour = self.look.metrics.traffic.last_hour();
                overview_of(&status) + &findings_of(&self.findings) + &traffic_of(&hour)
            }
            Err(error) => format!("<p class=bad>{}</p>", escaped(&error)),
        };
        let text = PAGE.replace("{code}", &escaped(&self.look.volume.code().spec().to_string()));
        let text = text.replace("{body}", &body);
        page(StatusCode::OK, "text/html; charset=utf-8", text)
    }
}

impl VolumeLook {
    /// Returns the state of the volume, at most a few seconds old. If a node delays the next look
    /// by more than half a second, the last one counts for a while: balancers do not wait for
    /// silent nodes.
    async fn status(self: &Arc<Self>) -> Result<VolumeStatus, String> {
        let last = held(&self.seen).clone();
        match last {
            Some((when, status)) if when.elapsed() < FRESH => status,
            Some((when, status)) if when.elapsed() < STALE => {
                let look = tokio::spawn(Arc::clone(self).again());
                match timeout(PATIENCE, look).await {
                    Ok(Ok(new)) => new,
                    _ => status,
                }
            }
            // The look continues if a balancer does not wait for it, so that a later one has it.
            _ => {
                let look = tokio::spawn(Arc::clone(self).again()).await;
                look.unwrap_or_else(|error| Err(format!("looking at the volume: {error}")))
            }
        }
    }

    /// Asks the nodes, unless somebody else has done so meanwhile.
    async fn again(self: Arc<Self>) -> Result<VolumeStatus, String> {
        let _turn = self.turn.lock().await;
        if let Some((when, status)) = &*held(&self.seen)
            && when.elapsed() < FRESH
        {
            return status.clone();
        }
        let status = self.volume.status().await;
        let status = status
            .inspect_err(|error| tracing::warn!(%error, "the volume cannot be read"))
            .map_err(|error| error.to_string());
        let last = held(&self.seen).replace((Instant::now(), status.clone()));
        match &status {
            Ok(status) => {
                self.count(status);
                let before = last.and_then(|(_, status)| status.ok());
                log_changes(before.as_ref().map_or(&[], |before| &before.nodes), &status.nodes);
            }
            // No node can be read.
            Err(_) => self.volume.members().iter().for_each(|member| {
                let of = OfNode { node: member.name.clone() };
                self.metrics.nodes_up.get_or_create(&of).set(0);
            }),
        }
        status
    }

    fn count(&self, status: &VolumeStatus) {
        self.metrics.keep_nodes(status.nodes.iter().map(|node| node.name.clone()).collect());
        status.nodes.iter().for_each(|node| self.count_node(node));
        for (work, waiting) in [
            (WaitingWork::Owed, &status.owed),
            (WaitingWork::Lost, &status.lost),
            (WaitingWork::Backlog, &status.backlog),
        ] {
            self.metrics.waiting.get_or_create(&OfWork { work }).set(waiting.objects as i64);
        }
    }

    fn count_node(&self, node: &NodeStatus) {
        let of = OfNode { node: node.name.clone() };
        let Metrics { nodes_up, nodes_answer, nodes_free, .. } = &*self.metrics;
        nodes_up.get_or_create(&of).set(i64::from(node.problem.is_none()));
        nodes_answer.get_or_create(&of).set(node.answered_in.as_secs_f64());
        match node.free_bytes.and_then(|free| i64::try_from(free).ok()) {
            Some(free) => _ = nodes_free.get_or_create(&of).set(free),
            None => _ = nodes_free.remove(&of),
        }
    }
}

/// Returns the answer to a request that would change a page.
fn refused_method() -> Response<Body> {
    let text = "pages are only read\n".to_owned();
    let mut answer = page(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", text);
    answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    answer
}

/// Logs which nodes cannot be used any more, and which can again, since the last look. (Requests
/// and upkeep may succeed without them, and then log nothing.)
fn log_changes(before: &[NodeStatus], now: &[NodeStatus]) {
    for NodeStatus { name, problem, .. } in now {
        let last = before.iter().find(|node| node.name == *name);
        let was_usable = last.is_none_or(|node| node.problem.is_none());
        match problem {
            Some(problem) if was_usable => {
                tracing::warn!(node = name, problem, "a node cannot be used");
            }
            None if !was_usable => tracing::info!(node = name, "a node can be used again"),
            _ => {}
        }
    }
}

/// The frame of the page for people.
const PAGE: &str = include_str!("page.html");
/// The script that brings the page up to date.
const SCRIPT: &str = include_str!("page.js");

/// Returns the class and the text of what it means that `useless` nodes cannot be used, of which
/// `unreadable` cannot be read either, if any `tolerance` may be lost, and `lacking` more must
/// become usable before puts can succeed.
fn verdict(
    (useless, unreadable): (usize, usize),
    tolerance: usize,
    lacking: usize,
) -> (&'static str, String) {
    let (class, text) = match tolerance.saturating_sub(useless) {
        _ if useless == 0 => {
            ("good", format!("All nodes can be used; any {tolerance} may be lost."))
        }
        _ if unreadable > tolerance => (
            "bad",
            format!("{unreadable} cannot be read, and only {tolerance} may be: requests fail."),
        ),
        0 => ("bad", format!("{useless} cannot be used: nothing more may be lost.")),
        left => ("warn", format!("{useless} cannot be used; {left} more may be lost.")),
    };
    match lacking {
        0 => (class, text),
        _ => ("bad", format!("{text} Puts and removals fail until {lacking} more can be used.")),
    }
}

fn overview_of(status: &VolumeStatus) -> String {
    let mut domains: Vec<&str> = status.nodes.iter().map(|node| node.domain.as_str()).collect();
    domains.sort_unstable();
    domains.dedup();
    let nodes = (status.useless(), status.unreadable());
    let (kind, verdict) = verdict(nodes, status.tolerance, status.lacking_for_puts());
    let mut page = format!("<p class={kind}>{verdict}</p><div class=domains>");
    for domain in domains {
        let nodes = || status.nodes.iter().filter(|node| node.domain == domain);
        let heading = match nodes().all(|node| node.name == domain) {
            true => String::new(),
            false => format!("<h2>{}</h2>", escaped(domain)),
        };
        let list: String = nodes().map(node_of).collect();
        page += &format!("<section>{heading}<ul>{list}</ul></section>");
    }
    page += "</div><h2>Upkeep</h2><dl>";
    for (work, waiting) in [
        ("owed to repair", &status.owed),
        ("lost when they were last repaired", &status.lost),
        ("waiting for promotion", &status.backlog),
    ] {
        let oldest = waiting
            .oldest_seconds
            .map_or(String::new(), |seconds| format!(", the oldest since {}", minutes(seconds)));
        let objects = counted(waiting.objects, "object");
        page += &format!("<dt>{work}</dt><dd>{objects}{oldest}</dd>");
    }
    page + &format!("<dt>scrub</dt><dd>{}</dd></dl>", scrub_of(&status.scrub, now()))
}

fn findings_of(findings: &UpkeepFindings) -> String {
    let item = |(text, times, since): (String, u64, Duration)| {
        let times = if times > 1 { format!(", {times} times") } else { String::new() };
        format!(
            "<li>{} <small>{} ago{times}</small></li>",
            escaped(&text),
            minutes(since.as_secs())
        )
    };
    let list: String = findings.latest().into_iter().map(item).collect();
    match list.is_empty() {
        true => {
            "<h2>Last findings</h2><p>Upkeep has found nothing that it could not mend.</p>".into()
        }
        false => format!("<h2>Last findings</h2><ul class=findings>{list}</ul>"),
    }
}

fn node_of(node: &NodeStatus) -> String {
    let (kind, text) = match (&node.problem, node.is_drained) {
        (Some(problem), _) => ("bad", problem.as_str()),
        (None, true) => ("warn", "drained"),
        (None, false) => ("good", "in use"),
    };
    let answers = || format!("answers in {:.1} ms", 1000.0 * node.answered_in.as_secs_f64());
    let free = node.free_bytes.map(|free| format!("{} free", bytes(free)));
    let facts: Vec<String> = match node.problem {
        None => free.into_iter().chain([answers()]).collect(),
        Some(_) => Vec::new(),
    };
    let (name, text, facts) = (escaped(&node.name), escaped(text), facts.join(", "));
    format!("<li><span class={kind}><b>{name}</b> {text}</span> <small>{facts}</small></li>")
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Tells how far the scrub is, and how long the rest of a pass takes at its speed so far.
fn scrub_of(scrub: &ScrubStatus, now: u64) -> String {
    let ago = |time: u64| minutes(now.saturating_sub(time));
    let last = scrub.last.map(|last| {
        let (names, left) = (last.names, last.left);
        format!("all {names} objects read {} ago, {left} of them not whole", ago(last.ended))
    });
    let pass = scrub.pass.as_ref().map(|pass| {
        let left = pass.names.saturating_sub(pass.done) as u64;
        let rest = match pass.done {
            0 => String::new(),
            done => {
                let seconds = now.saturating_sub(pass.began).saturating_mul(left) / done as u64;
                format!(", about {} to go", minutes(seconds))
            }
        };
        format!("{} of {} objects read since {} ago{rest}", pass.done, pass.names, ago(pass.began))
    });
    match (pass, last) {
        (None, None) => "not begun".to_owned(),
        (pass, last) => pass.into_iter().chain(last).collect::<Vec<_>>().join("; before, "),
    }
}

/// Draws what passed in the last hour: a bar for each minute, as high as its bytes.
fn traffic_of(hour: &[Passed; MINUTES]) -> String {
    let sum = |what: fn(&Passed) -> u64| hour.iter().map(what).sum::<u64>();
    let (requests, received, sent) =
        (sum(|it| it.requests), sum(|it| it.received), sum(|it| it.sent));
    let most = hour.iter().map(|minute| minute.bytes()).max().unwrap_or_default();
    let text = format!(
        "{requests} requests, {} received, {} sent; at most {} in a minute",
        bytes(received),
        bytes(sent),
        bytes(most)
    );
    let bars: String = hour
        .iter()
        .enumerate()
        .map(|(at, minute)| {
            let height = (minute.bytes() * 40).div_ceil(most.max(1));
            format!("<rect x={} y={} width=3 height={height} />", 4 * at, 40 - height)
        })
        .collect();
    format!(
        "<h2>The last hour</h2><svg viewBox=\"0 0 240 40\" preserveAspectRatio=none role=img aria-label=\"{text}\">{bars}\
         </svg><p>{text}</p>"
    )
}

fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let unit = (count.max(1).ilog2() as usize / 10).min(UNITS.len() - 1);
    match unit {
        0 => format!("{count} bytes"),
        _ => format!("{:.1} {}", count as f64 / (1u64 << (10 * unit)) as f64, UNITS[unit]),
    }
}

fn minutes(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

fn page(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src data:";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    answer
}

#[cfg(test)]
mod tests {
    use paritas_volume::node::{Fault, Faulty, FolderNode, Node, NodeCall, Trigger};
    use paritas_volume::{FullPass, Member, ScrubPass, Setup};

    use super::*;

    /// The state of a volume over three folders that do not exist. Reads of a silent one never end.
    fn look(is_silent: bool) -> Arc<VolumeLook> {
        let node = |disk: usize| {
            let name = format!("disk{disk}");
            let folder: Arc<dyn Node> = Arc::new(FolderNode::new(&name, &name, false));
            let silent = Faulty::new(Arc::clone(&folder), 1);
            let silent = silent.with(NodeCall::Read, Fault::Hang, Trigger::From(1));
            let node: Arc<dyn Node> = if is_silent { Arc::new(silent) } else { folder };
            (Member { domain: name.clone(), name, is_drained: false }, node)
        };
        let code = paritas::Code::new(&"2+1".parse().unwrap()).unwrap();
        let setup = Setup::new("0".repeat(32), code, (0..3).map(node).collect());
        let volume = Arc::new(Volume::new(setup).unwrap());
        let (metrics, seen, turn) = (Arc::default(), Mutex::default(), Default::default());
        Arc::new(VolumeLook { volume, metrics, seen, turn })
    }

    #[test]
    fn the_verdict_tells_whether_requests_fail() {
        let text = |useless, tolerance| verdict((useless, useless), tolerance, 0).1;
        assert_eq!(text(0, 2), "All nodes can be used; any 2 may be lost.");
        assert_eq!(text(1, 2), "1 cannot be used; 1 more may be lost.");
        assert_eq!(text(2, 2), "2 cannot be used: nothing more may be lost.");
        assert_eq!(text(3, 2), "3 cannot be read, and only 2 may be: requests fail.");
        // Full nodes can be read.
        assert_eq!(verdict((3, 2), 2, 0).1, "3 cannot be used: nothing more may be lost.");
        let expected = "1 cannot be used; 1 more may be lost. \
                        Puts and removals fail until 1 more can be used.";
        assert_eq!(verdict((1, 1), 2, 1), ("bad", expected.to_owned()));
    }

    /// The last state counts while nodes are asked, but not for ever.
    #[tokio::test(start_paused = true)]
    async fn a_silent_node_does_not_delay_pages() {
        let last = look(false).status().await;
        let look = look(true);
        *held(&look.seen) = Some((Instant::now(), last.clone()));
        for (after, is_answered) in [(FRESH, true), (FRESH, true), (STALE, false)] {
            tokio::time::advance(after).await;
            let status = timeout(Duration::from_secs(1), look.status()).await;
            assert_eq!(status.is_ok(), is_answered);
            tokio::task::yield_now().await;
            assert!(look.turn.try_lock().is_err(), "the nodes are asked");
        }
    }

    #[test]
    fn the_scrub_tells_how_long_the_rest_takes() {
        let mut scrub = ScrubStatus::default();
        assert_eq!(scrub_of(&scrub, 0), "not begun");
        scrub.pass = serde_json::from_str::<ScrubPass>(
            r#"{"began": 1000, "after": "a", "done": 25, "names": 100, "left": 1}"#,
        )
        .ok();
        assert_eq!(
            scrub_of(&scrub, 1200),
            "25 of 100 objects read since 3 min ago, about 10 min to go"
        );
        scrub.last = serde_json::from_str::<FullPass>(
            r#"{"began": 0, "ended": 100, "names": 99, "left": 2}"#,
        )
        .ok();
        let both = scrub_of(&scrub, 1200);
        assert!(both.ends_with("; before, all 99 objects read 18 min ago, 2 of them not whole"));
        scrub.pass = None;
        assert_eq!(scrub_of(&scrub, 1200), "all 99 objects read 18 min ago, 2 of them not whole");
    }

    #[test]
    fn findings_are_shown_as_text() {
        let findings = UpkeepFindings::default();
        assert!(findings_of(&findings).contains("nothing that it could not mend"));
        (0..2).for_each(|_| findings.note("repairing <b>", &"lost"));
        let shown = findings_of(&findings);
        let expected = "<li>repairing &lt;b&gt;: lost <small>0 s ago, 2 times</small></li>";
        assert!(shown.contains(expected), "{shown}");
    }

    #[test]
    fn traffic_is_drawn_to_the_scale_of_its_highest_minute() {
        let mut hour = [Passed::default(); MINUTES];
        let empty = traffic_of(&hour);
        assert!(empty.contains("0 requests, 0 bytes received"), "{empty}");
        assert_eq!(empty.matches("height=0 ").count(), MINUTES);
        hour[0] = Passed { requests: 1, received: 2048, sent: 0 };
        hour[59] = Passed { requests: 2, received: 0, sent: 1024 };
        let drawn = traffic_of(&hour);
        assert!(drawn.contains("3 requests, 2.0 KiB received, 1.0 KiB sent; at most 2.0 KiB"));
        assert!(drawn.contains("<rect x=0 y=0 width=3 height=40 />"));
        assert!(drawn.contains("<rect x=236 y=20 width=3 height=20 />"));
    }
}
