//! The preloaded library: socket calls of an unmodified program, served by eft.
