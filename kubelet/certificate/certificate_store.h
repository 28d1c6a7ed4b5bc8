// The kubelet's certificates on disk, in upstream's layout: certificate and key in one file, with a symlink to the
// current one. A crash at any time leaves the old pair or the new one.
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
  // kNotFound: there is none; kInvalid: certificate and key do not belong together.
  Result<crypto::CertificateInfo> Load() const;
  // Writes the pair and switches the link to it.
  Result<> Store(const std::string& certificate_pem, const std::string& key_pem, WallTime now) const;

 private:
  const std::string directory_, name_;
};

// When to rotate: between 70 % (`part` 0) and 90 % (`part` 1) of the certificate's lifetime.
WallTime RotationTime(const crypto::CertificateInfo& certificate, double part);

// Creates a self-signed `<directory>/kubelet.crt` and `.key` for this host, valid for a year, unless a pair exists.
Result<> EnsureSelfSigned(const std::string& directory, const std::string& hostname, WallTime now);

}  // namespace keelson::kubelet
