// Certificates of the kubelet on disk, as upstream has them: each with its key in one file, the one in use
// behind a link that always leads to a whole pair. A kill at any time leaves the old pair or the new one.
//
//   <directory>/<name>-2026-01-31-12-00-00.pem
//   <directory>/<name>-current.pem -> <directory>/<name>-2026-01-31-12-00-00.pem
#pragma once

#include <string>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/crypto/certificates.h"

namespace keelson::kubelet {

class CertificateStore {
 public:
  CertificateStore(std::string directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}

  std::string path() const { return directory_ + "/" + name_ + "-current.pem"; }
  // kNotFound where there is none; kInvalid where certificate and key do not belong together.
  Result<http::CertificateInfo> Load() const;
  Result<> Store(const std::string& certificate_pem, const std::string& key_pem, WallTime now) const;

 private:
  const std::string directory_, name_;
};

// Somewhere between 70 and 90 % of the certificate's life: `part` is from 0 to 1.
WallTime RotationTime(const http::CertificateInfo& certificate, double part);

// Makes `<directory>/kubelet.crt` and `.key` for this host, good for a year, unless a pair is there.
Result<> EnsureSelfSigned(const std::string& directory, const std::string& hostname, WallTime now);

}  // namespace keelson::kubelet
