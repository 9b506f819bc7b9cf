//! Buckets, and the objects in them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use paritas_volume::{ErrorKind, GetOptions, Listed, ObjectName, Overview, PutOptions};
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};
use tokio::time::Instant;

use crate::conditions::Conditions;
use crate::continued::{ListPlace, ListedKeys, PageMark};
use crate::errors::{line_of, told};
use crate::facts::{ObjectFacts, timestamp};
use crate::judge::{hex, unhex};
use crate::names;
use crate::room::soon;
use crate::store::Store;

/// The most keys of one answer.
const MOST_KEYS: usize = 1000;
/// The most buckets of one answer, as in S3.
const MOST_BUCKETS: i32 = 10_000;
/// Number of objects that are asked about, or removed, side by side.
const AT_ONCE: usize = 32;

/// A question about the keys of a bucket.
pub struct ListQuestion {
    pub bucket: String,
    pub prefix: String,
    delimiter: String,
    /// Only keys after that of this mark are wanted.
    pub mark: PageMark,
    /// The most keys and common prefixes of an answer.
    pub most: usize,
    encodes: bool,
}

/// A part of the keys of a bucket.
#[derive(Default)]
struct Page {
    objects: Vec<Object>,
    prefixes: Vec<CommonPrefix>,
    /// Where the next page begins, if there is one.
    next: Option<PageMark>,
}

impl Page {
    /// Names the owner of each object, if the client wants that.
    fn with_owners(mut self, is_wanted: bool) -> Self {
        let objects = self.objects.iter_mut().filter(|_| is_wanted);
        objects.for_each(|object| object.owner = Some(owner()));
        self
    }
}

impl ListQuestion {
    /// # Errors
    /// If a negative number of keys is wanted, or they are to be encoded in an unknown way.
    pub fn new(
        bucket: String,
        (prefix, delimiter): (Option<String>, Option<String>),
        mark: PageMark,
        most: Option<i32>,
        encoding: Option<&EncodingType>,
    ) -> S3Result<Self> {
        let refuse =
            || s3_error!(InvalidArgument, "the number of keys or uploads must be 0 or more");
        let most = most.map(|most| usize::try_from(most).map_err(|_| refuse())).transpose()?;
        Ok(Self {
            bucket,
            prefix: prefix.unwrap_or_default(),
            delimiter: delimiter.unwrap_or_default(),
            mark,
            most: most.unwrap_or(MOST_KEYS).min(MOST_KEYS),
            encodes: encoding.is_some_and(|kind| kind.as_str() == EncodingType::URL),
        })
    }

    /// Returns the key of a name, if the question is about it.
    fn key_of(&self, name: &ObjectName) -> Option<String> {
        let key = names::key_of(&self.bucket, name)?;
        let is_wanted = !key.is_empty() && key.starts_with(&self.prefix) && key > self.mark.after;
        is_wanted.then_some(key)
    }

    /// Returns the place where a page of the listing begins.
    fn place(&self, mark: PageMark) -> ListPlace {
        ListPlace {
            bucket: self.bucket.clone(),
            prefix: self.prefix.clone(),
            delimiter: self.delimiter.clone(),
            mark,
        }
    }

    /// Returns the prefix that stands for a key, if several keys are told as one.
    pub fn group_of<'k>(&self, key: &'k str) -> Option<&'k str> {
        let rest = key.strip_prefix(&self.prefix).filter(|_| !self.delimiter.is_empty())?;
        let at = rest.find(&self.delimiter)?;
        Some(&key[..self.prefix.len() + at + self.delimiter.len()])
    }

    /// Returns a text as the client wants it.
    pub fn told(&self, text: &str) -> String {
        match self.encodes {
            true => url::form_urlencoded::byte_serialize(text.as_bytes())
                .collect::<String>()
                .replace("%2F", "/"),
            false => text.to_owned(),
        }
    }
}

impl Store {
    async fn page(&self, question: &ListQuestion) -> S3Result<Page> {
        let _turn = soon(self.listings.acquire()).await?;
        let mut left = self.keys(question).await?;
        let overview = Arc::clone(&left.overview);
        let (mut page, mut chosen, mut groups) = (Page::default(), Vec::new(), BTreeSet::new());
        while let Some((key, (name, listed))) = left.keys.pop_first() {
            let group = question.group_of(&key);
            if group.is_some_and(|group| groups.contains(group) || group == question.mark.after) {
                continue;
            }
            if chosen.len() + groups.len() == question.most {
                let last = |(key, ..): &(String, ObjectName, Listed)| key.clone();
                let last = chosen.last().map(last).max(groups.last().cloned());
                page.next = last.map(|last| left.mark(last));
                left.keys.insert(key, (name, listed));
                break;
            }
            match group {
                Some(group) => _ = groups.insert(group.to_owned()),
                None => chosen.push((key, name, listed)),
            }
        }
        if let Some(next) = &page.next {
            self.continuations.keep(question.place(next.clone()), left);
        }
        page.objects = self.objects(question, &overview, chosen).await?;
        let common = |group: &String| CommonPrefix { prefix: Some(question.told(group)) };
        page.prefixes = groups.iter().map(common).collect();
        Ok(page)
    }

