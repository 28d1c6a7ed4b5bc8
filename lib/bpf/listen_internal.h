// What libbpf says besides its results.
#pragma once

namespace keelson::bpf {

// It tells through one function for the whole process, and writes to standard error until that is set: from
// here on who wants to hear listens, and nobody else hears anything.
void TakeWordsOfLibbpf();

}  // namespace keelson::bpf
