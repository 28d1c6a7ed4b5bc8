// Internal to lib/bpf: libbpf's messages.
#pragma once

namespace keelson::bpf {

// Installs the process-wide print function of libbpf, which by default writes to standard error. From here
// on only threads that listen (Object::Load() and others) get its messages; the rest is dropped.
void TakeWordsOfLibbpf();

}  // namespace keelson::bpf
