//! Named scenarios: known faults of this kind of client, and what random runs have found.
