//! Operations on one object: put, get, head, delete, copy, and its tags.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue, IF_RANGE};
use paritas_volume::{
    ErrorKind, Expected, FoundObject, GetOptions, Notes, ObjectName, PutOptions, PutReport,
};
use s3s::dto::{self, ETag, Timestamp};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use tracing::Instrument;

use crate::body::{BodyFate, BodyOrigin, Outgoing, RequestBody, line, receive};
use crate::conditions::{Conditions, Judgement};
use crate::errors::{is_overtaken, line_of, told, unless_overtaken};
use crate::facts::{
    ETAG, KeptHeaders, ObjectFacts, TAGS, answer_checksums, answer_headers, answer_whole,
    checksum_of, kept_headers, kind_of, notes_of, parse_tags,
};
use crate::judge::{ExpectedBody, Received};
use crate::names;
use crate::patience::{ClientPatience, PATIENCE};
use crate::room::TransferRoom;
use crate::store::Store;
use crate::whole::is_of_whole;

impl Store {
    /// Finds an object.
    pub async fn object(&self, bucket: &str, key: &str) -> S3Result<FoundObject> {
        let name = self.name_of(bucket, key).await?;
        match self.volume.find(&name, GetOptions::default()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.expect_bucket(bucket).await?;
                Err(s3_error!(NoSuchKey, "there is no object {key} in {bucket}"))
            }
            found => {
                let found = found.map_err(|error| told(&error))?;
                self.keep_facts(&found);
                Ok(found)
            }
        }
    }

    /// Refuses a writer whose conditions do not hold. Returns what must still be there when the
    /// writer's version is numbered.
    pub async fn expect_for_write(&self, name: &ObjectName, on: &Conditions) -> S3Result<Expected> {
        if on.is_empty() {
            return Ok(Expected::Anything);
        }
        let found = match self.volume.find(name, GetOptions::default()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => Some(found.map_err(|error| told(&error))?),
        };
        let version = found.as_ref().map(|found| found.listed().version);
        match on.judge(found.as_ref().map(ObjectFacts::of).as_ref()) {
            Judgement::Holds => Ok(version.map_or(Expected::Nothing, Expected::Version)),
            _ if found.is_none() && on.wants_object() => {
                Err(s3_error!(NoSuchKey, "there is no object {name}"))
            }
            _ => Err(s3_error!(PreconditionFailed, "a condition does not hold")),
        }
    }

    /// Explains to a writer whose conditions held at first that others have changed the object
    /// meanwhile: they hold no more, or the writer may try again.
    async fn judge_again<T>(
        &self,
        done: S3Result<T>,
        name: &ObjectName,
        on: &Conditions,
    ) -> S3Result<T> {
        match done {
            Err(error) if is_overtaken(&error) && !on.is_empty() => {
                self.expect_for_write(name, on).await?;
                Err(s3_error!(ConditionalRequestConflict, "{name} was changed meanwhile"))
            }
            done => done,
        }
    }

    /// Stores the body of a request. `store` is given the source, and options whose notes are
    /// `notes`, the ETag, and the checksums that the client asked for.
    pub async fn receive<F: Future<Output = paritas_volume::Result<PutReport>>>(
        &self,
        origin: BodyOrigin,
        expected: ExpectedBody,
        notes: Notes,
        store: impl FnOnce(RequestBody, PutOptions) -> F,
    ) -> S3Result<(PutReport, Received)> {
        let length = expected.length;
        let (source, fate, feed) = receive(origin, expected);
        let options = options(length, notes, fate.clone());
        let (stored, ()) = futures::join!(store(source, options), feed);
        let report = stored.map_err(|error| fate.refusal().unwrap_or_else(|| told(&error)))?;
        Ok((report, fate.received()))
    }

    pub async fn put(
        &self,
        mut request: S3Request<dto::PutObjectInput>,
    ) -> S3Result<S3Response<dto::PutObjectOutput>> {
        let input = &mut request.input;
        let (bucket, key) = (input.bucket.clone(), input.key.clone());
        let name = self.name_of(&bucket, &key).await?;
        self.expect_bucket(&bucket).await?;
        let on = Conditions {
            if_match: input.if_match.take(),
            if_none_match: input.if_none_match.take(),
            ..Conditions::default()
        };
        let there = self.expect_for_write(&name, &on).await?;
        let notes = kept_headers!(input).notes()?;
        let expected = expected_body!(request);
        let _room = self.memory.take(request.credentials.as_ref(), expected.length).await?;
        let put = |source, options| self.volume.put(&name, source, expecting(there, options));
        let origin = body_origin!(request);
        let received = self.receive(origin, expected, notes, put).await;
        let (report, received) = self.judge_again(received, &name, &on).await?;
        self.keep_new(&report, &received.md5);
        self.continuations.note_change(&name);
        let mut output = dto::PutObjectOutput {
            e_tag: Some(ETag::Strong(received.md5)),
            ..dto::PutObjectOutput::default()
        };
        answer_whole!(output, received.checksum);
        Ok(S3Response::new(output))
    }

    /// Answers with the bytes of an object. If others replace it before its first bytes are read,
    /// the newer one counts.
    pub async fn get(
        &self,
        request: S3Request<dto::GetObjectInput>,
    ) -> S3Result<S3Response<dto::GetObjectOutput>> {
        let patience = ClientPatience::of(&request.extensions);
        let answer = || async {
            let input = request.input.clone();
            let (found, bytes, mut output) = self.answer_for(input, &request.headers).await?;
            let (key, length) = (request.credentials.as_ref(), bytes.end - bytes.start);
            let room = self.memory.take(key, Some(length)).await?;
            let body = self.read(found, bytes, room, patience).begun().await;
            output.body = Some(body.map_err(|error| told(&error))?);
            Ok(S3Response::new(output))
        };
        unless_overtaken(answer).await
    }

    /// Finds the object that a reader wants. Returns the wanted bytes as well, and the answer
    /// without them.
    async fn answer_for(
        &self,
        input: dto::GetObjectInput,
        headers: &HeaderMap,
    ) -> S3Result<(FoundObject, Range<u64>, dto::GetObjectOutput)> {
        let on = Conditions::new(
            (input.if_match, input.if_none_match),
            (input.if_modified_since, input.if_unmodified_since),
        );
        let found = self.object(&input.bucket, &input.key).await?;
        let range = current_range(input.range, headers, &found);
        let (facts, range, bytes) = wanted(&found, &on, range, input.part_number)?;
        let mut output = dto::GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: Some((bytes.end - bytes.start) as i64),
            content_range: range.map(|range| content_range(&range, facts.length)),
            e_tag: Some(facts.etag()),
            last_modified: Some(facts.modified()),
            parts_count: parts_count(&found, input.part_number),
            tag_count: tag_count(found.notes()),
            ..dto::GetObjectOutput::default()
        };
        answer_headers!(output, found.notes());
        if input.checksum_mode.is_none() || bytes != (0..facts.length) {
            answer_whole!(output, dto::Checksum::default());
        }
        Ok((found, bytes, output))
    }

    /// Reads bytes of an object for a copy.
    pub fn read_for_copy(
        &self,
        found: FoundObject,
        range: Range<u64>,
        room: TransferRoom,
    ) -> BodyOrigin {
        // The volume takes these bytes, and no client, so no client's patience counts.
        copied(self.read(found, range, room, PATIENCE))
    }

    /// Reads bytes of an object in a task of its own, which keeps the room until it ends. It ends
    /// early if nobody takes bytes for as long as `patience`.
    fn read(
        &self,
        found: FoundObject,
        range: Range<u64>,
        room: TransferRoom,
        patience: Duration,
    ) -> Outgoing {
        let (mut sink, outgoing) = line(range.end - range.start, patience);
        let volume = Arc::clone(&self.volume);
        let read = async move {
            // The whole object is compared with its digest.
            let range = (range != (0..found.length())).then_some(range);
            let name = found.name().clone();
            let read = volume.read_to_sink(found, range, &mut sink).await;
            if let Some(error) = read.as_ref().err().filter(|_| sink.is_wanted()) {
                let (name, error) = (line_of(&name), line_of(error));
                tracing::warn!(name, error, "an object cannot be read to its end");
            }
            sink.end(read.map(drop)).await;
            drop(room);
        };
        tokio::spawn(read.in_current_span());
        outgoing
    }

    pub async fn head(
        &self,
        request: S3Request<dto::HeadObjectInput>,
    ) -> S3Result<S3Response<dto::HeadObjectOutput>> {
        let input = request.input;
        let on = Conditions::new(
            (input.if_match, input.if_none_match),
            (input.if_modified_since, input.if_unmodified_since),
        );
        let found = self.object(&input.bucket, &input.key).await?;
        let range = current_range(input.range, &request.headers, &found);
        let (facts, range, bytes) = wanted(&found, &on, range, input.part_number)?;
        let mut output = dto::HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: Some((bytes.end - bytes.start) as i64),
            content_range: range.map(|range| content_range(&range, facts.length)),
            e_tag: Some(facts.etag()),
            last_modified: Some(facts.modified()),
            parts_count: parts_count(&found, input.part_number),
            ..dto::HeadObjectOutput::default()
        };
        answer_headers!(output, found.notes());
        if input.checksum_mode.is_none() || bytes != (0..facts.length) {
            answer_whole!(output, dto::Checksum::default());
        }
        // The adapter does this for GET alone.
        let answered = [
            (&mut output.cache_control, input.response_cache_control),
            (&mut output.content_disposition, input.response_content_disposition),
            (&mut output.content_encoding, input.response_content_encoding),
            (&mut output.content_language, input.response_content_language),
            (&mut output.content_type, input.response_content_type),
        ];
        answered.into_iter().for_each(|(kept, asked)| *kept = asked.or(kept.take()));
        output.expires = input.response_expires.or(output.expires);
        let mut response = S3Response::new(output);
        // The adapter has no field for it.
        if let Some(count) = tag_count(found.notes()) {
            response.headers.insert("x-amz-tagging-count", HeaderValue::from(count));
        }
        Ok(response)
    }

    /// Removes an object. Succeeds if the object does not exist, unless it should match something.
    pub async fn remove(&self, bucket: &str, key: &str, on: &Conditions) -> S3Result<()> {
        let name = self.name_of(bucket, key).await?;
        let remove = || async {
            let there = self.expect_for_write(&name, on).await?;
            match self.volume.remove_if(&name, there).await {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(told(&error)),
                _ => Ok(()),
            }
        };
        unless_overtaken(remove).await?;
        self.continuations.note_change(&name);
        Ok(())
    }

    pub async fn copy(
        &self,
        mut request: S3Request<dto::CopyObjectInput>,
    ) -> S3Result<S3Response<dto::CopyObjectOutput>> {
        let key_id = request.credentials.take().map(|credentials| credentials.access_key);
        let target = Conditions::of_target(&request.headers)?;
        let input = request.input;
        let source = self.copy_source(key_id.as_deref(), &input.copy_source)?;
        expect_change(&input, &source)?;
        self.expect_bucket(&input.bucket).await?;
        let name = self.name_of(&input.bucket, &input.key).await?;
        let copy = || async {
            let there = self.expect_for_write(&name, &target).await?;
            self.copy_object(&name, &source, input.clone(), there).await
        };
        let facts = unless_overtaken(copy).await?;
        let result = dto::CopyObjectResult {
            e_tag: Some(facts.etag()),
            last_modified: Some(facts.modified()),
            ..dto::CopyObjectResult::default()
        };
        Ok(S3Response::new(dto::CopyObjectOutput {
            copy_object_result: Some(result),
            ..dto::CopyObjectOutput::default()
        }))
    }

    /// Writes what an object has at this moment under a name.
    async fn copy_object(
        &self,
        name: &ObjectName,
        (bucket, key): &(String, String),
        mut input: dto::CopyObjectInput,
        there: Expected,
    ) -> S3Result<ObjectFacts> {
        let found = self.object(bucket, key).await?;
        let on = Conditions::new(
            (input.copy_source_if_match.take(), input.copy_source_if_none_match.take()),
            (
                input.copy_source_if_modified_since.take(),
                input.copy_source_if_unmodified_since.take(),
            ),
        );
        if on.judge(Some(&ObjectFacts::of(&found))) != Judgement::Holds {
            return Err(s3_error!(PreconditionFailed));
        }
        let is_itself = found.name() == name;
        let notes = copied_notes(found.notes(), is_itself, &mut input)?;
        if !is_itself {
            return self.rewrite(name, found, notes, there).await;
        }
        match there {
            Expected::Version(version) if found.listed().version != version => {
                Err(s3_error!(OperationAborted, "it was replaced meanwhile"))
            }
            _ => self.renote(found, notes, None).await,
        }
    }

    /// Gives an object other notes in its own place. `created` is when it counts as written, if
    /// that is not now. If somebody replaces or removes the object meanwhile, that counts.
    async fn renote(
        &self,
        found: FoundObject,
        mut notes: Notes,
        created: Option<u64>,
    ) -> S3Result<ObjectFacts> {
        let (name, etag) = (found.name().clone(), ObjectFacts::of(&found).etag);
        notes.insert(ETAG.to_owned(), etag.clone());
        // The bytes of an object in pieces stay where they are.
        let moved = if found.pieces().is_some() { 0 } else { found.length() };
        let _room = self.memory.take_for_copy(moved).await?;
        let renoted = self.volume.renote(found, &notes, created).await;
        let report = renoted.map_err(|error| told(&error))?;
        self.continuations.note_change(&name);
        Ok(self.keep_new(&report, &etag))
    }

    /// Writes the bytes of an object under a name, with these notes. The ETag of an object in
    /// pieces becomes that of its bytes.
    async fn rewrite(
        &self,
        name: &ObjectName,
        found: FoundObject,
        notes: Notes,
        there: Expected,
    ) -> S3Result<ObjectFacts> {
        let length = found.length();
        let room = self.memory.take_for_copy(length).await?;
        let origin = self.read_for_copy(found, 0..length, room.clone());
        let expected = ExpectedBody { length: Some(length), ..ExpectedBody::default() };
        let put = |source, options| self.volume.put(name, source, expecting(there, options));
        let (report, received) = self.receive(origin, expected, notes, put).await?;
        self.continuations.note_change(name);
        Ok(self.keep_new(&report, &received.md5))
    }

    /// Returns bucket and key of the source of a copy, if the key opens the bucket.
    pub fn copy_source(
        &self,
        key: Option<&str>,
        source: &dto::CopySource,
    ) -> S3Result<(String, String)> {
        let dto::CopySource::Bucket { bucket, key: object, version_id } = source else {
            return Err(s3_error!(NotImplemented, "a copy is made from a bucket and a key"));
        };
        if version_id.as_deref().is_some_and(|version| version != "null") {
            return Err(s3_error!(NoSuchVersion, "objects have no versions here"));
        }
        match self.keys.opens(key, bucket) {
            true => Ok((bucket.to_string(), object.to_string())),
            false => Err(s3_error!(AccessDenied, "this key does not open the bucket {bucket}")),
        }
    }

    /// Gives an object other tags. If somebody replaces the object meanwhile, the new one gets
    /// them.
    pub async fn set_tags(&self, bucket: &str, key: &str, tags: Option<String>) -> S3Result<()> {
        let set = || async {
            let found = self.object(bucket, key).await?;
            let (mut notes, created) = (found.notes().clone(), found.created());
            notes.remove(TAGS);
            notes.extend(tags.clone().map(|tags| (TAGS.to_owned(), tags)));
            self.renote(found, notes, Some(created)).await.map(drop)
        };
        unless_overtaken(set).await
    }

    pub async fn tags(&self, bucket: &str, key: &str) -> S3Result<Vec<dto::Tag>> {
        let found = self.object(bucket, key).await?;
        Ok(found.notes().get(TAGS).map(|tags| parse_tags(tags)).unwrap_or_default())
    }
}

