//! Multipart uploads, as uploads of the volume.

use md5::{Digest, Md5};
use paritas_volume::{ErrorKind, Notes, Piece, PutReport, StoredPiece, Upload};
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};

use crate::conditions::Conditions;
use crate::continued::PageMark;
use crate::errors::{is_overtaken, told, unless_overtaken};
use crate::facts::{
    CHECKSUM_TYPE, ETAG, ObjectFacts, answer_checksums, answer_whole, beside, checksum_of,
    kept_headers, notes_of, timestamp,
};
use crate::judge::{ExpectedBody, Received, hex, unhex};
use crate::listing::ListQuestion;
use crate::names;
use crate::objects::{body_origin, checksum_in, expected_body};
use crate::room::soon;
use crate::store::Store;
use crate::whole::{StatedWhole, checksum_of_pieces, is_of_whole};

/// The fewest bytes of a part that is not the last one, as in S3.
const LEAST_PART: u64 = 5 << 20;

impl Store {
    pub async fn begin(
        &self,
        mut input: CreateMultipartUploadInput,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        self.expect_bucket(&input.bucket).await?;
        let is_whole = input.checksum_type.as_ref().is_some_and(is_of_whole);
        let algorithm = input.checksum_algorithm.as_ref().map(ChecksumAlgorithm::as_str);
        if is_whole && algorithm.is_some_and(|algorithm| algorithm.starts_with("SHA")) {
            return Err(s3_error!(InvalidRequest, "FULL_OBJECT is for checksums that are CRCs"));
        }
        let is_of_parts = input
            .checksum_type
            .as_ref()
            .is_some_and(|kind| kind.as_str() == ChecksumType::COMPOSITE);
        if is_of_parts && algorithm == Some(ChecksumAlgorithm::CRC64NVME) {
            return Err(s3_error!(InvalidRequest, "CRC64NVME is of the full object"));
        }
        let name = self.name_of(&input.bucket, &input.key).await?;
        let mut notes = kept_headers!(input).notes()?;
        notes.extend(
            is_whole.then(|| (CHECKSUM_TYPE.to_owned(), ChecksumType::FULL_OBJECT.to_owned())),
        );
        let upload = self.volume.begin_upload(&name, notes).await.map_err(|error| told(&error))?;
        Ok(S3Response::new(CreateMultipartUploadOutput {
            upload_id: Some(upload.id().to_owned()),
            bucket: Some(input.bucket),
            key: Some(input.key),
            checksum_algorithm: input.checksum_algorithm,
            checksum_type: input.checksum_type,
            ..CreateMultipartUploadOutput::default()
        }))
    }

