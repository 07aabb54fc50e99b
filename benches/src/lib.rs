//! Fixtures shared by the benchmark suites.