/// Returns whether a copy gets metadata of its own, and tags of its own.
///
/// # Errors
/// If a directive is neither `COPY` nor `REPLACE`.
fn replaced(input: &dto::CopyObjectInput) -> S3Result<(bool, bool)> {
    let replaces = |directive: Option<&str>| match directive {
        None | Some("COPY") => Ok(false),
        Some("REPLACE") => Ok(true),
        Some(_) => Err(s3_error!(InvalidArgument, "a directive is COPY or REPLACE")),
    };
    Ok((
        replaces(input.metadata_directive.as_ref().map(|directive| directive.as_str()))?,
        replaces(input.tagging_directive.as_ref().map(|directive| directive.as_str()))?,
    ))
}

/// Refuses a copy of an object onto itself that changes nothing.
fn expect_change(input: &dto::CopyObjectInput, (bucket, key): &(String, String)) -> S3Result<()> {
    let is_itself = input.bucket == *bucket && input.key == *key;
    // Programs that only want a new time state the storage class, the only one that there is.
    let changes = replaced(input)? != (false, false) || input.storage_class.is_some();
    match is_itself && !changes {
        true => Err(s3_error!(InvalidRequest, "a copy onto itself changes metadata or tags")),
        false => Ok(()),
    }
}

/// Returns the notes of a copy: those of its source, unless the request replaces them. Checksums
/// stay if they are those of the bytes; those of parts stay if the object is copied onto itself and
/// keeps its parts.
fn copied_notes(of: &Notes, is_itself: bool, input: &mut dto::CopyObjectInput) -> S3Result<Notes> {
    let (replaces, new_tags) = replaced(input)?;
    let mut kept = KeptHeaders::of(of);
    let given = kept_headers!(input);
    let tagging = if new_tags { given.tagging.clone() } else { kept.tagging.take() };
    let headers = KeptHeaders { tagging, ..if replaces { given } else { kept } };
    let mut notes = headers.notes()?;
    let checksum = checksum_of(of);
    let is_composite = kind_of(&checksum).is_some_and(|kind| !is_of_whole(&kind));
    notes.extend(notes_of(checksum).filter(|_| is_itself || !is_composite));
    Ok(notes)
}