    /// Finds an upload, which must be one for this key. Its bucket must not have been removed.
    async fn upload(&self, bucket: &str, key: &str, id: &str) -> S3Result<Upload<'_>> {
        self.expect_bucket(bucket).await?;
        let unknown = || s3_error!(NoSuchUpload, "there is no such upload");
        match self.volume.find_upload(id).await {
            Ok(upload) if names::key_of(bucket, upload.name()).as_deref() == Some(key) => {
                Ok(upload)
            }
            Ok(_) => Err(unknown()),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(unknown()),
            Err(error) => Err(told(&error)),
        }
    }

    /// Finds an upload that is not complete.
    async fn open_upload(&self, bucket: &str, key: &str, id: &str) -> S3Result<Upload<'_>> {
        let upload = self.upload(bucket, key, id).await?;
        match upload.is_done() {
            true => Err(s3_error!(NoSuchUpload, "the upload is complete")),
            false => Ok(upload),
        }
    }

    pub async fn put_part(
        &self,
        mut request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let input = &request.input;
        let number = names::part_number(input.part_number)?;
        let upload = self.open_upload(&input.bucket, &input.key, &input.upload_id).await?;
        let expected = expected_body!(request);
        let _room = self.memory.take(request.credentials.as_ref(), expected.length).await?;
        let put =
            async |source, options| Ok(upload.put_piece(number, source, options).await?.report);
        let (origin, notes) = (body_origin!(request), Notes::new());
        let received = self.receive(origin, expected, notes, put).await;
        if received.as_ref().is_err_and(is_overtaken) {
            // The upload was completed or given up meanwhile, which is final.
            let input = &request.input;
            self.open_upload(&input.bucket, &input.key, &input.upload_id).await?;
        }
        let (_, received) = received?;
        let e_tag = Some(ETag::Strong(received.md5));
        let mut output = UploadPartOutput { e_tag, ..UploadPartOutput::default() };
        answer_checksums!(output, received.checksum);
        Ok(S3Response::new(output))
    }

    pub async fn copy_part(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let key = request.credentials.as_ref().map(|credentials| credentials.access_key.as_str());
        let input = &request.input;
        let number = names::part_number(input.part_number)?;
        let source = self.copy_source(key, &input.copy_source)?;
        let copy = || async {
            let upload = self.open_upload(&input.bucket, &input.key, &input.upload_id).await?;
            self.copy_piece(&upload, number, &source, input).await
        };
        let (report, received) = unless_overtaken(copy).await?;
        let result = CopyPartResult {
            e_tag: Some(ETag::Strong(received.md5)),
            last_modified: Some(timestamp(report.created)),
            ..CopyPartResult::default()
        };
        Ok(S3Response::new(UploadPartCopyOutput {
            copy_part_result: Some(result),
            ..UploadPartCopyOutput::default()
        }))
    }

    /// Stores what an object has at this moment, or a range of it, as a part.
    async fn copy_piece(
        &self,
        upload: &Upload<'_>,
        number: u32,
        (bucket, key): &(String, String),
        input: &UploadPartCopyInput,
    ) -> S3Result<(PutReport, Received)> {
        let found = self.object(bucket, key).await?;
        let on = Conditions::new(
            (input.copy_source_if_match.clone(), input.copy_source_if_none_match.clone()),
            (
                input.copy_source_if_modified_since.clone(),
                input.copy_source_if_unmodified_since.clone(),
            ),
        );
        on.expect_for_read(&ObjectFacts::of(&found), found.notes())
            .map_err(|_| s3_error!(PreconditionFailed, "the source does not meet a condition"))?;
        let range = source_range(input.copy_source_range.as_deref(), found.length())?;
        let expected =
            ExpectedBody { length: Some(range.end - range.start), ..ExpectedBody::default() };
        let room = self.memory.take_for_copy(range.end - range.start).await?;
        let origin = self.read_for_copy(found, range, room.clone());
        let put =
            async |source, options| Ok(upload.put_piece(number, source, options).await?.report);
        self.receive(origin, expected, Notes::new(), put).await
    }

    /// Completes an upload. `location` is the address of the object.
    pub async fn complete(
        &self,
        mut input: CompleteMultipartUploadInput,
        location: String,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let stated = StatedWhole {
            length: input.mpu_object_size,
            checksum: checksum_in!(input),
            kind: input.checksum_type,
        };
        let wanted = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let on = Conditions {
            if_match: input.if_match,
            if_none_match: input.if_none_match,
            ..Conditions::default()
        };
        let (place, id) = ((input.bucket.clone(), input.key.clone()), &input.upload_id);
        let complete = || async {
            let upload = self.upload(&place.0, &place.1, id).await?;
            // A client that did not get the answer asks again.
            if upload.is_done() {
                return self.stored_whole(id, &place, &wanted).await;
            }
            let joined = self.join_pieces(upload, &wanted, &on, &stated).await;
            match joined {
                Ok(stored) => Ok(stored),
                // Perhaps another request has completed the upload meanwhile. The object is there a
                // moment before the upload is marked.
                Err(error) => self.stored_whole(id, &place, &wanted).await.map_err(|_| error),
            }
        };
        let (etag, checksum) = unless_overtaken(complete).await?;
        if let Ok(name) = names::object(&place.0, &place.1) {
            self.continuations.note_change(&name);
        }
        let mut output = CompleteMultipartUploadOutput {
            location: Some(location),
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag: Some(ETag::Strong(etag)),
            ..CompleteMultipartUploadOutput::default()
        };
        answer_whole!(output, checksum);
        Ok(S3Response::new(output))
    }

    /// Returns ETag and checksums of the object that a complete upload has stored, if these are the
    /// wanted parts.
    async fn stored_whole(
        &self,
        id: &str,
        (bucket, key): &(String, String),
        wanted: &[CompletedPart],
    ) -> S3Result<(String, Checksum)> {
        let found = self.object(bucket, key).await?;
        if found.upload() != Some(id) {
            return Err(s3_error!(NoSuchUpload, "what it stored was replaced since"));
        }
        let etag = ObjectFacts::of(&found).etag;
        let numbers = wanted.iter().map(|part| part.part_number.unwrap_or_default() as u32);
        let are_there = numbers.eq(found.pieces().unwrap_or_default().iter().map(Piece::part));
        match are_there && stated_etag(wanted).is_none_or(|stated| stated == etag) {
            true => Ok((etag, checksum_of(found.notes()))),
            false => Err(s3_error!(NoSuchUpload, "the upload is complete, with other parts")),
        }
    }

    /// Stores the wanted pieces of an upload as an object, and returns its ETag and its checksums.
    async fn join_pieces(
        &self,
        upload: Upload<'_>,
        wanted: &[CompletedPart],
        on: &Conditions,
        stated: &StatedWhole,
    ) -> S3Result<(String, Checksum)> {
        let name = upload.name().clone();
        let there = self.expect_for_write(&name, on).await?;
        let stored = upload.pieces().await.map_err(|error| told(&error))?;
        let (pieces, etag) = chosen(wanted, &stored)?;
        stated.expect_of(&pieces)?;
        let is_whole = stated.kind.as_ref().is_some_and(is_of_whole)
            || upload.notes().contains_key(CHECKSUM_TYPE);
        let checksum = checksum_of_pieces(&pieces, is_whole);
        let pieces = pieces.into_iter().map(|stored| stored.piece).collect();
        let etag_note = [(ETAG.to_owned(), etag.clone())];
        let notes = etag_note.into_iter().chain(notes_of(checksum.clone())).collect();
        let report = upload
            .complete(pieces, notes, Default::default(), there)
            .await
            .map_err(|error| told(&error))?;
        self.keep_new(&report, &etag);
        self.continuations.note_change(&name);
        Ok((etag, checksum))
    }

    pub async fn abort(
        &self,
        input: AbortMultipartUploadInput,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let upload = self.upload(&input.bucket, &input.key, &input.upload_id).await?;
        if !upload.give_up().await.map_err(|error| told(&error))? {
            return Err(s3_error!(NoSuchUpload, "the upload is complete"));
        }
        let output = AbortMultipartUploadOutput::default();
        Ok(S3Response::with_status(output, http::StatusCode::NO_CONTENT))
    }

    pub async fn parts(&self, input: ListPartsInput) -> S3Result<S3Response<ListPartsOutput>> {
        let upload = self.open_upload(&input.bucket, &input.key, &input.upload_id).await?;
        let after = u32::try_from(input.part_number_marker.unwrap_or(0)).unwrap_or(0);
        let most = input.max_parts.unwrap_or(1000).min(1000);
        if most < 0 {
            return Err(s3_error!(InvalidArgument, "max-parts is negative: {most}"));
        }
        let stored = upload.parts(after, most as usize).await;
        let (stored, are_more) = stored.map_err(|error| told(&error))?;
        let part = |stored: &StoredPiece| {
            let mut part = Part {
                part_number: Some(stored.piece.part() as i32),
                e_tag: stored.notes.get(ETAG).cloned().map(ETag::Strong),
                size: Some(stored.piece.length as i64),
                last_modified: Some(timestamp(stored.created)),
                ..Part::default()
            };
            answer_checksums!(part, checksum_of(&stored.notes));
            part
        };
        let parts: Vec<Part> = stored.iter().map(part).collect();
        Ok(S3Response::new(ListPartsOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(input.upload_id),
            max_parts: Some(most),
            part_number_marker: input.part_number_marker,
            is_truncated: Some(are_more && most > 0),
            next_part_number_marker: parts.last().and_then(|part| part.part_number),
            parts: Some(parts),
            ..ListPartsOutput::default()
        }))
    }

    pub async fn uploads(
        &self,
        input: ListMultipartUploadsInput,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        self.expect_bucket(&input.bucket).await?;
        let _turn = soon(self.listings.acquire()).await?;
        let found = self.volume.uploads().await.map_err(|error| told(&error))?;
        let texts = (input.prefix.clone(), input.delimiter.clone());
        let mark = PageMark::after(input.key_marker.clone().unwrap_or_default());
        let encoding = input.encoding_type.as_ref();
        let question =
            ListQuestion::new(input.bucket.clone(), texts, mark, input.max_uploads, encoding)?;
        let page = UploadsPage::of(&found, &question, input.upload_id_marker.as_deref());
        let (next_key_marker, next_upload_id_marker) =
            page.last.map_or((None, None), |(key, id)| (Some(question.told(&key)), id));
        Ok(S3Response::new(ListMultipartUploadsOutput {
            bucket: Some(input.bucket),
            prefix: Some(question.told(&question.prefix)),
            delimiter: input.delimiter.map(|text| question.told(&text)),
            encoding_type: input.encoding_type.clone(),
            key_marker: Some(question.told(&question.mark.after)),
            upload_id_marker: input.upload_id_marker,
            max_uploads: Some(question.most as i32),
            is_truncated: Some(next_key_marker.is_some()),
            next_key_marker,
            next_upload_id_marker,
            uploads: Some(page.uploads),
            common_prefixes: Some(page.prefixes),
            ..ListMultipartUploadsOutput::default()
        }))
    }
}

