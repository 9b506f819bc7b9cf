//! Objects whose homes have changed, because a node was added or drained.

use crate::common::{Disks, content, get, name, put};
use paritas_volume::Volume;

/// Repairs everything, and returns what could not be repaired.
async fn repaired(volume: Volume) -> Vec<String> {
    let mut failures = Vec::new();
    for object in volume.most_urgent_first("").await.unwrap() {
        failures.extend(volume.repair(&object, false).await.err().map(|error| error.to_string()));
    }
    failures
}

/// What one repair has moved from where the other one has found it is not lost.
#[tokio::test(flavor = "multi_thread")]
async fn two_repairs_at_once_lose_nothing() {
    const OBJECTS: usize = 40;
    let disks = Disks::new(7);
    let volume = disks.volume("4+2").await;
    for object in 0..OBJECTS {
        put(&volume, &object.to_string(), &content(20_000 + object)).await;
    }
    for drained in [3, 5] {
        let repairs = [(); 2].map(|()| tokio::spawn(repaired(disks.open_drained("4+2", drained))));
        for repair in repairs {
            assert_eq!(repair.await.unwrap(), [""; 0]);
        }
        let volume = disks.open_drained("4+2", drained);
        assert_eq!(volume.status().await.unwrap().lost.objects, 0);
        for object in 0..OBJECTS {
            let (bytes, object) = (content(20_000 + object), object.to_string());
            assert!(get(&volume, &object).await.unwrap() == bytes);
            assert_eq!(volume.verify(&name(&object), true).await.unwrap().spare, 2);
        }
    }
}
