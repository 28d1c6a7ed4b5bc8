// Random bytes from the kernel's generator, through OpenSSL's.
#pragma once

#include <cstddef>
#include <string>

namespace keelson::crypto {

// Good enough for keys. Aborts when there is no randomness, since encryption would be unsafe.
std::string RandomBytes(size_t count);

}  // namespace keelson::crypto