/// A part of the uploads of a bucket.
#[derive(Default)]
struct UploadsPage {
    uploads: Vec<MultipartUpload>,
    prefixes: Vec<CommonPrefix>,
    /// The last key and its upload, or the last prefix, if there are more.
    last: Option<(String, Option<String>)>,
}

impl UploadsPage {
    /// Returns the uploads that a question is about: those after its place, and those of its key
    /// that come after `id`.
    fn of(found: &[Upload<'_>], question: &ListQuestion, id: Option<&str>) -> Self {
        let keyed = |upload| Some((names::key_of(&question.bucket, Upload::name(upload))?, upload));
        let mut keyed: Vec<(String, &Upload<'_>)> = found.iter().filter_map(keyed).collect();
        keyed.sort_by(|(key, one), (other, two)| (key, one.id()).cmp(&(other, two.id())));
        let (mut page, mut last) = (Self::default(), (String::new(), None));
        for (key, upload) in keyed {
            let is_after = match key == question.mark.after {
                true => id.is_some_and(|id| upload.id() > id),
                false => key > question.mark.after,
            };
            let group = question.group_of(&key);
            let is_told =
                group.is_some_and(|group| group == last.0 || group == question.mark.after);
            if !is_after || is_told || !key.starts_with(&question.prefix) {
                continue;
            }
            if page.uploads.len() + page.prefixes.len() == question.most {
                page.last = (question.most > 0).then_some(last);
                break;
            }
            if let Some(group) = group {
                page.prefixes.push(CommonPrefix { prefix: Some(question.told(group)) });
                last = (group.to_owned(), None);
                continue;
            }
            page.uploads.push(MultipartUpload {
                key: Some(question.told(&key)),
                upload_id: Some(upload.id().to_owned()),
                initiated: Some(timestamp(upload.begun())),
                ..MultipartUpload::default()
            });
            last = (key, Some(upload.id().to_owned()));
        }
        page
    }
}

/// Returns the bytes of a source of `length` bytes that are copied.
fn source_range(stated: Option<&str>, length: u64) -> S3Result<std::ops::Range<u64>> {
    let Some(text) = stated else { return Ok(0..length) };
    match Range::parse(text) {
        Ok(Range::Int { first, last: Some(last) }) if first <= last && last < length => {
            Ok(first..last + 1)
        }
        _ => Err(s3_error!(
            InvalidRange,
            "{text} is not a range of the {length} bytes of the source"
        )),
    }
}

fn etag_of(stored: &StoredPiece) -> &str {
    stored.notes.get(ETAG).map_or("", String::as_str)
}

/// Returns the ETag of the object of parts with the stated ETags, if each part has one.
fn stated_etag(parts: &[CompletedPart]) -> Option<String> {
    let mut hasher = Md5::new();
    for part in parts {
        hasher.update(unhex(part.e_tag.as_ref()?.value())?);
    }
    Some(format!("{}-{}", hex(&hasher.finalize()), parts.len()))
}

/// Whether a piece has the ETag and the checksums that are stated for a part.
fn fits(part: &CompletedPart, stored: &StoredPiece) -> bool {
    let mut part = part.clone();
    let (given, kept) = (checksum_in!(part), checksum_of(&stored.notes));
    let mut pairs = beside(&given, &kept).into_iter();
    part.e_tag.is_none_or(|stated| stated.value() == etag_of(stored))
        && pairs.all(|[given, kept]| given.is_none() || given == kept)
}

/// Refuses part `number` after part `last` if the numbers do not ascend, or if `last` is shorter
/// than any part but the final one may be.
fn expect_next(last: &Piece, number: u32) -> S3Result<()> {
    let (before, length) = (last.part(), last.length);
    match () {
        () if before >= number => {
            Err(s3_error!(InvalidPartOrder, "part {number} comes after {before}"))
        }
        () if length < LEAST_PART => Err(s3_error!(
            EntityTooSmall,
            "part {before} has {length} bytes; all but the last have at least {LEAST_PART}"
        )),
        () => Ok(()),
    }
}

/// Returns the pieces that a client wants, and the ETag of the object that they are.
fn chosen<'s>(
    wanted: &[CompletedPart],
    stored: &'s [StoredPiece],
) -> Result<(Vec<&'s StoredPiece>, String), S3Error> {
    let (mut pieces, mut hasher) = (Vec::<&StoredPiece>::new(), Md5::new());
    for part in wanted {
        let number = names::part_number(part.part_number.unwrap_or_default())?;
        let missing = || s3_error!(InvalidPart, "part {number} is not there, or is another one");
        let is_it = |stored: &&StoredPiece| stored.piece.part() == number && fits(part, stored);
        let stored = stored.iter().rev().find(is_it).ok_or_else(missing)?;
        let etag = etag_of(stored);
        pieces.last().map_or(Ok(()), |last| expect_next(&last.piece, number))?;
        hasher.update(unhex(etag).ok_or_else(missing)?);
        pieces.push(stored);
    }
    match pieces.is_empty() {
        true => Err(s3_error!(MalformedXML, "no part is named")),
        false => {
            let etag = format!("{}-{}", hex(&hasher.finalize()), pieces.len());
            Ok((pieces, etag))
        }
    }
}
