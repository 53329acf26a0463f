//! Known-good and known-bad values of every family.
