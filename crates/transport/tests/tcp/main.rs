//! The tcp engine against itself, over a simulated network, with simulated applications.

mod app;
mod streams;
mod world;
