// The certificates and keys that all machines of a control plane share, in the Secret kube-system/kubeadm-certs: each encrypted
// with the certificate key (AES-GCM, the nonce in front), which is not in the cluster. kubeadm reads and writes the same. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/cluster/objects.h"
#include "ctl/config/documents.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::ctl {

inline constexpr char kCertsSecret[] = "kubeadm-certs";

struct SharedFile {
  std::string key;   // in the Secret: etcd-ca.crt
  std::string path;  // /etc/kubernetes/pki/etcd/ca.crt
};
std::vector<SharedFile> SharedFiles(const ClusterConfiguration& cluster);

std::string NewCertificateKey();  // 64 hexadecimal digits
// The bytes of such a key. kInvalid; the message does not contain it.
Result<std::string> DecodeCertificateKey(const std::string& text);
Result<std::string> SealFile(const std::string& key, const std::string& plain);
// kInvalid: another key, or the bytes were changed.
Result<std::string> OpenFileText(const std::string& key, const std::string& sealed);

// The Secret. `texts`: of each shared file, nullopt where the machine has none. `owner`: the Secret of a token; when it
// expires the garbage collector removes both.
Result<corev1::Secret> CertsSecret(const std::vector<SharedFile>& files,
                                   const std::vector<std::optional<std::string>>& texts,
                                   const std::string& key, const corev1::Secret& owner);
// Tokens that join nodes may read the Secret.
WantedObjects CertsReaderObjects();

// The ConfigMap that tells joining control planes where etcd is: client URLs of members.
inline constexpr char kEtcdMap[] = "keelson-etcd", kEtcdEndpointsKey[] = "endpoints";
WantedObjects EtcdEndpointsObjects(const std::vector<std::string>& urls);

}  // namespace keelson::ctl