/// Returns the options of a put: the notes get the ETag and the checksums of the body. As long as
/// it is not received, they are as long as they will be.
fn options(length: Option<u64>, notes: Notes, fate: BodyFate) -> PutOptions {
    let mut options = PutOptions::default();
    options.length = length;
    options.notes = Some(Arc::new(move || {
        let received = fate.received();
        let etag = [(ETAG.to_owned(), received.md5)];
        notes.clone().into_iter().chain(etag).chain(notes_of(received.checksum)).collect()
    }));
    options
}

/// Returns the options of a put whose name must have what is expected.
fn expecting(expected: Expected, options: PutOptions) -> PutOptions {
    let mut options = options;
    options.expected = expected;
    options
}

/// Takes the checksums out of a request.
macro_rules! checksum_in {
    ($input:expr) => {
        s3s::dto::Checksum {
            checksum_crc32: $input.checksum_crc32.take(),
            checksum_crc32c: $input.checksum_crc32c.take(),
            checksum_crc64nvme: $input.checksum_crc64nvme.take(),
            checksum_sha1: $input.checksum_sha1.take(),
            checksum_sha256: $input.checksum_sha256.take(),
            checksum_type: None,
        }
    };
}
pub(crate) use checksum_in;

/// Takes what a request says of its body out of it.
macro_rules! expected_body {
    ($request:expr) => {
        $crate::judge::ExpectedBody {
            length: $crate::headers::stated_length(
                &$request.headers,
                $request.input.content_length,
            ),
            md5: $request.input.content_md5.take(),
            checksum: $crate::objects::checksum_in!($request.input),
            trailing: $crate::headers::trailing(&$request.headers),
        }
    };
}
pub(crate) use expected_body;

