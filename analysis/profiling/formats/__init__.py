"""Profiles in the formats of other tools: pprof, folded stacks, perf script, gperftools and LLVM sample profiles."""
