//! The bodies of the fuzz targets, which tests also call. Each panics on a broken invariant.