    /// Returns the keys that a question is about, from its place on.
    async fn keys(&self, question: &ListQuestion) -> S3Result<ListedKeys> {
        if let Some(kept) = self.continuations.take(&question.place(question.mark.clone()))
            && let Some(renewed) = self.renewed(question, kept).await
        {
            return Ok(renewed);
        }
        let begun = Instant::now();
        let folder = names::above(&question.bucket, &question.prefix);
        let overview = self.volume.overview(&folder).await.map_err(|error| told(&error))?;
        self.tell_nameless(&overview)?;
        if overview.objects().next().is_none() {
            self.expect_bucket(&question.bucket).await?;
        }
        // Escaped keys stand elsewhere among the names.
        let mut keys = BTreeMap::new();
        for (name, listed) in overview.objects() {
            let Some(key) = question.key_of(name) else { continue };
            let found = (name.clone(), listed);
            match names::unescaped_object(&question.bucket, &key).as_ref() == Some(name) {
                true => _ = keys.entry(key).or_insert(found),
                false => _ = keys.insert(key, found),
            }
        }
        Ok(ListedKeys::of(keys, overview, begun))
    }

    /// Tells of objects whose names cannot be told. If silent nodes may tell them, a list without
    /// them would look complete. If they are lost, no key can be named, and the log has them.
    fn tell_nameless(&self, overview: &Overview) -> S3Result<()> {
        for error in overview.nameless() {
            if error.kind() == ErrorKind::TooFewNodes {
                return Err(told(&error));
            }
            tracing::warn!(error = line_of(&error), "an object cannot be listed");
        }
        Ok(())
    }

    /// Asks again about the names that this gateway has changed since keys were listed. Returns
    /// `None` if it cannot tell all of them.
    async fn renewed(&self, question: &ListQuestion, kept: ListedKeys) -> Option<ListedKeys> {
        let as_of = Instant::now();
        let names = self.continuations.changed_since(kept.as_of)?;
        let keyed = names.into_iter().filter_map(|name| Some((question.key_of(&name)?, name)));
        let ask = async |(key, name): (String, ObjectName)| {
            let found = self.volume.find(&name, GetOptions::default()).await;
            (key, name, found.map(|found| (found.listed(), self.keep_facts(&found))))
        };
        let answers: Vec<_> = stream::iter(keyed).map(ask).buffered(AT_ONCE).collect().await;
        let mut renewed = kept;
        renewed.as_of = as_of;
        for (key, name, found) in answers {
            match found {
                Ok((listed, _)) => _ = renewed.keys.insert(key, (name, listed)),
                Err(error) if error.kind() == ErrorKind::NotFound => _ = renewed.keys.remove(&key),
                Err(_) => return None,
            }
        }
        Some(renewed)
    }