/// Takes the body out of a request.
macro_rules! body_origin {
    ($request:expr) => {
        $crate::body::BodyOrigin {
            body: $request.input.body.take(),
            trailers: $request.trailing_headers.take(),
            arrival: $request.extensions.remove::<$crate::arrival::BodyArrival>(),
        }
    };
}
pub(crate) use body_origin;

/// Returns the bytes of the source of a copy as a body.
fn copied(outgoing: Outgoing) -> BodyOrigin {
    let body = Some(dto::StreamingBlob::new(outgoing));
    BodyOrigin { body, trailers: None, arrival: None }
}

/// Returns the facts about an object for a reader, the range that the answer tells, if it tells
/// one, and the bytes that are wanted.
///
/// # Errors
/// If the conditions do not hold, or the object has no such range or part.
fn wanted(
    found: &FoundObject,
    on: &Conditions,
    range: Option<dto::Range>,
    part: Option<i32>,
) -> S3Result<(ObjectFacts, Option<Range<u64>>, Range<u64>)> {
    let facts = ObjectFacts::of(found);
    on.expect_for_read(&facts, found.notes())?;
    let length = facts.length;
    let check = |range: dto::Range| range.check(length).ok().filter(|_| length > 0);
    let refuse = || unsatisfiable(length);
    let (range, bytes) = match part {
        Some(number) => {
            let bytes = piece_range(found, number)?;
            // An empty part has no range that could be told.
            (Some(bytes.clone()).filter(|range| !range.is_empty()), bytes)
        }
        None => {
            let range = range.map(|range| check(range).ok_or_else(refuse)).transpose()?;
            (range.clone(), range.unwrap_or(0..length))
        }
    };
    Ok((facts, range, bytes))
}

