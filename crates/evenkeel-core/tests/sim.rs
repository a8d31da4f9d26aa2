//! Seeded simulation of the whole core.
