//! The engine with plain messages.

mod bench;
mod dying;
mod engine;
mod grants;
mod meaning;
mod syntax;
