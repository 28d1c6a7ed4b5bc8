// Certificates for tests, made on the spot.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace keelson::http {

struct TestCertificate {
  std::string certificate_pem, key_pem;
};

// A CA with a directory of its own, removed with it.
class TestPki {
 public:
  TestPki();
  ~TestPki();

  const std::string& ca_pem() const;
  std::string ca_file() const { return dir_ + "/ca.pem"; }
  std::string server_cert_file() const { return dir_ + "/server.pem"; }  // for 127.0.0.1 and localhost
  std::string server_key_file() const { return dir_ + "/server.key"; }
  const std::string& dir() const { return dir_; }

  TestCertificate Client(const std::string& common_name, const std::vector<std::string>& organizations) const;
  void RenewServer();  // another certificate in the same files

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string dir_;
};

}  // namespace keelson::http
