// Turns off glibc's per-thread caches of free memory (tcache, malloc.h). In a daemon of many threads that
// mostly wait they pin unused pages: a quarter of the kubelet's private memory. Only the environment can
// turn them off, before a program starts: GLIBC_TUNABLES, glibc.malloc.tcache_count (GNU C Library manual,
// "Tunables").
#pragma once

#include <optional>
#include <string>

namespace keelson::linux {

// The value that GLIBC_TUNABLES should have. `tunables` is its value now; nullptr: unset. nullopt: it
// already sets the size of the caches.
std::optional<std::string> WithoutThreadCaches(const char* tunables);

// Restarts this program in the same process with the same arguments, unless the environment already sets
// the size of the caches. Returns if no restart is needed or it fails. Call before any thread starts.
void RestartWithoutThreadCaches(char** argv);

}  // namespace keelson::linux
