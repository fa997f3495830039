//! Nouns: time, ids, addresses, packet formats. Knows nothing of what stands above it.

#![cfg_attr(not(test), no_std)]
