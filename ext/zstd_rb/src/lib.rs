//! The Ruby extension: registers, nothing else.

// The attribute below makes a public function without a comment.
#![allow(missing_docs)]

mod bytes;
mod compressor;
mod convoy;
mod decompressor;
mod error;
mod gvl;
mod module_functions;
mod options;
mod settings;
mod stats;
mod stream;

use magnus::{Error, Ruby};

#[magnus::init(name = "zstd_rb")]
fn init(ruby: &Ruby) -> Result<(), Error> {
    gvl::declare_ractor_safe();
    zstd_engine::pool::watch_forks();
    let module = ruby.define_module("Zstd")?;
    error::init(ruby, module)?;
    module_functions::init(ruby, module)?;
    settings::init(module)?;
    compressor::init(ruby, module)?;
    decompressor::init(ruby, module)
}
