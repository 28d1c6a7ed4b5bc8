#include "controlplane/options/signing_flags.h"
#include "lib/component/flag_adder.h"

namespace keelson::controlplane {

using component::FlagAdder;

namespace {

struct Row {
  const char* flag;  // what stands between --cluster-signing- and -cert-file
  const char* signer;
  SigningFlags::Pair SigningFlags::*pair;
};
constexpr Row kRows[] = {
    {"kubelet-serving", "kubernetes.io/kubelet-serving", &SigningFlags::kubelet_serving},
    {"kubelet-client", "kubernetes.io/kube-apiserver-client-kubelet", &SigningFlags::kubelet_client},
    {"kube-apiserver-client", "kubernetes.io/kube-apiserver-client", &SigningFlags::api_server_client},
    {"legacy-unknown", "kubernetes.io/legacy-unknown", &SigningFlags::legacy_unknown},
};

Result<> CheckPair(const std::string& name, const SigningFlags::Pair& pair) {
  if (pair.certificate.empty() == pair.key.empty()) return {};
  return Error(Code::kInvalid, "--cluster-signing-" + name + "cert-file and --cluster-signing-" + name +
                                   "key-file must be specified together");
}

}  // namespace

void AddSigningFlags(CLI::App& app, SigningFlags& flags) {
  const FlagAdder add{app};
  add("--cluster-signing-cert-file", flags.all.certificate, "CA that issues certificates of all signers");
  add("--cluster-signing-key-file", flags.all.key, "Key of --cluster-signing-cert-file");
  for (const Row& row : kRows) {
    const std::string prefix = std::string("--cluster-signing-") + row.flag;
    SigningFlags::Pair& pair = flags.*row.pair;
    add(prefix + "-cert-file", pair.certificate, "CA that issues certificates of this signer");
    add(prefix + "-key-file", pair.key, "Key of this signer's CA");
  }
  add("--cluster-signing-duration", flags.duration, "How long certificates are good at most");
}

Result<controllers::CertificateSigning> SigningOf(const SigningFlags& flags) {
  controllers::CertificateSigning out;
  out.duration = std::chrono::duration_cast<std::chrono::seconds>(flags.duration);
  KEELSON_RETURN_IF_ERROR(CheckPair("", flags.all));
  for (const Row& row : kRows) {
    const SigningFlags::Pair& own = flags.*row.pair;
    KEELSON_RETURN_IF_ERROR(CheckPair(std::string(row.flag) + "-", own));
    if (!own.empty() && !flags.all.empty()) {
      return Error(Code::kInvalid,
                   "cannot specify --cluster-signing-{cert,key}-file and other "
                   "--cluster-signing-*-file flags at the same time");
    }
    const SigningFlags::Pair& pair = own.empty() ? flags.all : own;
    if (!pair.empty()) out.authorities[row.signer] = {pair.certificate, pair.key};
  }
  return out;
}

}  // namespace keelson::controlplane
