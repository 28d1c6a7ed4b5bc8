#include "ctl/cluster/copy_certs.h"

#include "ctl/cluster/builders.h"
#include "lib/base/text.h"
#include "lib/crypto/cipher.h"
#include "lib/crypto/random.h"

namespace keelson::ctl {
namespace {

constexpr size_t kKeySize = 32;
constexpr char kSystem[] = "kube-system", kReader[] = "kubeadm:kubeadm-certs";

int Digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

}  // namespace

std::vector<SharedFile> SharedFiles(const ClusterConfiguration& cluster) {
  const std::string pki = cluster.certificates_dir + "/";
  std::vector<SharedFile> out;
  for (const char* name :
       {"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.pub", "sa.key"}) {
    out.push_back({name, pki + name});
  }
  if (const auto& etcd = cluster.external_etcd) {
    out.push_back({"external-etcd-ca.crt", etcd->ca_file});
    out.push_back({"external-etcd.crt", etcd->certificate_file});
    out.push_back({"external-etcd.key", etcd->key_file});
  } else {
    out.push_back({"etcd-ca.crt", pki + "etcd/ca.crt"});
    out.push_back({"etcd-ca.key", pki + "etcd/ca.key"});
  }
  return out;
}

std::string NewCertificateKey() { return Hex(crypto::RandomBytes(kKeySize)); }

Result<std::string> DecodeCertificateKey(const std::string& text) {
  std::string out;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = Digit(text[i]), low = Digit(text[i + 1]);
    if (high < 0 || low < 0) break;
    out += static_cast<char>(high * 16 + low);
  }
  if (text.size() == 2 * kKeySize && out.size() == kKeySize) return out;
  return Error(Code::kInvalid, "error decoding certificate key: it must be 64 hexadecimal digits");
}

Result<std::string> SealFile(const std::string& key, const std::string& plain) {
  const std::string nonce = crypto::RandomBytes(crypto::kGcmNonce);
  std::string out = nonce;
  KEELSON_RETURN_IF_ERROR(crypto::EncryptAesGcm(key, nonce, plain, "", out));
  return out;
}

Result<std::string> OpenFileText(const std::string& key, const std::string& sealed) {
  if (sealed.size() < crypto::kGcmNonce + crypto::kGcmTag) {
    return Error(Code::kInvalid, "error decoding secret data with provided key: it is too short");
  }
  Result<std::string> plain =
      crypto::DecryptAesGcm(key, sealed.substr(0, crypto::kGcmNonce), sealed.substr(crypto::kGcmNonce), "");
  if (!plain) return plain.error().Wrap("error decoding secret data with provided key");
  return plain;
}

Result<corev1::Secret> CertsSecret(const std::vector<SharedFile>& files,
                                   const std::vector<std::optional<std::string>>& texts,
                                   const std::string& key, const corev1::Secret& owner) {
  KEELSON_ASSIGN_OR_RETURN(const std::string bytes, DecodeCertificateKey(key));
  corev1::Secret out;
  out.mutable_metadata()->set_name(kCertsSecret);
  out.mutable_metadata()->set_namespace_(kSystem);
  auto& reference = *out.mutable_metadata()->add_owner_references();
  reference.set_api_version("v1");
  reference.set_kind("Secret");
  reference.set_name(owner.metadata().name());
  reference.set_uid(owner.metadata().uid());
  reference.set_controller(true);
  reference.set_block_owner_deletion(true);
  for (size_t i = 0; i < files.size(); ++i) {
    std::string& value = (*out.mutable_data())[files[i].key];
    if (!texts[i]) continue;
    KEELSON_ASSIGN_OR_RETURN(value, SealFile(bytes, *texts[i]));
  }
  return out;
}

WantedObjects CertsReaderObjects() {
  return {
      {RoleFor(kSystem, kReader, {{.verbs = {"get"}, .resources = {"secrets"}, .names = {kCertsSecret}}})},
      {RoleBindingOf(kSystem, kReader, kReader, {{"Group", kDefaultTokenGroup}})},
  };
}

WantedObjects EtcdEndpointsObjects(const std::vector<std::string>& urls) {
  return {{ConfigMapOf(kSystem, kEtcdMap, {{kEtcdEndpointsKey, Join(urls, ",")}})}};
}

}  // namespace keelson::ctl
