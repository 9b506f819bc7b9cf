//! Requests that lie, or ask for more than they may have.

use std::sync::Arc;

use paritas_gateway::Keys;
use paritas_volume::node::{Fault, Faulty, Node, NodeCall, Trigger};

use crate::fixture::{ask, code_of, get, open_to_all, serve, volume_over};
use crate::uploads::{begin, document_of, put_part};

/// What a request says of a body without the framing counts for framed bodies alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_plain_body_has_the_length_of_its_request() {
    let open = open_to_all().await;
    let lie = ["x-amz-decoded-content-length: 5"];
    let answer = ask(&open, "PUT /photos/a", &lie, "hello world").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(get(&open, "a").await, "hello world");
}

/// An upload that is complete is not completed again with other parts.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_completion_names_the_same_parts() {
    let open = open_to_all().await;
    let id = begin(&open, "film").await;
    let first = put_part(&open, "film", 1, &id, "hello").await;
    let second = put_part(&open, "film", 2, &id, "world").await;
    let line = format!("POST /photos/film?uploadId={id}");
    let whole = document_of(&[(1, first.clone())]);
    for _ in 0..2 {
        assert!(ask(&open, &line, &[], &whole).await.contains("<ETag>"));
    }
    for other in [document_of(&[(1, first.clone()), (2, second)]), document_of(&[])] {
        assert_eq!(code_of(&ask(&open, &line, &[], &other).await), "NoSuchUpload");
    }
    assert_eq!(get(&open, "film").await, "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_headers_and_signatures_are_bounded() {
    let open = open_to_all().await;
    let long = "POST /photos?delete HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n<Delete>";
    let answer = open.bare(long).await;
    assert_eq!(code_of(&answer), "MaxMessageLengthExceeded", "{answer}");
    let header = format!("x-amz-meta-a: {}", "x".repeat(1_000_000));
    let answer = ask(&open, "PUT /photos/a", &[&header], "").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(code_of(&ask(&open, "GET /photos/a", &[], "").await), "NoSuchKey");
    let twice = ["Authorization: a", "Authorization: b"];
    assert_eq!(code_of(&ask(&open, "PUT /photos/a", &twice, "").await), "InvalidArgument");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_only_read() {
    let open = open_to_all().await;
    for method in ["PUT", "POST", "DELETE", "OPTIONS"] {
        let answer = ask(&open, &format!("{method} /-/"), &[], "").await;
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}: {answer}");
    }
}

/// A gateway is healthy as long as objects can be read.
#[tokio::test(flavor = "multi_thread")]
async fn full_nodes_do_not_make_a_gateway_unhealthy() {
    let mut open = open_to_all().await;
    let full = |node| -> Arc<dyn Node> {
        Arc::new(Faulty::new(node, 1).with(NodeCall::Write, Fault::Refuse, Trigger::From(1)))
    };
    let volume = volume_over(open.root.path(), full);
    open.address = serve(volume, Keys::open()).await;
    let health = ask(&open, "GET /-/health", &[], "").await;
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    let metrics = ask(&open, "GET /-/metrics", &[], "").await;
    assert!(metrics.contains("node_up{node=\"disk0\"} 0"), "{metrics}");
}
