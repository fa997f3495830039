//! The engine with plain messages.

mod engine;
mod meaning;
mod syntax;
