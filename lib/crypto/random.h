// Random bytes from the kernel's generator, by way of OpenSSL's.
#pragma once

#include <cstddef>
#include <string>

namespace keelson::crypto {

// Good enough for keys. Aborts when there is no randomness: without it nothing may be encrypted.
std::string RandomBytes(size_t count);

}  // namespace keelson::crypto
