//! In which order objects are repaired.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use paritas_store::error::Result;

use crate::cluster::Cluster;
use crate::list::ListJob;
use crate::names::ObjectName;
use crate::protocol::{Listed, VersionKind};
use crate::verify::VerifyJob;

/// Number of objects that are looked at side by side.
const AT_ONCE: usize = 16;

/// Returns names, those of the objects that can lose the fewest further nodes first.
pub(crate) async fn most_urgent_first(cluster: &Cluster, prefix: &str) -> Result<Vec<ObjectName>> {
    let found = ListJob { cluster, prefix }.versions().await?;
    let urgency = async |(name, versions): (ObjectName, BTreeMap<Listed, usize>)| {
        let newest = versions.last_key_value().map(|(listed, _)| listed.kind);
        let spare = match newest {
            Some(VersionKind::Put) => {
                let verdict = VerifyJob { cluster, name: &name, is_deep: false }.run().await;
                verdict.map_or(0, |verdict| verdict.spare)
            }
            _ => usize::MAX,
        };
        (spare, name)
    };
    let looked = stream::iter(found.names).map(urgency).buffer_unordered(AT_ONCE);
    let mut names: Vec<(usize, ObjectName)> = looked.collect().await;
    names.sort();
    Ok(names.into_iter().map(|(_, name)| name).collect())
}
