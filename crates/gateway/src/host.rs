//! The name of the host in a request, which may begin with the name of a bucket.
//!
//! Clients name a bucket in the path (`http://store/photos/a.jpg`) or, which is the default of many
//! of them, before the name of the host (`http://photos.store/a.jpg`). A gateway cannot tell the
//! second form from the first unless it knows its own name.

use s3s::S3Result;
use s3s::host::{S3Host, VirtualHost};

/// The name of a gateway, if it is known.
#[derive(Debug, Clone, Default)]
pub struct Domain(Option<String>);

impl Domain {
    /// Knows a name, such as `store.example.org`.
    pub fn new(name: Option<&str>) -> Self {
        Self(name.map(str::to_ascii_lowercase))
    }

    /// Returns the bucket that a host names before the name of the gateway.
    pub fn bucket(&self, host: &str) -> Option<String> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
        let before = name.strip_suffix(self.0.as_deref()?)?.strip_suffix('.')?;
        (!before.is_empty()).then(|| before.to_owned())
    }
}

impl S3Host for Domain {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        let of_path = VirtualHost::new(host);
        Ok(match self.bucket(host) {
            Some(bucket) => of_path.with_bucket(bucket),
            None => of_path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_stands_before_the_name_of_the_gateway() {
        let domain = Domain::new(Some("Store.example"));
        for (host, bucket) in [
            ("photos.store.example", Some("photos")),
            ("photos.store.example:9000", Some("photos")),
            ("old.photos.STORE.example", Some("old.photos")),
            ("store.example", None),
            ("store.example:9000", None),
            (".store.example", None),
            ("photosstore.example", None),
            ("127.0.0.1:9000", None),
            ("[::1]:9000", None),
        ] {
            assert_eq!(domain.bucket(host).as_deref(), bucket, "{host}");
        }
        assert_eq!(Domain::default().bucket("photos.store.example"), None);
    }
}
