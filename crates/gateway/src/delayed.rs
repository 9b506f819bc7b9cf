//! Answers to copies that take long.
//!
//! Clients and load balancers give up on an answer of which nothing comes for a minute, and a copy
//! of gigabytes between slow nodes takes longer. So such an answer begins before its outcome is
//! known, as that of S3 does: its status is 200, white space follows, and the document comes last,
//! which may be an error. Clients of S3 look for one there.

use std::time::Duration;

use futures::stream::unfold;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use s3s::dto::StreamingBlob;
use s3s::{Body, HttpError};

use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

use crate::errors::explained;

/// How long a copy may take before its answer begins.
const SOON: Duration = Duration::from_secs(10);
/// The time between two bytes of white space.
const PAUSE: Duration = Duration::from_secs(5);
/// The beginning of each document. White space may not come before it.
const DECLARATION: &str = r#"<?xml version="1.0" encoding="UTF-8"?>"#;

/// An answer, or why there is none.
type TaskAnswer = Result<Response<Body>, HttpError>;

/// Returns the answer of the task if it comes soon, or one that begins now and ends with the
/// document of the task's answer, to the request with this id. The task goes on if this is dropped.
///
/// # Errors
/// If the task has no answer.
pub async fn soon(mut task: JoinHandle<TaskAnswer>, id: &str) -> TaskAnswer {
    match timeout(SOON, &mut task).await {
        Ok(answered) => joined(answered),
        Err(_) => Ok(begun(LateAnswer { task, id: id.to_owned() })),
    }
}

/// Returns what a task has answered.
///
/// # Errors
/// If it has no answer.
pub fn joined(answered: Result<TaskAnswer, JoinError>) -> TaskAnswer {
    answered.unwrap_or_else(|error| Err(HttpError::new(error.into())))
}

/// An answer that has begun.
struct LateAnswer {
    task: JoinHandle<TaskAnswer>,
    /// The id of the request.
    id: String,
}

/// Returns an answer that waits for the task with white space.
fn begun(late: LateAnswer) -> Response<Body> {
    /// What comes next.
    enum AnswerPart {
        Declaration(LateAnswer),
        Rest(LateAnswer),
        End,
    }
    let step = async |next: AnswerPart| match next {
        AnswerPart::Declaration(late) => Some((Ok(DECLARATION.into()), AnswerPart::Rest(late))),
        AnswerPart::Rest(mut late) => match timeout(PAUSE, &mut late.task).await {
            Err(_) => Some((Ok(" ".into()), AnswerPart::Rest(late))),
            Ok(answered) => Some((rest_of(joined(answered), &late.id), AnswerPart::End)),
        },
        AnswerPart::End => None,
    };
    let parts = unfold(AnswerPart::Declaration(late), step);
    let mut answer = Response::new(Body::from(StreamingBlob::wrap(parts)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer
}

/// Returns the document of an answer, without the declaration that has been sent already. The log
/// tells a failure, because the status that it has told is 200.
fn rest_of(answered: TaskAnswer, id: &str) -> std::io::Result<hyper::body::Bytes> {
    let answer = answered.map_err(|error| std::io::Error::other(s3s::StdError::from(error)))?;
    if !answer.status().is_success() {
        let status = answer.status().as_u16();
        tracing::info!(id, status, "a copy failed after its answer had begun");
    }
    let answer = explained(answer, None, id);
    let document = answer.body().bytes();
    let document = document.ok_or_else(|| std::io::Error::other("the answer is no document"))?;
    let declared = document.starts_with(DECLARATION.as_bytes());
    Ok(document.slice(if declared { DECLARATION.len() } else { 0 }..))
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;
    use http::StatusCode;

    use super::*;

    /// Returns the status and the text that a client gets if a copy takes some seconds.
    async fn got(seconds: u64, status: StatusCode, document: &str) -> (StatusCode, String) {
        let mut answer = Response::new(Body::from(format!("{DECLARATION}{document}")));
        *answer.status_mut() = status;
        let task = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(answer)
        });
        let answer = soon(task, "7F").await.unwrap();
        let status = answer.status();
        let parts: Vec<_> = StreamingBlob::from(answer.into_body()).try_collect().await.unwrap();
        (status, String::from_utf8(parts.concat()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn answers_to_slow_copies_begin_before_their_outcome_is_known() {
        let done = "<CopyObjectResult/>";
        let failed = "<Error><Code>SlowDown</Code><Message>why</Message></Error>";
        let told = failed.replace("</Error>", "<RequestId>7F</RequestId></Error>");
        let with = |before: &str, document: &str| format!("{DECLARATION}{before}{document}");
        let (ok, refused) = (StatusCode::OK, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(got(9, ok, done).await, (ok, with("", done)));
        assert_eq!(got(9, refused, failed).await, (refused, with("", failed)));
        assert_eq!(got(11, ok, done).await, (ok, with("", done)));
        assert_eq!(got(62, ok, done).await, (ok, with(&" ".repeat(10), done)));
        assert_eq!(got(62, refused, failed).await, (ok, with(&" ".repeat(10), &told)));
    }
}
