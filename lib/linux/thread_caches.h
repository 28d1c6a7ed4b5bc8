// glibc keeps free memory with every thread (tcache, malloc.h). In a daemon of many threads that mostly wait
// it pins pages that nobody uses: a quarter of the kubelet's private memory. Only the environment can turn it
// off, before a program starts: GLIBC_TUNABLES, glibc.malloc.tcache_count (GNU C Library manual, "Tunables").
#pragma once

#include <optional>
#include <string>

namespace keelson::linux {

// `tunables`: GLIBC_TUNABLES as it is, nullptr: unset. What it should be; nullopt: it says already how many
// are kept.
std::optional<std::string> WithoutThreadCaches(const char* tunables);

// Starts this program again, with the same arguments, in the same process, where the environment does not say
// how many free pieces a thread may keep. Returns otherwise, and where that fails. Before any thread is
// started.
void RestartWithoutThreadCaches(char** argv);

}  // namespace keelson::linux
