//! Hands the running Ruby's version and features to the crate as `cfg`s.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rb_sys_env::activate()?;
    Ok(())
}
