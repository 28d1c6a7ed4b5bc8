#include "kubelet/certificate/certificate_store.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "lib/base/file.h"
#include "lib/base/ip.h"
#include "lib/base/log.h"

namespace keelson::kubelet {

Result<crypto::CertificateInfo> CertificateStore::Load() const {
  KEELSON_ASSIGN_OR_RETURN(std::string pem, ReadFile(path()));
  if (!crypto::BelongTogether(pem, pem)) {
    return Error(Code::kInvalid, path() + ": private key does not match public key");
  }
  return crypto::InspectCertificate(pem);
}

Result<> CertificateStore::Store(const std::string& certificate_pem, const std::string& key_pem,
                                 WallTime now) const {
  const time_t seconds = std::chrono::system_clock::to_time_t(now);
  tm parts = {};
  localtime_r(&seconds, &parts);
  char stamp[32];
  const size_t size = strftime(stamp, sizeof(stamp), "%Y-%m-%d-%H-%M-%S", &parts);
  const std::string file = directory_ + "/" + name_ + "-" + std::string(stamp, size) + ".pem";
  KEELSON_RETURN_IF_ERROR(MakeDirs(directory_));
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(file, certificate_pem + key_pem, 0600));
  const std::string updated = directory_ + "/" + name_ + "-updated.pem";
  KEELSON_RETURN_IF_ERROR(RemoveFile(updated));
  if (symlink(file.c_str(), updated.c_str()) != 0) return ErrnoError("link " + updated);
  if (rename(updated.c_str(), path().c_str()) != 0) return ErrnoError("rename " + updated);
  return {};
}

WallTime RotationTime(const crypto::CertificateInfo& certificate, double part) {
  const std::chrono::duration<double> life = certificate.not_after - certificate.not_before;
  return certificate.not_before + std::chrono::round<std::chrono::seconds>(life * (0.7 + 0.2 * part));
}

Result<> EnsureSelfSigned(const std::string& directory, const std::string& hostname, WallTime now) {
  const std::string certificate_file = directory + "/kubelet.crt", key_file = directory + "/kubelet.key";
  auto certificate = ReadFile(certificate_file), key = ReadFile(key_file);
  if (certificate && key && crypto::BelongTogether(*certificate, *key)) return {};
  crypto::CertificateSubject subject;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch());
  subject.common_name = hostname + "@" + std::to_string(seconds.count());
  (IpAddress::Parse(hostname) ? subject.ip_addresses : subject.dns_names).push_back(hostname);
  KEELSON_ASSIGN_OR_RETURN(std::string new_key, crypto::NewPrivateKey());
  KEELSON_ASSIGN_OR_RETURN(std::string made,
                           crypto::NewSelfSigned(new_key, subject, std::chrono::hours(24 * 365)));
  KEELSON_RETURN_IF_ERROR(MakeDirs(directory));
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(key_file, new_key, 0600));
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(certificate_file, made, 0644));
  log::Info("Using self-signed cert", {{"certFile", certificate_file}, {"keyFile", key_file}});
  return {};
}

}  // namespace keelson::kubelet
