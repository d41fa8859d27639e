//! Tables of the pure parts.
