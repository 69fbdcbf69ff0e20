//! Settings and counters of the process: `Zstd.max_output_size`,
//! `Zstd.convoy_guard`, `Zstd.huge_pages`, and what `Zstd.stats` shows.

use std::sync::atomic::{AtomicBool, Ordering};

use magnus::{Error, Object, RArray, RModule, Ruby, Value, function, prelude::*};
use zstd_engine::pool;

use crate::{convoy, options, stats};

static HUGE_PAGES: AtomicBool = AtomicBool::new(false);

/// Registers the functions.
pub fn init(module: RModule) -> Result<(), Error> {
    module.define_singleton_method("max_output_size", function!(max_output_size, 0))?;
    module.define_singleton_method("max_output_size=", function!(set_max_output_size, 1))?;
    module.define_singleton_method("convoy_guard", function!(convoy::is_on, 0))?;
    module.define_singleton_method("convoy_guard=", function!(set_convoy_guard, 1))?;
    module.define_singleton_method("huge_pages", function!(huge_pages, 0))?;
    module.define_singleton_method("huge_pages=", function!(set_huge_pages, 1))?;
    module.define_singleton_method("counters", function!(counters, 0))?;
    module.define_singleton_method("reset_counters", function!(stats::reset, 0))
}

fn max_output_size() -> Option<u64> {
    options::default_max_output_size()
}

fn set_max_output_size(ruby: &Ruby, limit: Value) -> Result<(), Error> {
    let limit = if limit.is_nil() {
        None
    } else {
        options::output_size(ruby, limit)?
    };
    options::set_default_max_output_size(limit);
    Ok(())
}

fn set_convoy_guard(on: Value) {
    convoy::turn(on.to_bool());
}

fn huge_pages() -> bool {
    HUGE_PAGES.load(Ordering::Relaxed)
}

fn set_huge_pages(on: Value) {
    let on = zstd_engine::set_huge_pages(on.to_bool());
    HUGE_PAGES.store(on, Ordering::Relaxed);
}

/// Made private by `lib/zstd_rb/stats.rb`. In the order of the members of `Zstd::Stats`.
fn counters(ruby: &Ruby) -> Result<RArray, Error> {
    let counts = stats::snapshot();
    let values = ruby.ary_new_capa(8);
    for count in [
        counts.calls,
        counts.releases,
        counts.holds,
        counts.interrupted,
    ] {
        values.push(count)?;
    }
    for wait in [counts.wait_total, counts.wait_max] {
        values.push(wait.as_secs_f64())?;
    }
    for contexts in [pool::live_contexts(), pool::pooled_contexts()] {
        values.push(contexts)?;
    }
    Ok(values)
}