/// Returns the error for a range outside an object. Its header tells the object's length.
fn unsatisfiable(length: u64) -> S3Error {
    let mut error = s3_error!(InvalidRange, "it has {length} bytes");
    let range = HeaderValue::from_str(&format!("bytes */{length}"));
    let range = range.map(|range| (CONTENT_RANGE, range));
    let kind = (CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    error.set_headers(range.into_iter().chain([kind]).collect());
    error
}

/// Returns the range that is asked for, unless it is one of an object that is no longer there.
fn current_range(
    range: Option<dto::Range>,
    headers: &HeaderMap,
    found: &FoundObject,
) -> Option<dto::Range> {
    range.filter(|_| is_current(headers.get(IF_RANGE), &ObjectFacts::of(found)))
}

/// Whether the object is still the one that a reader has a part of already: `If-Range`, if there is
/// one, states its time or its ETag.
fn is_current(if_range: Option<&HeaderValue>, facts: &ObjectFacts) -> bool {
    let Some(text) = if_range.map(|text| text.to_str().unwrap_or_default()) else { return true };
    let date = Timestamp::parse(dto::TimestampFormat::HttpDate, text).ok();
    match date {
        Some(date) => date == facts.modified(),
        None => text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) == Some(&facts.etag),
    }
}

/// Returns the range of a piece. An object that is not in pieces is its own first one. Numbers up
/// to that of the pieces count them, so that whoever asks for all of them gets each one once, also
/// if the upload left numbers out. A greater number is that of a part of the upload.
fn piece_range(found: &FoundObject, number: i32) -> S3Result<Range<u64>> {
    let part = names::part_number(number)?;
    let refuse = || {
        let mut error = S3Error::with_message(
            S3ErrorCode::Custom("InvalidPartNumber".into()),
            format!("there is no part {number}"),
        );
        error.set_status_code(http::StatusCode::RANGE_NOT_SATISFIABLE);
        error
    };
    let Some(pieces) = found.pieces() else {
        return if number == 1 { Ok(0..found.length()) } else { Err(refuse()) };
    };
    let nth = part as usize - 1;
    let at = match nth < pieces.len() {
        true => nth,
        false => pieces.iter().position(|piece| piece.part() == part).ok_or_else(refuse)?,
    };
    let start = pieces[..at].iter().map(|piece| piece.length).sum();
    Ok(start..start + pieces[at].length)
}

fn parts_count(found: &FoundObject, part: Option<i32>) -> Option<i32> {
    part.and(found.pieces()).map(|pieces| pieces.len() as i32)
}

fn content_range(range: &Range<u64>, length: u64) -> String {
    format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1))
}

fn tag_count(notes: &Notes) -> Option<i32> {
    notes.get(TAGS).map(|tags| parse_tags(tags).len() as i32)
}
