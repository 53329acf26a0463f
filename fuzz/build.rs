//! Compiles the counters of C code, see `src/c_coverage.c`.

fn main() {
    println!("cargo:rerun-if-changed=src/c_coverage.c");
    cc::Build::new().file("src/c_coverage.c").opt_level(2).compile("c_coverage");
    // libFuzzer has a function of that name, which refuses: ours takes its place.
    println!("cargo:rustc-link-arg=-Wl,--wrap=__sanitizer_cov_trace_pc");
}
