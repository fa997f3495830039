//! The engine with plain messages.

mod bench;
mod engine;
mod grants;
mod meaning;
mod syntax;
