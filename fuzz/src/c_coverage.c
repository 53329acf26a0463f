/* Coverage of libraries written in C (SQLite, lzma, zstd), which a plain gcc compiles with
 * -fsanitize-coverage=trace-pc: that calls the function below on every edge. libFuzzer takes the
 * section of this name for counters of its own. */
#include <stdint.h>

#define COUNTERS (1 << 16)

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[COUNTERS];

/* Not counted itself, whatever flags C code is compiled with. */
__attribute__((no_sanitize_coverage))
void __wrap___sanitizer_cov_trace_pc(void) {
    uintptr_t place = (uintptr_t)__builtin_return_address(0);
    /* Fibonacci hashing: the upper bits of the product are spread. */
    counters[(uint32_t)(place * 2654435761u) >> 16]++;
}
