//! Removing objects.

use paritas_shards::ObjectId;
use paritas_store::error::Result;

use crate::clock::now;
use crate::cluster::Cluster;
use crate::driver::drive;
use crate::hints::Hints;
use crate::names::ObjectName;
use crate::protocol::{Listed, NewParts, Put, PutOutcome};
use crate::put_hands::{NewContent, PutHands};

/// Removes an object: writes a version that says that its name means nothing.
pub(crate) struct RemoveJob<'a> {
    pub cluster: &'a Cluster,
    pub name: &'a ObjectName,
}

impl RemoveJob<'_> {
    pub async fn run(self) -> Result<Listed> {
        let (cluster, object) = (self.cluster, ObjectId::random()?);
        let mut hands = PutHands::new(cluster, self.name, NewContent::Removed);
        let parts = NewParts::Removed { order: cluster.inline_order(object) };
        let (outcome, _) = drive(Put::new(cluster.quorum, object, parts, now()), &mut hands).await;
        let PutOutcome::Committed { listed, is_owed } = outcome else {
            return Err(hands.failure(&outcome));
        };
        if is_owed {
            Hints::owed(cluster).leave(object, self.name).await;
        }
        Ok(listed)
    }
}
