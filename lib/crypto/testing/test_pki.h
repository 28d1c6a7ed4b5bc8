// Certificates for tests, made on the spot.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace keelson::crypto {

struct TestCertificate {
  std::string certificate_pem, key_pem;
};

struct SubjectAttribute {
  std::string oid, value;
  int type = 12;  // ASN.1's tag: UTF8String
};

// A CA with a directory of its own, removed with it.
class TestPki {
 public:
  TestPki();
  ~TestPki();

  const std::string& ca_pem() const;
  std::string ca_file() const { return dir_ + "/ca.pem"; }
  std::string server_cert_file() const {
    return dir_ + "/server.pem";
  }  // for 127.0.0.1, localhost, *.default.svc
  std::string server_key_file() const { return dir_ + "/server.key"; }
  const std::string& dir() const { return dir_; }

  // Good from `begin` to `end`, counted from now; `more` follows the other attributes of the subject.
  TestCertificate Client(const std::string& common_name, const std::vector<std::string>& organizations,
                         std::chrono::seconds begin = std::chrono::minutes(-1),
                         std::chrono::seconds end = std::chrono::hours(24),
                         const std::vector<SubjectAttribute>& more = {}) const;
  // A client certificate for what a request (PEM) asks for, as a signer makes it.
  std::string Sign(const std::string& request_pem) const;
  void RenewServer();  // another certificate in the same files

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string dir_;
};

}  // namespace keelson::crypto
