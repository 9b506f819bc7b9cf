//! The operations of S3, each handed to the file that does it, and what they share.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lru::LruCache;
use paritas_volume::{ErrorKind, FoundObject, GetOptions, Listed, ObjectName, PutReport, Volume};
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::conditions::Conditions;
use crate::continued::Continuations;
use crate::errors::told;
use crate::facts::{ObjectFacts, join_tags};
use crate::headers::address_of;
use crate::held::held;
use crate::keys::Keys;
use crate::names;
use crate::room::{TransferMemory, TransferRoom};

/// Number of objects whose facts are remembered, so that listings do not have to ask for them.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();
/// The most listings that are read at a time. Each keeps the names of all objects in a folder.
const MOST_LISTINGS: usize = 8;
/// How long a bucket that was found counts as existing.
const BUCKET_FOR: Duration = Duration::from_secs(10);

/// A volume as a store of S3.
pub struct Store {
    pub(crate) volume: Arc<Volume>,
    pub(crate) keys: Keys,
    /// Known facts about versions. A version never changes, so they never become wrong.
    facts: Mutex<LruCache<Listed, ObjectFacts>>,
    /// When each bucket was last found.
    buckets: Mutex<HashMap<String, Instant>>,
    pub(crate) continuations: Continuations,
    pub(crate) memory: TransferMemory,
    /// The listings that may be read at a time.
    pub(crate) listings: Semaphore,
}

impl Store {
    pub fn new(volume: Arc<Volume>, keys: Keys, memory: TransferMemory) -> Self {
        Self {
            volume,
            keys,
            facts: Mutex::new(LruCache::new(REMEMBERED)),
            buckets: Mutex::default(),
            continuations: Continuations::default(),
            memory,
            listings: Semaphore::new(MOST_LISTINGS),
        }
    }

    /// Returns the remembered facts about a version.
    pub fn known(&self, listed: &Listed) -> Option<ObjectFacts> {
        held(&self.facts).get(listed).cloned()
    }

    pub fn keep_facts(&self, found: &FoundObject) -> ObjectFacts {
        let facts = ObjectFacts::of(found);
        held(&self.facts).put(found.listed(), facts.clone());
        facts
    }

    /// Remembers an object that was just written.
    pub fn keep_new(&self, report: &PutReport, etag: &str) -> ObjectFacts {
        let facts = ObjectFacts {
            etag: etag.to_owned(),
            length: report.listed.length,
            modified: report.created,
        };
        held(&self.facts).put(report.listed, facts.clone());
        facts
    }

    /// Refuses a bucket that does not exist: it was not made, and has no objects.
    pub async fn expect_bucket(&self, bucket: &str) -> S3Result<()> {
        let known = held(&self.buckets).get(bucket).copied();
        if known.is_some_and(|found| found.elapsed() < BUCKET_FOR) {
            return Ok(());
        }
        if self.bucket(bucket).await?.is_none() {
            return Err(s3_error!(NoSuchBucket, "there is no bucket {bucket}"));
        }
        held(&self.buckets).insert(bucket.to_owned(), Instant::now());
        Ok(())
    }

    /// Returns the version of the object that stands for a bucket or, if there is none, of another
    /// object in the bucket.
    pub async fn bucket(&self, bucket: &str) -> S3Result<Option<Listed>> {
        let found = match self.volume.find(&names::bucket(bucket)?, GetOptions::default()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.volume.any(&format!("{bucket}/"), None).await
            }
            found => found.map(|found| Some(found.listed())),
        };
        found.map_err(|error| told(&error))
    }

    /// Returns the name of the object of a key, or the one that it gets if there is none.
    pub async fn name_of(&self, bucket: &str, key: &str) -> S3Result<ObjectName> {
        let name = names::object(bucket, key)?;
        let Some(other) = names::unescaped_object(bucket, key) else { return Ok(name) };
        for one in [&name, &other] {
            match self.volume.find(one, GetOptions::default()).await {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                found => return found.map(|_| one.clone()).map_err(|error| told(&error)),
            }
        }
        Ok(name)
    }

    /// Forgets that a bucket is there.
    pub fn forget_bucket(&self, bucket: &str) {
        held(&self.buckets).remove(bucket);
    }
}

#[async_trait::async_trait]
impl S3 for Store {
    async fn list_buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        self.buckets(request).await
    }

    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        self.make_bucket(&request.input.bucket).await
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.expect_bucket(&request.input.bucket).await?;
        // That of buckets whose location is not stated.
        let bucket_region = Some("us-east-1".to_owned());
        Ok(S3Response::new(HeadBucketOutput { bucket_region, ..HeadBucketOutput::default() }))
    }

    async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        self.remove_bucket(&request.input.bucket).await?;
        Ok(S3Response::new(DeleteBucketOutput::default()))
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.expect_bucket(&request.input.bucket).await?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    async fn get_bucket_versioning(
        &self,
        request: S3Request<GetBucketVersioningInput>,
    ) -> S3Result<S3Response<GetBucketVersioningOutput>> {
        self.expect_bucket(&request.input.bucket).await?;
        Ok(S3Response::new(GetBucketVersioningOutput::default()))
    }

    async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        self.list_v1(request.input).await
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        self.list_v2(request.input).await
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        self.put(request).await
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        self.get(request).await
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        self.head(request).await
    }

    async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        self.copy(request).await
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.expect_bucket(&request.input.bucket).await?;
        let input = request.input;
        let on = Conditions {
            if_match: input.if_match,
            if_size: input.if_match_size,
            if_modified_at: input.if_match_last_modified_time,
            ..Conditions::default()
        };
        self.remove(&input.bucket, &input.key, &on).await?;
        Ok(S3Response::with_status(DeleteObjectOutput::default(), http::StatusCode::NO_CONTENT))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        self.remove_many(request.input).await
    }

    async fn get_object_tagging(
        &self,
        request: S3Request<GetObjectTaggingInput>,
    ) -> S3Result<S3Response<GetObjectTaggingOutput>> {
        let tag_set = self.tags(&request.input.bucket, &request.input.key).await?;
        Ok(S3Response::new(GetObjectTaggingOutput { tag_set, ..Default::default() }))
    }

    async fn put_object_tagging(
        &self,
        mut request: S3Request<PutObjectTaggingInput>,
    ) -> S3Result<S3Response<PutObjectTaggingOutput>> {
        // Room that waits for more room would wait for itself.
        drop(request.extensions.remove::<TransferRoom>());
        let PutObjectTaggingInput { bucket, key, tagging, .. } = request.input;
        self.set_tags(&bucket, &key, join_tags(&tagging.tag_set)?).await?;
        Ok(S3Response::new(PutObjectTaggingOutput::default()))
    }

    async fn delete_object_tagging(
        &self,
        request: S3Request<DeleteObjectTaggingInput>,
    ) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
        self.set_tags(&request.input.bucket, &request.input.key, None).await?;
        let output = DeleteObjectTaggingOutput::default();
        Ok(S3Response::with_status(output, http::StatusCode::NO_CONTENT))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        self.begin(request.input).await
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        self.put_part(request).await
    }

    async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        self.copy_part(request).await
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let location = address_of(&request);
        self.complete(request.input, location).await
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.abort(request.input).await
    }

    async fn list_parts(
        &self,
        request: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        self.parts(request.input).await
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        self.uploads(request.input).await
    }
}
