// Digests: SHA-256, and SHA-1 for protocols that require it (FIPS 180-4).
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's

namespace keelson::crypto {

std::string Sha1(std::string_view bytes);       // 20 raw bytes; not for security
std::string Sha256(std::string_view bytes);     // 32 raw bytes
std::string Sha256Hex(std::string_view bytes);  // lower case

// SHA-256 of data in pieces. Aborts without memory.
class Sha256Sum {
 public:
  Sha256Sum();
  void Add(std::string_view bytes);
  std::string Finish();  // 32 raw bytes; the last call, once

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace keelson::crypto
