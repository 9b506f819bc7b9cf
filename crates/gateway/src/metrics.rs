//! What a gateway counts, for Prometheus.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::Method;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::held::held;
use crate::traffic::{Passed, Traffic};

/// A kind of requests and answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Answered {
    method: String,
    status: u16,
}

impl Answered {
    /// Counts methods that HTTP does not have as one kind, because a kind is kept for ever.
    fn new(method: &Method, status: u16) -> Self {
        const METHODS: [Method; 9] = [
            Method::GET,
            Method::HEAD,
            Method::PUT,
            Method::POST,
            Method::DELETE,
            Method::OPTIONS,
            Method::PATCH,
            Method::CONNECT,
            Method::TRACE,
        ];
        let method = if METHODS.contains(method) { method.as_str() } else { "other" };
        Self { method: method.to_owned(), status }
    }
}

/// A node of the volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfNode {
    pub node: String,
}

/// What waits in the volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfWork {
    pub work: WaitingWork,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum WaitingWork {
    Owed,
    Lost,
    Backlog,
}

/// The counters of a gateway.
pub struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<Answered, Histogram>,
    pub connections: Gauge,
    received: Counter<u64, AtomicU64>,
    sent: Counter<u64, AtomicU64>,
    pub traffic: Traffic,
    pub nodes_up: Family<OfNode, Gauge>,
    pub nodes_answer: Family<OfNode, Gauge<f64, AtomicU64>>,
    pub nodes_free: Family<OfNode, Gauge>,
    pub waiting: Family<OfWork, Gauge>,
    /// The nodes that are told.
    nodes: Mutex<BTreeSet<String>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("paritas_gateway");
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 16));
        let made = Self {
            registry: Registry::default(),
            requests: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            connections: Gauge::default(),
            received: Counter::default(),
            sent: Counter::default(),
            traffic: Traffic::default(),
            nodes_up: Family::default(),
            nodes_answer: Family::default(),
            nodes_free: Family::default(),
            waiting: Family::default(),
            nodes: Mutex::default(),
        };
        registry.register("requests", "Requests that were answered", made.requests.clone());
        let help = "Time until the answer began";
        registry.register_with_unit("answer", help, Unit::Seconds, made.seconds.clone());
        registry.register("connections", "Open connections", made.connections.clone());
        let help = "Bytes of bodies of requests";
        registry.register_with_unit("received", help, Unit::Bytes, made.received.clone());
        let help = "Bytes of bodies of answers that were promised";
        registry.register_with_unit("sent", help, Unit::Bytes, made.sent.clone());
        registry.register("node_up", "1 if the node can be used", made.nodes_up.clone());
        let help = "Time that it took to look at the node";
        registry.register_with_unit("node_answer", help, Unit::Seconds, made.nodes_answer.clone());
        let help = "Bytes that the node has left for new files, if it can tell";
        registry.register_with_unit("node_free", help, Unit::Bytes, made.nodes_free.clone());
        registry.register("waiting", "Objects that wait for upkeep", made.waiting.clone());
        Self { registry, ..made }
    }
}

impl Metrics {
    /// Counts an answer: to which request, how long it took, and the bytes of both bodies.
    pub fn answered(
        &self,
        method: &Method,
        status: u16,
        after: Duration,
        (received, sent): (u64, u64),
    ) {
        self.received.inc_by(received);
        self.sent.inc_by(sent);
        self.traffic.note(Passed { requests: 1, received, sent });
        let of = Answered::new(method, status);
        self.requests.get_or_create(&of).inc();
        self.seconds.get_or_create(&of).observe(after.as_secs_f64());
    }

    /// Tells nothing any more of nodes other than these.
    pub fn keep_nodes(&self, nodes: BTreeSet<String>) {
        let mut told = held(&self.nodes);
        for node in told.difference(&nodes) {
            let of = OfNode { node: node.clone() };
            self.nodes_up.remove(&of);
            self.nodes_answer.remove(&of);
            self.nodes_free.remove(&of);
        }
        *told = nodes;
    }

    /// Returns all counters as Prometheus reads them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in `docs/gateway.md` has all names.
    #[test]
    fn names_are_those_of_the_document() {
        let metrics = Metrics::default();
        let node = OfNode { node: "n".to_owned() };
        metrics.answered(&Method::GET, 200, Duration::ZERO, (0, 0));
        metrics.nodes_up.get_or_create(&node).set(1);
        metrics.nodes_answer.get_or_create(&node).set(1.0);
        metrics.nodes_free.get_or_create(&node).set(1);
        for work in [WaitingWork::Owed, WaitingWork::Lost, WaitingWork::Backlog] {
            metrics.waiting.get_or_create(&OfWork { work }).set(1);
        }
        let text = metrics.text();
        let samples = text.lines().filter_map(|line| line.strip_prefix("paritas_gateway_"));
        let name = |sample: &str| {
            let name = sample.split(['{', ' ']).next().unwrap_or_default();
            let histogram = ["_sum", "_count", "_bucket"];
            let name = histogram.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            name.to_owned()
        };
        let names: BTreeSet<String> = samples.map(name).collect();
        let document = include_str!("../../../docs/gateway.md");
        let table = document.split("after `paritas_gateway_`").nth(1).unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let first = rows.filter_map(|row| row.split('|').nth(1));
        let told = first.flat_map(|names| names.split('`').skip(1).step_by(2)).map(str::to_owned);
        assert_eq!(names, told.collect());
        for work in ["Owed", "Lost", "Backlog"] {
            assert!(text.contains(&format!("work=\"{work}\"")), "{text}");
        }
    }

    #[test]
    fn nodes_that_left_are_told_no_more() {
        let metrics = Metrics::default();
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        metrics.keep_nodes(names(&["a", "b"]));
        for node in ["a", "b"] {
            metrics.nodes_up.get_or_create(&OfNode { node: node.to_owned() }).set(1);
        }
        metrics.keep_nodes(names(&["b", "c"]));
        let text = metrics.text();
        assert!(!text.contains("node=\"a\"") && text.contains("node=\"b\""), "{text}");
    }

    #[test]
    fn invented_methods_are_one_kind() {
        let metrics = Metrics::default();
        for method in ["GET", "BREW", "BREW2"] {
            metrics.answered(&method.parse().unwrap(), 200, Duration::ZERO, (0, 0));
        }
        let text = metrics.text();
        assert!(!text.contains("BREW") && text.contains("method=\"GET\""), "{text}");
        assert!(text.contains("requests_total{method=\"other\",status=\"200\"} 2"), "{text}");
    }
}