    /// Returns the facts about objects for an answer. Objects that were replaced or removed
    /// meanwhile are left out.
    async fn objects(
        &self,
        question: &ListQuestion,
        overview: &Overview,
        chosen: Vec<(String, ObjectName, Listed)>,
    ) -> S3Result<Vec<Object>> {
        let look = async |(key, name, listed): (String, ObjectName, Listed)| {
            let Some(facts) = self.facts_by(overview, &name, &listed).await? else {
                return Ok(None);
            };
            Ok(Some(Object {
                key: Some(question.told(&key)),
                e_tag: Some(facts.etag()),
                size: Some(facts.length as i64),
                last_modified: Some(facts.modified()),
                storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
                ..Object::default()
            }))
        };
        let found: Vec<Option<Object>> = stream::iter(chosen)
            .map(look)
            .buffered(AT_ONCE)
            .try_collect::<Vec<_>>()
            .await
            .map_err(|error: S3Error| error)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns the facts about an object that was listed, or `None` if it is gone.
    async fn facts_by(
        &self,
        overview: &Overview,
        name: &ObjectName,
        listed: &Listed,
    ) -> S3Result<Option<ObjectFacts>> {
        if let Some(facts) = self.known(listed) {
            return Ok(Some(facts));
        }
        match self.volume.find_by(overview, name).await {
            Ok(found) => Ok(Some(self.keep_facts(&found))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if is_passing(&error) => {
                let (name, error) = (line_of(name), line_of(&error));
                tracing::warn!(name, error, "an object cannot be listed");
                Err(s3_error!(ServiceUnavailable, "an object cannot be read; try again later"))
            }
            // Its bytes may be lost; its name is not.
            Err(error) => {
                let (name, error) = (line_of(name), line_of(&error));
                tracing::warn!(name, error, "an object is listed without its ETag");
                Ok(Some(ObjectFacts {
                    etag: String::new(),
                    length: listed.length,
                    modified: listed.version.generation,
                }))
            }
        }
    }

    pub async fn list_v1(
        &self,
        input: ListObjectsInput,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        let texts = (input.prefix.clone(), input.delimiter.clone());
        let encoding = input.encoding_type.as_ref();
        let mark = PageMark::parse(input.marker.as_deref().unwrap_or_default());
        let question =
            ListQuestion::new(input.bucket.clone(), texts, mark, input.max_keys, encoding)?;
        let page = self.page(&question).await?.with_owners(true);
        Ok(S3Response::new(ListObjectsOutput {
            name: Some(input.bucket),
            prefix: Some(question.told(&question.prefix)),
            delimiter: input.delimiter.map(|text| question.told(&text)),
            marker: Some(question.told(&question.mark.to_string())),
            max_keys: Some(question.most as i32),
            encoding_type: input.encoding_type.clone(),
            is_truncated: Some(page.next.is_some()),
            next_marker: page.next.map(|next| question.told(&next.to_string())),
            contents: Some(page.objects),
            common_prefixes: Some(page.prefixes),
            ..ListObjectsOutput::default()
        }))
    }

    pub async fn list_v2(
        &self,
        input: ListObjectsV2Input,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let texts = (input.prefix.clone(), input.delimiter.clone());
        let encoding = input.encoding_type.as_ref();
        let token = input.continuation_token.as_deref().map(token_text).transpose()?;
        let mark = match token {
            Some(token) => PageMark::parse(&token),
            None => PageMark::after(input.start_after.clone().unwrap_or_default()),
        };
        let question =
            ListQuestion::new(input.bucket.clone(), texts, mark, input.max_keys, encoding)?;
        let page = self.page(&question).await?.with_owners(input.fetch_owner == Some(true));
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(question.told(&question.prefix)),
            delimiter: input.delimiter.map(|text| question.told(&text)),
            start_after: input.start_after.map(|text| question.told(&text)),
            max_keys: Some(question.most as i32),
            key_count: Some((page.objects.len() + page.prefixes.len()) as i32),
            encoding_type: input.encoding_type.clone(),
            continuation_token: input.continuation_token,
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.map(|next| token_of(&next.to_string())),
            contents: Some(page.objects),
            common_prefixes: Some(page.prefixes),
            ..ListObjectsV2Output::default()
        }))
    }

    pub async fn buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let key = request.credentials.as_ref().map(|credentials| credentials.access_key.as_str());
        let ListBucketsInput { prefix, continuation_token, max_buckets, .. } = request.input;
        let after = continuation_token.as_deref().map(token_text).transpose()?.unwrap_or_default();
        let most = usize::try_from(max_buckets.unwrap_or(MOST_BUCKETS)).unwrap_or_default();
        if !(1..=MOST_BUCKETS as usize).contains(&most) {
            return Err(s3_error!(InvalidArgument, "max-buckets must be 1 to {MOST_BUCKETS}"));
        }
        let start = prefix.as_deref().unwrap_or_default();
        let mut folders = self.volume.first_folders().await.map_err(|error| told(&error))?;
        folders.retain(|folder| {
            let is_wanted = folder.starts_with(start) && *folder > after;
            is_wanted && names::may_be_bucket(folder) && self.keys.opens(key, folder)
        });
        let bucket = async |folder: String| -> S3Result<Option<Bucket>> {
            let created = self.bucket(&folder).await?.map(|listed| listed.version.generation);
            let creation_date = created.map(timestamp);
            Ok(created.map(|_| Bucket { name: Some(folder), creation_date, ..Bucket::default() }))
        };
        let found = stream::iter(folders).map(bucket).buffered(AT_ONCE);
        let found = found.try_filter_map(async |bucket| Ok(bucket)).take(most + 1);
        let mut buckets: Vec<Bucket> = found.try_collect().await?;
        let are_more = buckets.len() > most;
        buckets.truncate(most);
        let last = buckets.last().filter(|_| are_more).and_then(|last| last.name.as_deref());
        Ok(S3Response::new(ListBucketsOutput {
            continuation_token: last.map(token_of),
            buckets: Some(buckets),
            owner: Some(owner()),
            prefix,
        }))
    }

    pub async fn make_bucket(&self, bucket: &str) -> S3Result<S3Response<CreateBucketOutput>> {
        let name = names::bucket(bucket)?;
        match self.volume.find(&name, GetOptions::default()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let put = self.volume.put(&name, Cursor::new(Vec::new()), PutOptions::default());
                put.await.map_err(|error| told(&error))?;
            }
            found => _ = found.map_err(|error| told(&error))?,
        }
        let location = Some(format!("/{bucket}"));
        Ok(S3Response::new(CreateBucketOutput { location }))
    }

    pub async fn remove_bucket(&self, bucket: &str) -> S3Result<()> {
        let name = names::bucket(bucket)?;
        self.forget_bucket(bucket);
        self.expect_bucket(bucket).await?;
        match self.volume.any(&format!("{bucket}/"), Some(&name)).await {
            Ok(None) => {}
            // Objects whose names cannot be read any more are objects.
            Err(error) if error.kind() != ErrorKind::TooFewShards => return Err(told(&error)),
            _ => return Err(s3_error!(BucketNotEmpty, "the bucket {bucket} has objects")),
        }
        let _turn = soon(self.listings.acquire()).await?;
        // Another bucket of its name has no uploads.
        self.give_up_uploads(bucket).await.map_err(|error| told(&error))?;
        self.volume.remove(&name).await.map_err(|error| told(&error))?;
        self.forget_bucket(bucket);
        Ok(())
    }

    async fn give_up_uploads(&self, bucket: &str) -> paritas_volume::Result<()> {
        for upload in self.volume.uploads().await? {
            if names::key_of(bucket, upload.name()).is_some() {
                upload.give_up().await?;
            }
        }
        Ok(())
    }

    async fn remove_one(&self, bucket: &str, object: ObjectIdentifier) -> S3Result<()> {
        let version = object.version_id.filter(|version| !version.is_empty());
        if version.is_some_and(|version| version != "null") {
            return Err(s3_error!(NoSuchVersion, "objects have no versions here"));
        }
        let on = Conditions {
            if_match: object.e_tag.map(ETagCondition::ETag),
            if_size: object.size,
            if_modified_at: object.last_modified_time,
            ..Conditions::default()
        };
        self.remove(bucket, &object.key, &on).await
    }

    pub async fn remove_many(
        &self,
        input: DeleteObjectsInput,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let bucket = &input.bucket;
        self.expect_bucket(bucket).await?;
        if input.delete.objects.len() > MOST_KEYS {
            return Err(s3_error!(MalformedXML, "at most {MOST_KEYS} objects are deleted at once"));
        }
        let remove = async |object: ObjectIdentifier| {
            (object.key.clone(), self.remove_one(bucket, object).await)
        };
        let removed: Vec<(String, S3Result<()>)> =
            stream::iter(input.delete.objects).map(remove).buffered(AT_ONCE).collect().await;
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        for (key, removed) in removed {
            match removed {
                Ok(()) => {
                    deleted.push(DeletedObject { key: Some(key), ..DeletedObject::default() });
                }
                Err(error) => errors.push(Error {
                    key: Some(key),
                    code: Some(error.code().as_str().to_owned()),
                    message: error.message().map(str::to_owned),
                    ..Error::default()
                }),
            }
        }
        let deleted = (input.delete.quiet != Some(true)).then_some(deleted);
        let errors = Some(errors);
        Ok(S3Response::new(DeleteObjectsOutput { deleted, errors, ..Default::default() }))
    }
}

/// Whether all objects can perhaps be listed at another time. Other errors are those of one object,
/// and may stay: a whole page must not depend on it.
fn is_passing(error: &paritas_volume::Error) -> bool {
    use ErrorKind::{Busy, Memory, TooFewNodes};
    matches!(error.kind(), Busy | Memory | TooFewNodes)
}

/// Returns the owner of all buckets. Programs expect that it has an id.
fn owner() -> Owner {
    let name = Some("paritas".to_owned());
    Owner { id: name.clone(), display_name: name }
}

/// Returns the token that stands for the last key of a page.
fn token_of(last: &str) -> String {
    hex(last.as_bytes())
}

fn token_text(token: &str) -> S3Result<String> {
    let text = unhex(token).and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| s3_error!(InvalidArgument, "no gateway made this continuation token"))
}
