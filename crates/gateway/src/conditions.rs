//! Conditions of requests, and how an object fulfils them.

use http::header::{
    CACHE_CONTROL, ETAG, EXPIRES, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH,
    LAST_MODIFIED,
};
use paritas_volume::Notes;
use s3s::dto::{ETag, ETagCondition, Timestamp};
use s3s::{S3Error, S3Result, s3_error};

use crate::facts::{KeptHeaders, ObjectFacts, date_text};

/// Conditions under which a request is carried out.
#[derive(Debug, Default)]
pub struct Conditions {
    pub if_match: Option<ETagCondition>,
    pub if_none_match: Option<ETagCondition>,
    pub if_modified_since: Option<Timestamp>,
    pub if_unmodified_since: Option<Timestamp>,
    /// The number of bytes of an object that is removed.
    pub if_size: Option<i64>,
    /// When an object that is removed was written.
    pub if_modified_at: Option<Timestamp>,
}

/// What a condition says of an object.
#[derive(Debug, PartialEq, Eq)]
pub enum Judgement {
    Holds,
    Failed,
    /// The reader has it already.
    Unchanged,
}

impl Conditions {
    /// Returns conditions on the ETag (match, none match) and on the time (modified since,
    /// unmodified since).
    pub fn new(
        (if_match, if_none_match): (Option<ETagCondition>, Option<ETagCondition>),
        (if_modified_since, if_unmodified_since): (Option<Timestamp>, Option<Timestamp>),
    ) -> Self {
        let of_removals = Self::default();
        Self { if_match, if_none_match, if_modified_since, if_unmodified_since, ..of_removals }
    }

    /// Returns the conditions that headers set for the object that is written.
    pub fn of_target(headers: &HeaderMap) -> S3Result<Self> {
        let condition = |name: HeaderName| {
            let parsed =
                headers.get(&name).map(|text| ETagCondition::parse_http_header(text.as_bytes()));
            parsed.transpose().map_err(|_| s3_error!(InvalidArgument, "{name} is not an ETag"))
        };
        Ok(Self {
            if_match: condition(IF_MATCH)?,
            if_none_match: condition(IF_NONE_MATCH)?,
            ..Self::default()
        })
    }

    pub fn is_empty(&self) -> bool {
        self.if_match.is_none() && self.if_none_match.is_none() && !self.wants_object()
    }

    /// Whether it must be a certain object that is replaced or removed.
    pub fn wants_object(&self) -> bool {
        let is_etag = matches!(self.if_match, Some(ETagCondition::ETag(_)));
        is_etag || self.if_size.is_some() || self.if_modified_at.is_some()
    }

    /// Judges an object, or its absence. The order is that of RFC 9110, section 13.2.2.
    pub fn judge(&self, facts: Option<&ObjectFacts>) -> Judgement {
        let fits = |condition: &ETagCondition, is_strong: bool| match condition {
            ETagCondition::Any => facts.is_some(),
            ETagCondition::ETag(etag) => {
                facts.is_some_and(|facts| lists(etag, &facts.etag, is_strong))
            }
        };
        let modified = facts.map(ObjectFacts::modified);
        let is_newer = |since: &Timestamp| modified.as_ref().is_some_and(|time| time > since);
        match (&self.if_match, &self.if_unmodified_since) {
            (Some(condition), _) if !fits(condition, true) => return Judgement::Failed,
            (None, Some(since)) if is_newer(since) => return Judgement::Failed,
            _ => {}
        }
        let size = facts.map(|facts| facts.length);
        let is_size = |stated: &i64| u64::try_from(*stated).ok() == size;
        if !self.if_size.as_ref().is_none_or(is_size)
            || self.if_modified_at.as_ref().is_some_and(|time| modified.as_ref() != Some(time))
        {
            return Judgement::Failed;
        }
        match (&self.if_none_match, &self.if_modified_since) {
            (Some(condition), _) if fits(condition, false) => Judgement::Unchanged,
            (None, Some(since)) if !is_newer(since) => Judgement::Unchanged,
            _ => Judgement::Holds,
        }
    }

    /// Refuses a reader whose conditions do not hold.
    pub fn expect_for_read(&self, facts: &ObjectFacts, notes: &Notes) -> S3Result<()> {
        match self.judge(Some(facts)) {
            Judgement::Holds => Ok(()),
            Judgement::Failed => Err(s3_error!(PreconditionFailed)),
            Judgement::Unchanged => Err(not_modified(facts, KeptHeaders::of(notes))),
        }
    }
}

/// Whether `etag` is `wanted`, or is a list with `wanted` in it: the adapter reads a list as a
/// single ETag with quotes inside. If `is_strong`, an ETag that is marked as weak does not count
/// (RFC 9110, section 13.1.1).
fn lists(etag: &ETag, wanted: &str, is_strong: bool) -> bool {
    let text = match etag {
        ETag::Strong(value) => format!("\"{value}\""),
        ETag::Weak(value) => format!("W/\"{value}\""),
    };
    let wanted = format!("\"{wanted}\"");
    text.split(',').map(str::trim).any(|one| match one.strip_prefix("W/") {
        Some(weak) => !is_strong && weak == wanted,
        None => one == wanted,
    })
}

/// Returns the answer for a reader who has the object already. It has the headers by which caches
/// know how long that holds (RFC 9110, section 15.4.5).
fn not_modified(facts: &ObjectFacts, kept: KeptHeaders) -> S3Error {
    let mut error = s3_error!(NotModified);
    let texts = [
        (ETAG, Some(format!("\"{}\"", facts.etag))),
        (LAST_MODIFIED, date_text(&facts.modified())),
        (CACHE_CONTROL, kept.cache_control),
        (EXPIRES, kept.expires.as_ref().and_then(date_text)),
    ];
    let header = |(name, text): (HeaderName, Option<String>)| {
        Some((name, HeaderValue::try_from(text?).ok()?))
    };
    error.set_headers(texts.into_iter().filter_map(header).collect());
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_may_stand_in_a_list_and_a_weak_one_proves_no_bytes() {
        let facts = ObjectFacts { etag: "5d41".to_owned(), length: 5, modified: 0 };
        let judge = |name: HeaderName, text: &'static str| {
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(text))]);
            Conditions::of_target(&headers).unwrap().judge(Some(&facts))
        };
        for (list, is_listed, is_listed_strongly) in [
            ("*", true, true),
            ("\"5d41\"", true, true),
            ("\"x\", \"5d41\",\"y\"", true, true),
            ("W/\"5d41\"", true, false),
            ("\"x\", W/\"5d41\"", true, false),
            ("W/\"x\", \"5d41\"", true, true),
            ("\"x\", \"y\"", false, false),
            ("\"x,5d41\"", false, false),
        ] {
            let (has_it, matches) = (judge(IF_NONE_MATCH, list), judge(IF_MATCH, list));
            assert_eq!(has_it == Judgement::Unchanged, is_listed, "{list}");
            assert_eq!(matches == Judgement::Holds, is_listed_strongly, "{list}");
        }
    }
}
