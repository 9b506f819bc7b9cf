//! The protocol of manifests: which version of an object counts, and what may be removed when.
