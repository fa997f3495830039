//! The one home of shared memory and atomics: segments, queues, pools, socket pages, notify words.

#![cfg_attr(not(test), no_std)]
