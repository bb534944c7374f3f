//! Gives the shared library the name under which it is installed and looked for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The number is that of the ABI, `ADAMANT_ABI`: programs built for another one do not start.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libadamant.so.1");
}
