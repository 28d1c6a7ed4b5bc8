#include "lib/crypto/random.h"

#include <openssl/rand.h>

#include <cstdlib>

namespace keelson::crypto {

std::string RandomBytes(size_t count) {
  std::string out(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(count)) != 1) std::abort();
  return out;
}

}  // namespace keelson::crypto
